//! Output of the figures for people and other programs.

mod cluster;
mod comparisons;
mod csv;
pub(crate) mod escape;
pub(crate) mod html;
pub(crate) mod plot;
mod quality;
mod table;
mod text;
mod view;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};

use crate::record::{ReadError, Report, RunRecord};
use crate::thresholds::{self, Threshold};
pub use text::for_terminal;

/// The file of the figures in the folder that [`write_all`] writes.
pub(crate) const JSON: &str = "report.json";
const CSV: &str = "samples.csv";
const HTML: &str = "report.html";

/// The inputs and outputs of `hammer report`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("form").required(true).multiple(true))]
pub struct Options {
    /// JSON that earlier runs wrote; several are joined
    #[arg(required = true, value_name = "FILE.json")]
    files: Vec<PathBuf>,
    /// Write a page with tables and plots, and everything it needs in it
    #[arg(long, value_name = "FILE.html", group = "form")]
    html: Option<PathBuf>,
    /// Write each second of each run as a line of CSV
    #[arg(long, value_name = "FILE.csv", group = "form")]
    csv: Option<PathBuf>,
    /// Write all runs as one file of JSON
    #[arg(long, value_name = "FILE.json", group = "form")]
    json: Option<PathBuf>,
    /// Print the table of the figures
    #[arg(long, group = "form")]
    table: bool,
    /// The title [default: the first file's]
    #[arg(long)]
    title: Option<String>,
    /// End with status 3 unless each run meets this, such as 'loss<1%'; may be given several times
    #[arg(long, value_name = "THRESHOLD", group = "form")]
    require: Vec<Threshold>,
}

/// The reason why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// An input cannot be used.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An output cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Reads the files, joins them, and writes the requested outputs. Returns whether all runs meet the
/// thresholds.
pub fn run(options: &Options) -> Result<bool, ReportError> {
    let mut joined: Option<Report> = None;
    for file in &options.files {
        let report = Report::read(file)?;
        match &mut joined {
            Some(joined) => joined.runs.extend(report.runs),
            None => joined = Some(report),
        }
    }
    let Some(mut report) = joined else {
        return Ok(true);
    };
    if let Some(title) = &options.title {
        report.title.clone_from(title);
    }
    if let Some(path) = &options.json {
        written(path, report.write(path))?;
    }
    if let Some(path) = &options.csv {
        written(path, write_csv(&report, path))?;
    }
    if let Some(path) = &options.html {
        written(path, fs::write(path, html::page(&report)))?;
    }
    if options.table {
        print!("{}", for_terminal(&report));
    }
    Ok(thresholds::all_met(&options.require, &report.runs))
}

/// Writes each second of a run as a line of CSV.
pub(crate) fn write_samples(run: &RunRecord, path: &Path) -> Result<(), ReportError> {
    let report = Report::new(run.scenario.name.clone(), vec![run.clone()]);
    written(path, write_csv(&report, path))
}

/// Writes JSON, CSV and HTML into `folder`.
pub(crate) fn write_all(report: &Report, folder: &Path) -> Result<(), ReportError> {
    let (json, csv, html) = (folder.join(JSON), folder.join(CSV), folder.join(HTML));
    written(&json, report.write(&json))?;
    written(&csv, write_csv(report, &csv))?;
    written(&html, fs::write(&html, html::page(report)))
}

fn write_csv(report: &Report, path: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    csv::write(report, &mut out)?;
    out.flush()
}

fn written(path: &Path, outcome: io::Result<()>) -> Result<(), ReportError> {
    outcome.map_err(|source| ReportError::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::record::example;

    #[test]
    fn all_forms_are_written_and_json_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let report = example::report();
        write_all(&report, folder.path()).unwrap();
        assert_eq!(Report::read(&folder.path().join(JSON)).unwrap(), report);
        let csv = fs::read_to_string(folder.path().join(CSV)).unwrap();
        let seconds: usize = report.runs.iter().map(|run| run.samples.len()).sum();
        assert_eq!(csv.lines().count(), seconds + 1);
        let columns = |line: &str| line.split(',').count();
        assert!(
            csv.lines()
                .all(|line| columns(line) == columns(csv.lines().next().unwrap()))
        );
        assert!(fs::metadata(folder.path().join(HTML)).unwrap().len() > 10_000);
    }
}
