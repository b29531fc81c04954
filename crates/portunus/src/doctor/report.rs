//! The report of findings: for people in 80 columns, or as JSON.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::finding::{Finding, Level, Subject};

/// The columns of a line.
const WIDTH: usize = 80;
/// The columns before the text of a finding.
const INDENT: usize = 11;

/// The content of the report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The version of this program.
    pub(crate) version: &'static str,
    /// The examined configuration, or `None` for the defaults.
    pub(crate) file: Option<String>,
    /// The worst level of all findings.
    pub(crate) level: Level,
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    /// Sorts the findings by their subjects.
    pub(crate) fn new(file: Option<String>, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| finding.subject);
        let count = |level| findings.iter().filter(|it| it.level == level).count();
        Report {
            version: env!("CARGO_PKG_VERSION"),
            file,
            level: findings
                .iter()
                .map(|it| it.level)
                .max()
                .unwrap_or(Level::Ok),
            errors: count(Level::Error),
            warnings: count(Level::Warning),
            findings,
        }
    }

    /// Prints one JSON object.
    pub(crate) fn print_json(&self) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        text.push('\n');
        io::stdout().write_all(text.as_bytes())
    }

    /// Prints it for people, with colours on a terminal.
    pub(crate) fn print(&self) -> io::Result<()> {
        anstream::stdout().write_all(self.text().as_bytes())
    }

    /// Returns the text with colours.
    fn text(&self) -> String {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => "the defaults of all keys".to_owned(),
        };
        let mut text = format!("Portunus {} with {file}\n", self.version);
        let mut heading = None;
        let bold = Style::new().bold();
        for finding in &self.findings {
            if heading != Some(finding.subject) {
                heading = Some(finding.subject);
                let name = title(finding.subject);
                text.push_str(&format!("\n{bold}{name}{bold:#}\n"));
            }
            let (level, style) = shown(finding.level);
            let lines = wrap(&finding.text);
            let first = lines.first().map(String::as_str).unwrap_or_default();
            text.push_str(&format!("  {style}{level:<8}{style:#} {first}\n"));
            let change = finding.change.iter().map(|it| format!("Change: {it}"));
            let change: Vec<_> = change.flat_map(|it| wrap(&it)).collect();
            for line in lines.iter().skip(1).chain(&change) {
                text.push_str(&format!("{:INDENT$}{line}\n", ""));
            }
        }
        text.push_str(&format!("\n{}\n", self.summary()));
        text
    }

    fn summary(&self) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            number => format!("{number} {what}s"),
        };
        match (self.errors, self.warnings) {
            (0, 0) => "Nothing has to be changed.".to_owned(),
            (0, warnings) => format!("{}.", count(warnings, "warning")),
            (errors, 0) => format!("{}.", count(errors, "error")),
            (errors, warnings) => format!(
                "{}, {}.",
                count(errors, "error"),
                count(warnings, "warning")
            ),
        }
    }
}

fn title(subject: Subject) -> &'static str {
    match subject {
        Subject::Configuration => "Configuration",
        Subject::Server => "Server",
        Subject::Addresses => "Addresses",
        Subject::Ports => "Ports",
        Subject::Certificates => "Certificates",
        Subject::Connections => "Connections to other servers",
        Subject::Limits => "Limits",
        Subject::Clock => "Clock",
        Subject::Disk => "Disk",
    }
}

fn shown(level: Level) -> (&'static str, Style) {
    let colour = |colour: AnsiColor| colour.on_default();
    match level {
        Level::Ok => ("ok", colour(AnsiColor::Green)),
        Level::Note => ("note", colour(AnsiColor::Cyan)),
        Level::Warning => ("warning", colour(AnsiColor::Yellow).bold()),
        Level::Error => ("error", colour(AnsiColor::Red).bold()),
    }
}

/// Breaks a text between words. A word longer than a line stays whole, so that it can be copied.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let length = |text: &str| text.chars().count();
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if length(line) + 1 + length(word) <= WIDTH - INDENT => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::super::finding::Check;
    use super::*;

    fn report() -> Report {
        let findings = vec![
            Finding::ok(Check::Disk, "There is room."),
            Finding::warning(Check::PrivateAddresses, "many words ".repeat(20)).change("Do it."),
            Finding::note(Check::Address, "short"),
        ];
        Report::new(Some("/etc/x.toml".to_owned()), findings)
    }

    #[test]
    fn lines_fit_80_columns_and_subjects_have_an_order() {
        let text = anstream::adapter::strip_str(&report().text()).to_string();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let at = |part: &str| text.find(part).unwrap();
        assert!(at("\nAddresses\n") < at("  warning  many words"));
        assert!(at("           Change: Do it.\n") < at("\nDisk\n"));
        assert!(text.ends_with("\n1 warning.\n"), "{text}");
        assert!(text.starts_with("Portunus "), "{text}");
    }

    #[test]
    fn a_long_word_stays_whole() {
        let word = "x".repeat(100);
        assert_eq!(wrap(&format!("a {word} b")), ["a", &word, "b"]);
        assert_eq!(wrap(""), [""]);
    }

    #[test]
    fn the_json_has_what_scripts_ask_for() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["level"], "warning");
        assert_eq!((&json["errors"], &json["warnings"]), (&0.into(), &1.into()));
        let finding = &json["findings"][0];
        assert_eq!(finding["check"], "private-addresses");
        assert_eq!(finding["subject"], "addresses");
        assert_eq!(finding["change"], "Do it.");
        assert!(json["findings"][1].get("change").is_none());
    }
}
