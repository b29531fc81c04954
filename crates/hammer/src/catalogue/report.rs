//! The report of a call: figures with their plots and numbers, and what is missing.

use std::collections::BTreeMap;

use serde::Serialize;

use super::call::Call;
use super::drawing::{self, Drawn};
use super::figure::{Figure, X};
use super::headlines::{self, Row};
use crate::machine::{usage, wall_clock};
use crate::record::Machine;

/// The version of the form of `figures.json`.
const FORM: u32 = 1;

/// All that a report has.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) form: u32,
    /// The time of writing, in seconds since 1970 (UTC).
    pub(super) written_unix_s: f64,
    pub(super) machine: Machine,
    /// hammer's version and build.
    pub(super) hammer: String,
    /// The extent and the cores.
    pub(super) setting: String,
    /// The servers with their versions.
    pub(super) versions: BTreeMap<String, String>,
    pub(super) headlines: Vec<Row>,
    pub(super) figures: Vec<Shown>,
}

/// A figure in the report.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    #[serde(skip)]
    pub(super) figure: &'static Figure,
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) citation: String,
    pub(super) plots: Vec<Drawn>,
    /// The commands of its runs.
    pub(super) commands: Vec<String>,
    /// The files of its runs.
    pub(super) runs: Vec<String>,
    /// What was not measured, and why.
    pub(super) missing: Vec<String>,
    /// Doubts about its runs.
    pub(super) doubts: Vec<String>,
}

impl Report {
    /// Draws what a call has measured.
    pub(super) fn of(call: &Call<'_>) -> Self {
        let figures = call.figures.iter().map(|figure| Shown::of(call, figure));
        let build = if cfg!(debug_assertions) {
            "debug build"
        } else {
            "release build"
        };
        Self {
            form: FORM,
            written_unix_s: wall_clock().as_secs_f64(),
            machine: usage::machine(),
            hammer: format!("{} ({build})", env!("CARGO_PKG_VERSION")),
            setting: call.state.setting.clone(),
            versions: call.state.versions.clone(),
            headlines: headlines::rows(&call.measured),
            figures: figures.collect(),
        }
    }

    /// Returns whether anything was measured.
    pub(super) fn has_runs(&self) -> bool {
        self.figures.iter().any(|shown| !shown.plots.is_empty())
    }

    /// Returns the first reason why something was not measured.
    pub(super) fn first_reason(&self) -> String {
        let mut reasons = self.figures.iter().flat_map(|shown| &shown.missing);
        reasons.next().cloned().unwrap_or_default()
    }

    /// Returns the headlines and what is missing, for a terminal.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for row in &self.headlines {
            let ours = row.ours.as_deref().unwrap_or("not measured");
            let mut rest = vec![format!("Portunus: {ours}")];
            rest.extend(row.peer.clone());
            if !row.published.is_empty() {
                rest.push(row.published.to_owned());
            }
            text += &format!("{}\n    {}\n", row.claim, rest.join("\n    "));
        }
        for shown in &self.figures {
            for missing in &shown.missing {
                text += &format!("{}: not measured: {missing}\n", shown.name);
            }
        }
        text
    }
}

impl Shown {
    fn of(call: &Call<'_>, figure: &'static Figure) -> Self {
        let work = figure.work;
        let jobs = call.jobs.iter().filter(|job| {
            let mut loads = figure.loads.iter();
            figure.peers.contains(&job.peer) && loads.any(|load| load.name == job.load.name)
        });
        let (mut commands, mut runs, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        missing.extend(figure.missing.map(str::to_owned));
        let mut doubts: Vec<String> = Vec::new();
        for job in jobs {
            let (name, outcome) = (job.name(), call.state.done.get(&job.name()));
            let failure = outcome.and_then(|outcome| outcome.failure.clone());
            let reason = call.server_of(job).err().or(failure);
            if let Some(reason) = reason {
                missing.push(format!("{name}: {reason}"));
            } else if outcome.is_none() {
                missing.push(format!("{name}: the call ended before it"));
            }
            commands.extend(outcome.map(|outcome| outcome.command.clone()));
            for run in call.measured.of(job.load, job.peer) {
                let warnings = run.summary.warnings.iter();
                for doubt in warnings.map(|warning| format!("{name}: {warning}")) {
                    if !doubts.contains(&doubt) {
                        doubts.push(doubt);
                    }
                }
            }
            if !call.measured.of(job.load, job.peer).is_empty() {
                runs.push(format!("runs/{name}.json"));
            }
        }
        Self {
            figure,
            name: figure.name,
            title: figure.title,
            citation: format!("{} ({}). {}", work.title, work.published, work.machine),
            plots: drawing::draw(figure, &call.measured),
            commands,
            runs,
            missing,
            doubts,
        }
    }

    /// Returns the rows of its numbers: plot, line, and the last value with its place.
    pub(super) fn numbers(&self) -> Vec<[String; 3]> {
        let mut rows = Vec::new();
        for (drawn, plot) in self.plots.iter().filter_map(|drawn| {
            let mut plots = self.figure.plots.iter();
            Some((drawn, plots.find(|plot| plot.name == drawn.name)?))
        }) {
            for line in &drawn.lines {
                let Some((x, y)) = line.points.last() else {
                    continue;
                };
                let value = drawing::value(plot.y, *y);
                let value = match plot.x {
                    X::Servers => value,
                    _ => format!("{value} at {} {}", crate::figures::digits(*x), drawn.x),
                };
                rows.push([
                    format!("{} ({})", drawn.title, drawn.y),
                    line.name.clone(),
                    value,
                ]);
            }
        }
        rows
    }
}
