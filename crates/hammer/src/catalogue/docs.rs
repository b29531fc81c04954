//! Pictures and tables within a page of Markdown.
//!
//! A block of the page is between the marks `<!-- figures: NAME -->` and `<!-- /figures -->`. NAME
//! is a figure's, or `headlines`, or `machine`. Blocks of figures that were not measured stay. A call
//! that measures some figures only leaves `headlines` and `machine`, which are about all of one call,
//! and says below each of its figures when and where it was measured.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::error::FiguresError;
use super::files::{self, picture_name};
use super::report::{Report, Shown};
use crate::report::html::date;

const END: &str = "<!-- /figures -->";
/// The file of all points, beside the pictures.
const CSV: &str = "measured.csv";

// Writing into a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = writeln!($out, $($arguments)*); };
}

/// Which figures a call measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of the catalogue.
    All,
    /// The figures named on the command line.
    Named,
}

/// Fills the page. The pictures go to a folder beside it that has its name.
pub(super) fn write(report: &Report, page: &Path, extent: Extent) -> Result<(), FiguresError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| FiguresError::Write(format!("{path}: {error}"))
    };
    let text = fs::read_to_string(page).map_err(failed(page))?;
    let folder = page.with_extension("");
    files::write_pictures(report, &folder).map_err(failed(&folder))?;
    let mut csv = Vec::new();
    files::write_csv(report, &mut csv).map_err(failed(&folder))?;
    let mut csv = String::from_utf8_lossy(&csv).into_owned();
    let file = folder.join(CSV);
    if extent == Extent::Named
        && let Ok(old) = fs::read_to_string(&file)
    {
        csv = merged(&old, &csv);
    }
    fs::write(&file, csv).map_err(failed(&file))?;
    let pictures = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let filled = filled(&text, |name| block(report, name, &pictures, extent));
    fs::write(page, filled).map_err(failed(page))
}

/// Replaces the blocks for which there is a text.
fn filled(page: &str, text: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        let Some(name) = name_of(line) else {
            continue;
        };
        let mut old = String::new();
        for line in lines.by_ref() {
            if line.trim() == END {
                break;
            }
            old += line;
            old.push('\n');
        }
        out += &text(name).unwrap_or(old);
        out += END;
        out.push('\n');
    }
    out
}

fn name_of(line: &str) -> Option<&str> {
    let name = line
        .trim()
        .strip_prefix("<!-- figures:")?
        .strip_suffix("-->")?;
    Some(name.trim())
}

fn block(report: &Report, name: &str, pictures: &str, extent: Extent) -> Option<String> {
    match (name, extent) {
        ("headlines", Extent::All) => headlines(report),
        ("machine", Extent::All) => Some(machine(report)),
        ("headlines" | "machine", Extent::Named) => None,
        _ => {
            let shown = report.figures.iter().find(|shown| shown.name == name)?;
            if shown.plots.is_empty() {
                return None;
            }
            let mut text = figure(report, shown, pictures);
            if extent == Extent::Named {
                put!(text, "\n{}", machine(report).trim_end());
            }
            Some(text)
        }
    }
}

/// Returns the lines of `new`, with those of `old` about other figures before them.
fn merged(old: &str, new: &str) -> String {
    let figure = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
    let measured: HashSet<String> = new.lines().map(figure).collect();
    let mut new = new.lines();
    let heading = new.next().into_iter();
    let kept = old.lines().filter(|line| !measured.contains(&figure(line)));
    let lines = heading.chain(kept).chain(new);
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn headlines(report: &Report) -> Option<String> {
    if report.headlines.is_empty() {
        return None;
    }
    let mut out = String::new();
    put!(
        out,
        "| | published | a peer here | Portunus here |\n|---|---|---|---|"
    );
    for row in &report.headlines {
        put!(
            out,
            "| [{}](#{}) | {} | {} | {} |",
            row.claim,
            row.figure,
            row.published,
            row.peer.as_deref().unwrap_or_default(),
            row.ours.as_deref().unwrap_or_default()
        );
    }
    Some(out)
}

fn machine(report: &Report) -> String {
    let versions = report.versions.iter();
    let versions: Vec<String> = versions
        .map(|(name, version)| format!("{name}: {version}"))
        .collect();
    let machine = &report.machine;
    format!(
        "Measured {} on {} cores of {}, Linux {}; {}. hammer {}.\n{}.\n",
        date(report.written_unix_s),
        machine.cores,
        machine.processor,
        machine.kernel,
        report.setting,
        report.hammer,
        versions.join("; ")
    )
}

fn figure(report: &Report, shown: &Shown, pictures: &str) -> String {
    let mut out = String::new();
    for drawn in &shown.plots {
        let file = picture_name(shown.name, drawn.name);
        put!(
            out,
            "![{}: {}]({pictures}/{file})",
            shown.title,
            drawn.title
        );
    }
    put!(out, "\n| | | the last of the line |\n|---|---|---|");
    let mut before = String::new();
    for [plot, line, value] in shown.numbers() {
        let first = if plot == before { "" } else { &plot };
        put!(out, "| {first} | {line} | {value} |");
        before = plot;
    }
    for missing in &shown.missing {
        put!(out, "\nNot measured: {missing}.");
    }
    let quick = if report.setting.starts_with("quick") {
        " --quick"
    } else {
        ""
    };
    put!(
        out,
        "\n```sh\nsudo portunus-hammer figures{quick} {}\n```",
        shown.name
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_filled_and_others_stay() {
        let page = "# A\n<!-- figures: a -->\nold a\n<!-- /figures -->\ntext\n<!-- figures: b -->\nold b\n<!-- /figures -->\n";
        let new = filled(page, |name| (name == "a").then(|| "new a\n".to_owned()));
        assert_eq!(new, page.replace("old a", "new a"));
        // Once more, nothing changes.
        assert_eq!(filled(&new, |_| None), new);
    }

    #[test]
    fn points_of_other_figures_stay() {
        let old = "figure,x\na,1\nb,1\na,2\nc,1\n";
        let new = "figure,x\na,3\n";
        assert_eq!(merged(old, new), "figure,x\nb,1\nc,1\na,3\n");
    }
}
