//! Thresholds that figures have to meet, for tests in which hammer runs.

use std::str::FromStr;

use crate::figures::{bytes, count, digits, percent, time_us};
use crate::record::{Criterion, RunRecord, Step, best};

/// The exit status of a program whose figures do not meet a threshold.
pub const NOT_MET: i32 = 3;

/// A bound of a figure, such as `loss<1%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    figure: &'static Figure,
    relation: Relation,
    /// In the figure's unit: a share of 1, microseconds, bytes, or a number.
    value: f64,
    text: String,
}

/// A figure that thresholds know.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    kind: Kind,
    of: fn(&RunRecord) -> Option<f64>,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Share,
    Time,
    Bytes,
    Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const FIGURES: [Figure; 15] = [
    Figure::new("loss", Kind::Share, |run| {
        Some((1.0 - measured(run)?.delivered_share).max(0.0))
    }),
    Figure::new("delivered", Kind::Share, |run| {
        Some(measured(run)?.delivered_share)
    }),
    Figure::new("delay-p50", Kind::Time, |run| {
        Some(measured(run)?.delay?.p50_us)
    }),
    Figure::new("delay-p90", Kind::Time, |run| {
        Some(measured(run)?.delay?.p90_us)
    }),
    Figure::new("delay-p99", Kind::Time, |run| {
        Some(measured(run)?.delay?.p99_us)
    }),
    Figure::new("gap", Kind::Time, |run| {
        Some(run.summary.longest_gap_ms? * 1e3)
    }),
    Figure::new("participants", Kind::Number, |run| {
        let most = best(&run.steps, Criterion::InTime);
        Some(most.map_or(0.0, |step| f64::from(step.participants)))
    }),
    Figure::new("throughput", Kind::Number, |run| {
        Some(measured(run)?.received_bps)
    }),
    Figure::new("cpu", Kind::Number, |run| measured(run)?.server_cpu_cores),
    Figure::new("cpu-per-packet", Kind::Time, |run| {
        Some(measured(run)?.cpu_ns_per_packet()? / 1e3)
    }),
    Figure::new("memory", Kind::Bytes, |run| {
        let step = measured(run)?;
        Some(step.server_pss_bytes.or(step.server_rss_bytes)? as f64)
    }),
    Figure::new("memory-each", Kind::Bytes, |run| {
        run.summary.bytes_per_participant
    }),
    Figure::new("failed-joins", Kind::Number, |run| {
        Some(run.summary.failed_joins as f64)
    }),
    Figure::new("join-p99", Kind::Time, |run| {
        Some(run.summary.join_delay?.p99_us)
    }),
    Figure::new("joins-per-cpu-s", Kind::Number, |run| {
        run.summary.joins_per_cpu_s
    }),
];

/// The suffixes of values: bit rates may have a `k`, `M` or `G`.
const NUMBERS: [(&str, f64); 4] = [("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];
const TIMES: [(&str, f64); 3] = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
const SIZES: [(&str, f64); 4] = [
    ("GiB", 1_073_741_824.0),
    ("MiB", 1_048_576.0),
    ("KiB", 1_024.0),
    ("B", 1.0),
];
const SHARES: [(&str, f64); 1] = [("%", 0.01)];

/// The two-character relations stand first, since the others are their beginnings.
const RELATIONS: [(&str, Relation); 4] = [
    ("<=", Relation::LessOrEqual),
    (">=", Relation::GreaterOrEqual),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

/// Returns the step that counts: the most that was carried in time, or else the largest.
fn measured(run: &RunRecord) -> Option<&Step> {
    let most = run.steps.iter().max_by_key(|step| step.participants);
    best(&run.steps, Criterion::InTime).or(most)
}

impl Figure {
    const fn new(name: &'static str, kind: Kind, of: fn(&RunRecord) -> Option<f64>) -> Self {
        Self { name, kind, of }
    }
}

impl Kind {
    const fn suffixes(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Share => &SHARES,
            Self::Time => &TIMES,
            Self::Bytes => &SIZES,
            Self::Number => &NUMBERS,
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Share => "1%",
            Self::Time => "20ms",
            Self::Bytes => "64MiB",
            Self::Number => "100, 5k or 2M",
        }
    }

    fn write(self, value: f64) -> String {
        match self {
            Self::Share => percent(value),
            Self::Time => time_us(value),
            Self::Bytes => bytes(value),
            Self::Number if value < 10.0 => digits(value),
            Self::Number => count(value),
        }
    }
}

impl Relation {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::LessOrEqual => value <= bound,
            Self::Greater => value > bound,
            Self::GreaterOrEqual => value >= bound,
        }
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let compact: String = text.split_whitespace().collect();
        let split = RELATIONS.iter().find_map(|(sign, relation)| {
            let (name, value) = compact.split_once(sign)?;
            Some((name, *relation, value))
        });
        let Some((name, relation, value)) = split else {
            return Err("FIGURE<VALUE is expected, such as loss<1%".to_owned());
        };
        let Some(figure) = FIGURES.iter().find(|figure| figure.name == name) else {
            let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
            return Err(format!(
                "there is no figure {name}, but {}",
                names.join(", ")
            ));
        };
        let parsed = figure.kind.suffixes().iter().find_map(|(suffix, factor)| {
            let number = value.strip_suffix(suffix)?.parse::<f64>().ok()?;
            number.is_finite().then_some(number * factor)
        });
        let example = figure.kind.example();
        Ok(Self {
            figure,
            relation,
            value: parsed
                .ok_or_else(|| format!("{name}: a value such as {example} is expected"))?,
            text: compact,
        })
    }
}

impl Threshold {
    /// Returns why the run does not meet it, or `None` if it does. A figure that was not measured
    /// does not meet it.
    pub fn failure(&self, run: &RunRecord) -> Option<String> {
        let name = format!("{}, round {}", run.server.name, run.round);
        let Some(value) = (self.figure.of)(run) else {
            return Some(format!(
                "{name}: {} is required, but {} was not measured",
                self.text, self.figure.name
            ));
        };
        (!self.relation.holds(value, self.value)).then(|| {
            format!(
                "{name}: {} is required, but it is {}",
                self.text,
                self.figure.kind.write(value)
            )
        })
    }
}

/// Prints each failure to the standard error. Returns whether all runs meet all thresholds.
pub fn all_met(thresholds: &[Threshold], runs: &[RunRecord]) -> bool {
    let failures = runs.iter().flat_map(|run| {
        let failure = move |threshold: &Threshold| threshold.failure(run);
        thresholds.iter().filter_map(failure)
    });
    let mut met = true;
    for failure in failures {
        met = false;
        eprintln!("NOT MET: {failure}");
    }
    met
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::record::example;

    #[test]
    fn thresholds_are_read_with_their_units() {
        for (text, value) in [
            ("loss<1%", 0.01),
            ("delay-p99 <= 20ms", 20_000.0),
            ("memory<64MiB", 67_108_864.0),
            ("participants>=5k", 5_000.0),
        ] {
            let threshold: Threshold = text.parse().unwrap();
            assert!((threshold.value - value).abs() < 1e-9, "{text}");
        }
        for wrong in ["loss", "loss<1", "loss<x%", "memory<1ms", "taste>1", "<1%"] {
            assert!(wrong.parse::<Threshold>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_run_meets_some_and_not_others() {
        let run = example::report().runs.swap_remove(0);
        let failure = |text: &str| text.parse::<Threshold>().unwrap().failure(&run);
        assert_eq!(failure("participants>=6000"), None);
        assert_eq!(failure("loss<0.5%"), None);
        let missed = failure("participants>6000").unwrap();
        assert!(missed.contains("but it is 6,000"), "{missed}");
        let unknown = failure("memory-each<1B").unwrap();
        assert!(unknown.contains("required"), "{unknown}");
        let thresholds = ["loss<1%".parse().unwrap(), "gap<1us".parse().unwrap()];
        assert!(!all_met(&thresholds, &[run]));
    }
}
