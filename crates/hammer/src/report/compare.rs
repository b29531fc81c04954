//! Scenarios that differ by one option only, side by side.

use super::table::{Entry, Table, entry, share_per_core};
use super::view::{Group, Section, Spread};
use crate::figures::{bits_per_s, count, percent};
use crate::record::Scenario;

/// The option that may differ.
const OPTION: &str = "sizes";

/// Sections that differ by [`OPTION`] only.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The first one's value: the others are compared with it.
    base: String,
    pub(super) table: Table,
}

impl Comparison {
    /// What stands above the table.
    pub(super) fn heading(&self) -> String {
        format!("Packet sizes, compared with {}", self.base)
    }
}

/// All that can be made of a report's sections.
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

/// None if there is nothing to compare.
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
        "per core, of ceiling\u{2019}s",
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
    if let Some(of_first) = ceiling_pps(base) {
        let ceilings = sections.iter().filter_map(|section| {
            let share = ceiling_pps(section)?.median / of_first.median;
            let throughput = text(bits_per_s(section.ceiling_bps()?.median));
            let ratio = text(percent(share));
            Some(vec![
                text("ceiling"),
                text(value(section.scenario)),
                Entry::default(),
                throughput,
                ratio,
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
    vec![
        text(group.name),
        text(value),
        cell(
            group.summary(|s| Some(s.carried_participants.into())),
            &count,
        ),
        cell(group.summary(|s| Some(s.carried_bps)), &bits_per_s),
        text(ratio.map(percent).unwrap_or_default()),
        cell(group.summary(|s| s.ceiling_share), &percent),
        cell(group.figure(share_per_core), &percent),
    ]
}

fn ceiling_pps(section: &Section<'_>) -> Option<Spread> {
    Spread::of(
        section
            .ceilings()
            .into_iter()
            .map(|ceiling| ceiling.delivered_pps),
    )
}

fn text(text: impl Into<String>) -> Entry {
    Entry {
        text: text.into(),
        spread: None,
    }
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
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::super::view::sections;
    use super::*;
    use crate::report::example;

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
        assert_eq!(rows.len(), 6, "two servers and the ceiling");
        assert!(comparisons[0].heading().ends_with("equal"));
    }
}
