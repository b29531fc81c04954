//! A report for a terminal.

use super::view::sections;
use super::{compare, table};
use crate::record::Report;

/// The tables of all sections, for a terminal.
pub fn for_terminal(report: &Report) -> String {
    let mut text = String::new();
    let sections = sections(report);
    for section in &sections {
        text += &format!("\n{}\n", section.command().join(" "));
        text += &table::of(section).to_text();
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
