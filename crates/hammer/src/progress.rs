//! The progress of a run: one changing line on a terminal, a line per second elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::figures::{bits_per_s, bytes, count, digits, percent, time_us};
use crate::record::{Sample, Step};

/// Prints samples and notes to the standard error.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    name: String,
}

impl Progress {
    /// Starts with the name of the server or of the task.
    pub fn start(name: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:.bold}  {wide_msg}")
            {
                bar.set_style(style);
            }
            bar.set_prefix(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            bar,
            name: name.to_owned(),
        }
    }

    /// Shows the current action.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => eprintln!("{}: {text}", self.name),
        }
    }

    /// Shows the figures of a second.
    pub fn sample(&self, sample: &Sample) {
        self.note(&line(sample));
    }

    /// Shows a finished step, which stays on the terminal.
    pub fn step(&self, step: &Step) {
        let mark = match (step.in_time, step.carried) {
            (true, _) => "carried in time",
            (false, true) => "carried, but NOT in time",
            (false, false) => "NOT carried",
        };
        let text = format!(
            "{} participants {mark}: {}, {} delivered",
            count(step.participants.into()),
            bits_per_s(step.received_bps),
            percent(step.delivered_share),
        );
        self.keep(&text);
    }

    /// Prints a line that stays on the terminal.
    pub fn keep(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(format!("  {}: {text}", self.name)),
            None => eprintln!("{}: {text}", self.name),
        }
    }
}

/// Removes the changing line.
impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(sample: &Sample) -> String {
    let Sample {
        at_s,
        length_s,
        participants,
        received_bytes,
        expected_packets,
        received_packets,
        longest_gap_ms,
        stalls,
        ..
    } = sample;
    let mut line = format!(
        "{at_s:.0} s  {} participants  {}",
        count(f64::from(*participants)),
        bits_per_s(*received_bytes as f64 * 8.0 / length_s.max(1e-3))
    );
    if *expected_packets > 0 {
        let share = *received_packets as f64 / *expected_packets as f64;
        line += &format!("  {}", percent(share));
    }
    if let Some(delay) = &sample.delay {
        line += &format!(
            "  delay {} / p99 {}",
            time_us(delay.p50_us),
            time_us(delay.p99_us)
        );
    }
    if let Some(gap_ms) = longest_gap_ms {
        line += &format!("  gap {}", time_us(gap_ms * 1e3));
    }
    if let Some(server) = &sample.server {
        line += &format!(
            "  server {} cores, {}",
            digits(server.cpu_cores),
            bytes(server.rss_bytes as f64)
        );
    }
    if let Some(load) = &sample.load {
        line += &format!("  hammer {} cores", digits(load.cpu_cores));
    }
    for stalls in stalls.iter().filter(|stalls| stalls.count > 0) {
        let total = time_us(stalls.total_ms * 1e3);
        line += &format!("  core {} stalled {total}", stalls.core);
    }
    for stalls in stalls.iter().filter(|stalls| stalls.slow_ms > 0.0) {
        let total = time_us(stalls.slow_ms * 1e3);
        line += &format!("  core {} slow {total}", stalls.core);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_was_measured() {
        let sample = Sample {
            at_s: 12.0,
            length_s: 1.0,
            participants: 1_200,
            expected_packets: 100,
            received_packets: 99,
            received_bytes: 125_000_000,
            longest_gap_ms: Some(34.0),
            ..Sample::default()
        };
        assert_eq!(
            line(&sample),
            "12 s  1,200 participants  1.00 Gbit/s  99.00 %  gap 34.0 ms"
        );
    }
}
