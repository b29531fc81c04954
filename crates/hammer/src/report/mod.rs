//! Forms of the figures for people and other programs.

mod csv;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;

use crate::record::{ReadError, Report};

/// What to make of which files.
#[derive(Debug, Args)]
pub struct Options {
    /// JSON that earlier runs wrote; several are joined
    #[arg(required = true, value_name = "FILE.json")]
    files: Vec<PathBuf>,
    /// Write each second of each run as a line of CSV
    #[arg(long, value_name = "FILE.csv", required = true)]
    csv: Option<PathBuf>,
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// An input is not usable.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An output cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Reads the files, joins them and writes what is asked for.
pub fn run(options: &Options) -> Result<(), ReportError> {
    let mut joined: Option<Report> = None;
    for file in &options.files {
        let report = Report::read(file)?;
        match &mut joined {
            Some(joined) => joined.runs.extend(report.runs),
            None => joined = Some(report),
        }
    }
    let Some(report) = joined else {
        return Ok(());
    };
    if let Some(path) = &options.csv {
        let written = File::create(path).map(BufWriter::new).and_then(|mut out| {
            csv::write(&report, &mut out)?;
            out.flush()
        });
        written.map_err(|source| ReportError::Write {
            path: path.clone(),
            source,
        })?;
    }
    Ok(())
}
