//! Comparisons of scenarios that differ in one option only.

use super::table::{Entry, Table, entry, share_of_bare};
use super::view::{Group, Section, Spread};
use crate::figures::{bits_per_s, count, percent};
use crate::record::{Carried, Criterion, Scenario};

/// The option that may differ.
const OPTION: &str = "sizes";

/// Sections that differ in [`OPTION`] only.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The first section's value. The others are compared with it.
    base: String,
    pub(super) table: Table,
}

impl Comparison {
    /// Returns the heading of the table.
    pub(super) fn heading(&self) -> String {
        format!("Packet sizes, compared with {}", self.base)
    }
}

/// Returns all possible comparisons of a report's sections.
pub(super) fn comparisons(sections: &[Section<'_>]) -> Vec<Comparison> {
    let mut alike: Vec<Vec<&Section<'_>>> = Vec::new();
    for section in sections {
        let scenario = without_option(section.scenario);
        let found = alike.iter_mut().find(|others| {
            let first = others.first().map(|other| without_option(other.scenario));
            first.as_ref() == Some(&scenario)
        });
        match found {
            Some(others) => others.push(section),
            None => alike.push(vec![section]),
        }
    }
    alike.iter().filter_map(|sections| of(sections)).collect()
}

/// Returns `None` if there is nothing to compare.
fn of(sections: &[&Section<'_>]) -> Option<Comparison> {
    let (base, others) = sections.split_first()?;
    if others.is_empty() {
        return None;
    }
    let headings = [
        "server",
        OPTION,
        "participants",
        "throughput",
        "of the first",
        "of ceiling",
        "of loop\u{2019}s efficiency",
    ];
    let mut table = Table {
        headings: headings.map(str::to_owned).to_vec(),
        rows: Vec::new(),
    };
    for first in &base.servers {
        let of_first = first.summary(|s| Some(s.carried_pps));
        for section in sections {
            let Some(group) = section
                .servers
                .iter()
                .find(|group| group.name == first.name)
            else {
                continue;
            };
            table
                .rows
                .push(row(group, &value(section.scenario), of_first));
        }
    }
    for criterion in Criterion::BOTH {
        let pps = |section: &Section<'_>| section.bare(criterion, |bare| bare.delivered_pps);
        let ceilings = sections.iter().filter_map(|section| {
            let share = pps(section)?.median / pps(base)?.median;
            let bps = section.bare(criterion, |bare| bare.delivered_bps)?;
            Some(vec![
                Entry::of(format!("ceiling {}", criterion.name())),
                Entry::of(value(section.scenario)),
                Entry::default(),
                Entry::of(bits_per_s(bps.median)),
                Entry::of(percent(share)),
            ])
        });
        table.rows.extend(ceilings);
    }
    Some(Comparison {
        base: value(base.scenario),
        table,
    })
}

fn row(group: &Group<'_>, value: &str, of_first: Option<Spread>) -> Vec<Entry> {
    let cell = |spread: Option<Spread>, write: &dyn Fn(f64) -> String| {
        spread.map_or_else(Entry::default, |spread| entry(spread, write))
    };
    let carried = group.summary(|s| Some(s.carried_pps));
    let ratio = carried
        .zip(of_first)
        .map(|(carried, first)| carried.median / first.median);
    let ratio = ratio.filter(|ratio| ratio.is_finite());
    let criterion = group.criteria().next().unwrap_or_default();
    let of_bare = |figure: fn(&Carried) -> Option<f64>| {
        let share = group.most(criterion, figure);
        share.map_or_else(Entry::default, |share| share_of_bare(share, criterion))
    };
    vec![
        Entry::of(group.name),
        Entry::of(value),
        cell(
            group.summary(|s| Some(s.carried_participants.into())),
            &count,
        ),
        cell(group.summary(|s| Some(s.carried_bps)), &bits_per_s),
        Entry::of(ratio.map(percent).unwrap_or_default()),
        of_bare(|most| most.ceiling_share),
        of_bare(|most| most.efficiency_share),
    ]
}

fn value(scenario: &Scenario) -> String {
    let value = scenario
        .options
        .get(OPTION)
        .and_then(|value| value.as_str());
    value.unwrap_or("default").to_owned()
}

fn without_option(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.options.remove(OPTION);
    scenario
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use serde_json::json;

    use super::super::view::sections;
    use super::*;
    use crate::record::example;

    #[test]
    fn sizes_stand_side_by_side_with_their_ratio() {
        let mut report = example::report();
        assert!(comparisons(&sections(&report)).is_empty());
        let mut others = report.runs.clone();
        for run in &mut report.runs {
            run.scenario
                .options
                .insert(OPTION.to_owned(), json!("equal"));
        }
        for run in &mut others {
            run.scenario
                .options
                .insert(OPTION.to_owned(), json!("almost-equal"));
            run.summary.carried_pps *= 0.9;
        }
        report.runs.extend(others);
        let comparisons = comparisons(&sections(&report));
        let rows = &comparisons[0].table.rows;
        assert_eq!(comparisons.len(), 1);
        let texts = |row: &[Entry]| {
            row.iter()
                .map(|entry| entry.text.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(&rows[0])[..2], ["portunus", "equal"]);
        assert_eq!(texts(&rows[1])[..2], ["portunus", "almost-equal"]);
        assert_eq!((&*rows[0][4].text, &*rows[1][4].text), ("100 %", "90.0 %"));
        assert_eq!(rows.len(), 8, "two servers and two ceilings");
        assert!(comparisons[0].heading().ends_with("equal"));
    }
}
