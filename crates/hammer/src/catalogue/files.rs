//! The files of a report: the page, a picture for each plot, JSON and CSV.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::error::FiguresError;
use super::report::Report;
use super::{page, picture};

/// The names of the files.
const HTML: &str = "figures.html";
const JSON: &str = "figures.json";
const CSV: &str = "figures.csv";
const PICTURES: &str = "pictures";

/// Writes all files.
pub(super) fn write(report: &Report, folder: &Path) -> Result<(), FiguresError> {
    let failed = |error: io::Error| FiguresError::Write(format!("{}: {error}", folder.display()));
    let json = serde_json::to_string_pretty(report).map_err(|error| failed(error.into()))?;
    fs::write(folder.join(JSON), json + "\n").map_err(failed)?;
    let mut csv = Vec::new();
    write_csv(report, &mut csv).map_err(failed)?;
    fs::write(folder.join(CSV), csv).map_err(failed)?;
    fs::write(folder.join(HTML), page::page(report)).map_err(failed)?;
    write_pictures(report, &folder.join(PICTURES)).map_err(failed)
}

/// Writes a picture for each plot.
pub(super) fn write_pictures(report: &Report, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for shown in &report.figures {
        for drawn in &shown.plots {
            let path = folder.join(picture_name(shown.name, drawn.name));
            fs::write(path, picture::standalone(shown.name, drawn))?;
        }
    }
    Ok(())
}

/// Returns the name of a plot's file.
pub(super) fn picture_name(figure: &str, plot: &str) -> String {
    format!("{figure}-{plot}.svg")
}

/// Writes a line for each point of each plot.
pub(super) fn write_csv(report: &Report, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "figure,plot,line,kind,x_name,x,y_name,y")?;
    for shown in &report.figures {
        for drawn in &shown.plots {
            for line in &drawn.lines {
                for (x, y) in &line.points {
                    writeln!(
                        out,
                        "{},{},{},{},{},{},{},{}",
                        shown.name,
                        drawn.name,
                        text(&line.name),
                        line.kind.name(),
                        text(drawn.x),
                        number(*x),
                        text(drawn.y),
                        number(*y)
                    )?;
                }
            }
        }
    }
    Ok(())
}

fn number(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

/// Quotes text as RFC 4180 requires.
fn text(value: &str) -> String {
    match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    }
}
