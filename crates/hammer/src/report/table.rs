//! The figures that runs are quoted with, as a table: for terminals and for the HTML report.

use super::compare;
use super::view::{Group, Section, Spread, sections};
use crate::figures::{bits_per_s, bytes, count, digits, percent, ratio, time_us};
use crate::record::{Calm, Report, RunRecord, Summary};

/// A column: its heading and a server's entry.
struct Column {
    heading: String,
    entry: Box<Fill>,
}

type Fill = dyn Fn(&Group<'_>) -> Option<Entry>;

/// What stands in a table: the figure and, with several rounds, how it spreads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) spread: Option<String>,
}

/// A table with headings; a row for each server, its name first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<Entry>>,
}

/// The tables of all sections, for a terminal.
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    let sections = sections(report);
    for section in &sections {
        text += &format!("\n{}\n", section.command().join(" "));
        text += &of(section).to_text();
        for run in section.runs() {
            for warning in &run.summary.warnings {
                text += &format!(
                    "WARNING: {}, round {}: {warning}\n",
                    run.server.name, run.round
                );
            }
        }
    }
    for comparison in compare::comparisons(&sections) {
        text += &format!("\n{}\n{}", comparison.heading(), comparison.table.to_text());
    }
    text
}

/// The table of a section. Columns that would be empty are left out.
pub(super) fn of(section: &Section<'_>) -> Table {
    let columns = columns(section);
    let mut table = Table::default();
    let used: Vec<&Column> = columns
        .iter()
        .filter(|column| {
            section
                .servers
                .iter()
                .any(|group| (column.entry)(group).is_some())
        })
        .collect();
    table.headings.push("server".to_owned());
    table
        .headings
        .extend(used.iter().map(|column| column.heading.clone()));
    if let Some(row) = ceiling_row(section, &used) {
        table.rows.push(row);
    }
    for group in &section.servers {
        let name = Entry {
            text: group.name.to_owned(),
            spread: group.version().map(str::to_owned),
        };
        let entries = used
            .iter()
            .map(|column| (column.entry)(group).unwrap_or_default());
        table
            .rows
            .push(std::iter::once(name).chain(entries).collect());
    }
    table
}

const PARTICIPANTS: &str = "participants";
const THROUGHPUT: &str = "throughput";
const OF_CEILING: &str = "of ceiling";
const PER_CORE: &str = "per core";
const OF_CEILING_PER_CORE: &str = "of ceiling\u{2019}s";

fn columns(section: &Section<'_>) -> Vec<Column> {
    let mut columns = vec![
        column(PARTICIPANTS, count, |s| Some(s.carried_participants.into())),
        column("connections", count, |s| {
            // Where each participant has one, that is said already.
            let several = s.peer_connections > s.carried_participants;
            several.then_some(s.peer_connections.into())
        }),
        column(THROUGHPUT, bits_per_s, |s| Some(s.carried_bps)),
        column(OF_CEILING, percent, |s| s.ceiling_share),
    ];
    let peer = section.peer().and_then(|peer| {
        let carried = peer.summary(|s| Some(s.carried_pps))?.median;
        Some((peer.name.to_owned(), carried)).filter(|_| carried > 0.0)
    });
    if let Some((name, carried)) = peer {
        columns.push(column(&format!("vs {name}"), ratio, move |s| {
            Some(s.carried_pps / carried)
        }));
    }
    columns.extend([
        column("delivered", percent, |s| Some(s.delivered_share)),
        column("CPU cores", digits, |s| s.server_cpu_cores),
        Column {
            heading: "projected".to_owned(),
            entry: Box::new(|group| Some(entry(group.figure(projected)?, &count))),
        },
        column(PER_CORE, bits_per_s, |s| {
            Some(s.carried_bps / s.server_cpu_cores?)
        }),
        Column {
            heading: OF_CEILING_PER_CORE.to_owned(),
            entry: Box::new(|group| Some(entry(group.figure(share_per_core)?, &percent))),
        },
        column(
            "CPU/packet",
            |ns| time_us(ns / 1e3),
            |s| s.cpu_ns_per_packet,
        ),
        column("memory each", bytes, |s| s.bytes_per_participant),
        column("memory/connection", bytes, |s| {
            let several = s.peer_connections > s.carried_participants;
            s.bytes_per_peer_connection.filter(|_| several)
        }),
        column("memory growth", percent, |s| {
            s.leaving.as_ref()?.growth_share()
        }),
        column("limited get", bits_per_s, |s| s.limited_bps),
        column("joins/CPU s", count, |s| s.joins_per_cpu_s),
        column("delay p50", time_us, |s| Some(s.delay?.p50_us)),
        column("delay p99", time_us, |s| Some(s.delay?.p99_us)),
        column("held", count, |s| {
            Some(s.held.as_ref()?.participants.into())
        }),
        column("held CPU", digits, |s| s.held.as_ref()?.server_cpu_cores),
        column("held p50", time_us, |s| {
            Some(s.held.as_ref()?.delay?.p50_us)
        }),
        column("held p99", time_us, |s| {
            Some(s.held.as_ref()?.delay?.p99_us)
        }),
        column("calm", percent, |s| Some(calm(s)?.share)),
        column("calm p50", time_us, |s| Some(calm(s)?.delay?.p50_us)),
        column("calm p99", time_us, |s| Some(calm(s)?.delay?.p99_us)),
        column("longest gap", |ms| time_us(ms * 1e3), |s| s.longest_gap_ms),
        column("in frames", digits, |s| s.longest_gap_frames),
    ]);
    columns
}

/// What no stall delayed, of what was held or else of the best step.
fn calm(summary: &Summary) -> Option<Calm> {
    match &summary.held {
        Some(held) => held.calm,
        None => summary.calm,
    }
}

/// Participants for all of the server's CPU time, if it had some left: each is taken to cost the same.
/// None where one more costs more for all.
fn projected(run: &RunRecord) -> Option<f64> {
    let cores = run.server.cores.len().max(1) as f64;
    let share = run.summary.server_cpu_cores? / cores;
    let alike = run.scenario.name != "star";
    let telling = (0.05..0.95).contains(&share) && run.summary.carried_participants > 0;
    (alike && telling).then(|| f64::from(run.summary.carried_participants) / share)
}

/// Packets for each second of CPU time against the ceiling's: it holds when others disturb the cores too.
pub(super) fn share_per_core(run: &RunRecord) -> Option<f64> {
    let ceiling = run.ceiling.as_ref()?;
    let pps = run.summary.carried_pps / run.summary.server_cpu_cores?;
    Some(pps * ceiling.cpu_share.unwrap_or(1.0) / ceiling.delivered_pps)
}

fn column(
    heading: &str,
    write: impl Fn(f64) -> String + 'static,
    figure: impl Fn(&Summary) -> Option<f64> + 'static,
) -> Column {
    Column {
        heading: heading.to_owned(),
        entry: Box::new(move |group| Some(entry(group.summary(&figure)?, &write))),
    }
}

pub(super) fn entry(spread: Spread, write: &dyn Fn(f64) -> String) -> Entry {
    let (least, most) = (write(spread.least), write(spread.most));
    // The unit once, if it is the same.
    let short = match (least.split_once(' '), most.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number,
        _ => &least,
    };
    Entry {
        text: write(spread.median),
        spread: (least != most).then(|| format!("{short}\u{2013}{most}")),
    }
}

fn ceiling_row(section: &Section<'_>, columns: &[&Column]) -> Option<Vec<Entry>> {
    let ceilings = section.ceilings();
    let bps = section.ceiling_bps()?;
    let viewers = Spread::of(ceilings.iter().map(|ceiling| ceiling.viewers))?;
    let share = Spread::of(ceilings.iter().map(|ceiling| ceiling.delivered_share))?;
    let per_core = ceilings
        .iter()
        .map(|ceiling| ceiling.delivered_bps / ceiling.cpu_share.unwrap_or(1.0));
    let per_core = Spread::of(per_core)?;
    let whole = Spread::of(std::iter::once(1.0))?;
    let name = Entry {
        text: "ceiling".to_owned(),
        spread: ceilings
            .first()
            .map(|ceiling| ceiling.srtp_profile.trim_start_matches("SRTP_").to_owned()),
    };
    let entries = columns.iter().map(|column| match column.heading.as_str() {
        PARTICIPANTS => entry(viewers, &count),
        THROUGHPUT => entry(bps, &bits_per_s),
        OF_CEILING | OF_CEILING_PER_CORE => entry(whole, &percent),
        PER_CORE => entry(per_core, &bits_per_s),
        "delivered" => entry(share, &percent),
        _ => Entry::default(),
    });
    Some(std::iter::once(name).chain(entries).collect())
}

impl Table {
    /// For a terminal.
    pub(super) fn to_text(&self) -> String {
        let heading = |text: &String| Entry {
            text: text.clone(),
            spread: None,
        };
        let mut rows = vec![self.headings.iter().map(heading).collect::<Vec<_>>()];
        rows.extend(self.rows.iter().cloned());
        let width = |column: usize| {
            let texts = rows.iter().filter_map(|row| row.get(column));
            texts
                .map(|entry| entry.text.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            let mut line = String::new();
            for (at, (entry, width)) in row.iter().zip(&widths).enumerate() {
                match at {
                    0 => line += &format!("{:<width$}", entry.text),
                    _ => line += &format!("  {:>width$}", entry.text),
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn what_a_whole_core_would_carry_is_projected_if_there_was_time_left() {
        let mut report = example::report();
        for run in &mut report.runs {
            run.summary.server_cpu_cores = Some(0.5);
            run.summary.carried_participants = 40;
        }
        let text = table(&report);
        assert!(
            text.contains("projected") && text.contains(" 80 "),
            "{text}"
        );
        for run in &mut report.runs {
            run.summary.server_cpu_cores = Some(0.97);
        }
        assert!(!table(&report).contains("projected"));
    }

    #[test]
    fn ratios_are_against_ceiling_and_peer() {
        let text = table(&example::report());
        let line = |name: &str| {
            text.lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_default()
                .to_owned()
        };
        assert!(line("server").contains("vs janus"), "{text}");
        assert!(line("ceiling").contains("100 %"), "{text}");
        assert!(
            line("portunus").contains("23.3x") && line("portunus").contains("70."),
            "{text}"
        );
        assert!(line("janus").contains("1.00x"), "{text}");
        assert!(
            text.contains("WARNING: janus, round 1: an example"),
            "{text}"
        );
    }
}
