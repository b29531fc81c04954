//! The report for a terminal.

use super::view::sections;
use super::{cluster, comparisons, quality, table};
use crate::record::Report;

/// Formats the tables of all sections.
pub fn for_terminal(report: &Report) -> String {
    let mut text = String::new();
    let sections = sections(report);
    for section in &sections {
        text += &format!("\n{}\n", section.command().join(" "));
        let tables = cluster::of(section);
        match tables.is_empty() {
            true => {
                let table = quality::of(section).unwrap_or_else(|| table::of(section));
                text += &table.to_text();
            }
            false => tables.iter().for_each(|table| text += &table.to_text()),
        }
        for run in section.runs() {
            for warning in &run.summary.warnings {
                text += &format!(
                    "WARNING: {}, round {}: {warning}\n",
                    run.server.name, run.round
                );
            }
        }
    }
    for comparison in comparisons::comparisons(&sections) {
        text += &format!("\n{}\n{}", comparison.heading(), comparison.table.to_text());
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;
    use crate::record::example;

    #[test]
    fn what_a_whole_core_would_carry_is_projected_if_there_was_time_left() {
        let mut report = example::report();
        for run in &mut report.runs {
            run.summary.server_cpu_cores = Some(0.5);
            run.summary.carried_participants = 40;
        }
        let text = for_terminal(&report);
        assert!(
            text.contains("projected") && text.contains(" 80 "),
            "{text}"
        );
        for run in &mut report.runs {
            run.summary.server_cpu_cores = Some(0.97);
        }
        assert!(!for_terminal(&report).contains("projected"));
    }

    #[test]
    fn ratios_are_against_ceiling_and_peer() {
        let text = for_terminal(&example::report());
        let lines = |name: &str| {
            let lines = text.lines().filter(|line| line.starts_with(name));
            lines.collect::<Vec<_>>()
        };
        let has = |line: &str, texts: &[&str]| texts.iter().all(|text| line.contains(text));
        assert!(has(lines("server")[0], &["vs janus", "carried"]), "{text}");
        let [in_time, at_all] = lines("ceiling")[..] else {
            panic!("{text}");
        };
        assert!(has(in_time, &["9,950", "100 % in time"]), "{text}");
        assert!(has(at_all, &["100 % at all"]), "{text}");
        let [in_time, at_all] = lines("portunus")[..] else {
            panic!("{text}");
        };
        assert!(has(in_time, &["6,000", "60.", "% in time"]), "{text}");
        assert!(has(at_all, &["7,000", "23.3x", "% at all"]), "{text}");
        assert!(has(lines("janus")[1], &["1.00x"]), "{text}");
        assert!(
            text.contains("WARNING: janus, round 1: an example"),
            "{text}"
        );
    }
}
