//! The runs of a report, grouped by scenario, server and rounds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::record::{
    BareLoop, Carried, Ceiling, Criterion, Report, RunRecord, Sample, Scenario, Step, Summary,
};

/// All runs of one scenario with the same options.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub(super) scenario: &'a Scenario,
    /// In the order of their first runs.
    pub(super) servers: Vec<Group<'a>>,
}

/// All rounds of one server.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) name: &'a str,
    pub(super) runs: Vec<&'a RunRecord>,
}

/// A figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// Returns the report's sections, in the order of their first runs.
pub(super) fn sections(report: &Report) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for run in &report.runs {
        let found = sections
            .iter()
            .position(|section| *section.scenario == run.scenario);
        let at = found.unwrap_or(sections.len());
        if found.is_none() {
            sections.push(Section {
                scenario: &run.scenario,
                servers: Vec::new(),
            });
        }
        if let Some(section) = sections.get_mut(at) {
            section.add(run);
        }
    }
    sections
}

/// Formats a bit rate as a user may type it.
fn short(bps: Option<u64>) -> Option<String> {
    let bps = bps.filter(|bps| *bps > 0)?;
    match (bps % 1_000_000, bps % 1_000) {
        (0, _) => Some(format!("{}M", bps / 1_000_000)),
        (_, 0) => Some(format!("{}k", bps / 1_000)),
        _ => None,
    }
}

impl<'a> Section<'a> {
    fn add(&mut self, run: &'a RunRecord) {
        match self
            .servers
            .iter_mut()
            .find(|group| group.name == run.server.name)
        {
            Some(group) => group.runs.push(run),
            None => self.servers.push(Group {
                name: &run.server.name,
                runs: vec![run],
            }),
        }
    }

    /// Returns the ceilings of all rounds, from the first server, since a round's servers share
    /// one.
    pub(super) fn ceilings(&self) -> Vec<&'a Ceiling> {
        let first = self.servers.iter().max_by_key(|group| group.runs.len());
        let runs = first.into_iter().flat_map(|group| &group.runs);
        runs.filter_map(|run| run.ceiling.as_ref()).collect()
    }

    /// Returns a figure of the ceiling over the rounds, or `None` if it was not measured.
    pub(super) fn bare(
        &self,
        criterion: Criterion,
        figure: impl Fn(&BareLoop) -> f64,
    ) -> Option<Spread> {
        let ceilings = self.ceilings().into_iter();
        Spread::of(ceilings.filter_map(|ceiling| Some(figure(ceiling.of(criterion)?))))
    }

    /// Returns all runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &'a RunRecord> {
        self.servers
            .iter()
            .flat_map(|group| group.runs.iter().copied())
    }

    /// Returns the server that others are compared with: the last one, if there are several.
    pub(super) fn peer(&self) -> Option<&Group<'a>> {
        self.servers.last().filter(|_| self.servers.len() > 1)
    }

    /// Returns the scenario's options as typed. Options that are off are omitted.
    pub(super) fn command(&self) -> Vec<String> {
        let mut words = vec![self.scenario.name.clone()];
        for (name, value) in &self.scenario.options {
            let off = match value {
                Value::Null | Value::Bool(false) => true,
                Value::Object(members) => members.is_empty(),
                Value::Array(items) => items.is_empty(),
                _ => false,
            };
            if off {
                continue;
            }
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Bool(true) => String::new(),
                Value::Number(bps) if name.ends_with("bitrate") => {
                    short(bps.as_u64()).unwrap_or(bps.to_string())
                }
                other => other.to_string(),
            };
            words.push(format!("--{name} {value}").trim_end().to_owned());
        }
        words
    }
}

impl Group<'_> {
    /// Returns a figure of the summaries over the rounds that have it.
    pub(super) fn summary(&self, figure: impl Fn(&Summary) -> Option<f64>) -> Option<Spread> {
        self.figure(|run| figure(&run.summary))
    }

    /// Returns the known criteria: in time, at all, or both.
    pub(super) fn criteria(&self) -> impl Iterator<Item = Criterion> + '_ {
        let known = |criterion: &Criterion| {
            let mut summaries = self.runs.iter().map(|run| &run.summary);
            summaries.any(|summary| summary.most(*criterion).is_some())
        };
        Criterion::BOTH.into_iter().filter(known)
    }

    /// Returns a figure of the most that was carried, over the rounds that have it.
    pub(super) fn most(
        &self,
        criterion: Criterion,
        figure: impl Fn(&Carried) -> Option<f64>,
    ) -> Option<Spread> {
        self.summary(|summary| figure(&summary.most(criterion)?))
    }

    /// Returns a figure over the rounds that have it.
    pub(super) fn figure(&self, figure: impl Fn(&RunRecord) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(|run| figure(run)))
    }

    /// Returns a figure of the steps by participants: the median over the rounds.
    pub(super) fn steps(&self, figure: impl Fn(&Step) -> Option<f64>) -> Vec<(f64, f64)> {
        self.by_participants(|_, step| figure(step))
    }

    /// Returns the same by PeerConnections.
    pub(super) fn steps_by_connections(
        &self,
        figure: impl Fn(&Step) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        self.by(|step| step.peer_connections, |_, step| figure(step))
    }

    /// Returns a figure of the seconds within each step, by participants: the median over the
    /// rounds of its mean.
    pub(super) fn seconds_of_steps(
        &self,
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        self.by_participants(|run, step| {
            let values: Vec<f64> = run.samples_of(step).filter_map(&figure).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        })
    }

    fn by_participants(
        &self,
        figure: impl Fn(&RunRecord, &Step) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        self.by(|step| step.participants, figure)
    }

    fn by(
        &self,
        number: impl Fn(&Step) -> u32,
        figure: impl Fn(&RunRecord, &Step) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for run in &self.runs {
            for step in &run.steps {
                if let Some(value) = figure(run, step).filter(|value| value.is_finite()) {
                    values.entry(number(step)).or_default().push(value);
                }
            }
        }
        let median = |(n, values): (u32, Vec<f64>)| {
            Some((f64::from(n), Spread::of(values.into_iter())?.median))
        };
        values.into_iter().filter_map(median).collect()
    }

    /// Returns the version that the server reports.
    pub(super) fn version(&self) -> Option<&str> {
        self.runs
            .iter()
            .find_map(|run| run.server.version.as_deref())
    }
}

impl Spread {
    /// Returns `None` without values.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = match values.len() % 2 {
            0 => (values.get(middle.checked_sub(1)?)? + upper) / 2.0,
            _ => upper,
        };
        Some(Self {
            median,
            least: *values.first()?,
            most: *values.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;
    use crate::record::example;

    #[test]
    fn rounds_are_put_together() {
        let report = example::report();
        let sections = sections(&report);
        assert_eq!(sections.len(), 1);
        let names: Vec<&str> = sections[0].servers.iter().map(|group| group.name).collect();
        assert_eq!(names, ["portunus", "janus"]);
        assert!(
            sections[0]
                .servers
                .iter()
                .all(|group| group.runs.len() == 2)
        );
        assert_eq!(sections[0].peer().unwrap().name, "janus");
        assert_eq!(sections[0].ceilings().len(), 2);
    }

    #[test]
    fn medians_of_even_and_odd_sets() {
        let of = |values: &[f64]| Spread::of(values.iter().copied()).map(|spread| spread.median);
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(&[4.0, 1.0]), Some(2.5));
        assert_eq!(of(&[f64::NAN]), None);
    }
}
