//! `--check-config`: reports faults of a configuration that parses.

use std::path::Path;
use std::process::ExitCode;

use portunus_core::configuration::{Finding, Lines, Severity};

use crate::config::{Config, DEFAULT_FILE};
use crate::exit_status::WRONG_USE;

/// Prints each fault with its line, and then a summary.
pub(crate) fn run(mut config: Config, file: Option<&Path>) -> ExitCode {
    let mut findings = config.probe();
    findings.extend(unresolved(&mut config));
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    let lines = Lines::of(text.as_deref().unwrap_or_default());
    // Keys that are not in the file come first.
    findings.sort_by_key(|finding| lines.line(&finding.key));
    for finding in &findings {
        let place = file.map(|file| match lines.line(&finding.key) {
            Some(line) => format!("{}:{line}: ", file.display()),
            None => format!("{}: ", file.display()),
        });
        eprintln!("{}{finding}", place.unwrap_or_default());
    }
    let is_error = |finding: &Finding| finding.severity == Severity::Error;
    if findings.iter().any(is_error) {
        return ExitCode::from(WRONG_USE);
    }
    let what = match findings.len() {
        0 => "no mistakes".to_owned(),
        1 => "no mistakes, and a warning".to_owned(),
        count => format!("no mistakes, and {count} warnings"),
    };
    match file {
        Some(file) => println!("{}: {what}", file.display()),
        None => println!(
            "No configuration: {DEFAULT_FILE} does not exist; the defaults are used: {what}"
        ),
    }
    ExitCode::SUCCESS
}

/// Logs the faults at the start. If one stops the server, the server's own error follows.
pub(crate) fn log(config: &Config) {
    for finding in config.probe() {
        tracing::warn!("{}: {}", finding.key, finding.text);
    }
}

/// Resolves the names of `media.announced`.
fn unresolved(config: &mut Config) -> Option<Finding> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().ok()?;
    let error = runtime.block_on(config.resolve_announced()).err()?;
    Some(Finding {
        key: "media.announced".to_owned(),
        text: error.to_string(),
        severity: Severity::Error,
    })
}
