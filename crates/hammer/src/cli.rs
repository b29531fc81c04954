//! The command line.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::lab::launcher;
use crate::progress::Progress;
use crate::scenario::Scenario;
use crate::{catalogue, ceiling, cluster, lab, report, thresholds};

/// The program's name.
const NAME: &str = "portunus-hammer";

/// Loads a WebRTC server with real clients and measures what it does with them.
#[derive(Debug, Parser)]
#[command(name = NAME, version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands. Each names the module that implements it.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measure what one core can do at most: a bare loop of encrypting and sending
    Ceiling(Box<ceiling::Options>),
    #[command(flatten)]
    Scenario(Scenario),
    /// Run a scenario against one or several servers in turn, between two network namespaces
    Lab(lab::Options),
    /// Load several nodes of a cluster, each in a network namespace, while nodes, links and the bus
    /// fail by script
    Cluster(Box<cluster::Options>),
    /// Start a program in a network namespace and on given cores
    #[command(hide = true)]
    Inside(launcher::Options),
    /// Measure named figures of published evaluations, and draw them beside what was published
    Figures(Box<catalogue::Options>),
    /// Turn the JSON of earlier runs into other forms
    Report(report::Options),
    /// Print what a shell needs to complete commands and options
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages, one for each command, into a folder
    #[command(hide = true)]
    Man {
        /// The folder, which has to be there
        folder: PathBuf,
    },
}

impl Cli {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self.command {
            Command::Ceiling(options) => ceiling::run(&options)?,
            Command::Scenario(scenario) => return Ok(status(show(&scenario)?)),
            Command::Lab(options) => return Ok(status(lab::run(&options)?)),
            Command::Cluster(options) => cluster::run(&options)?,
            Command::Figures(options) => catalogue::run(&options)?,
            Command::Inside(options) => return Err(launcher::run(options).into()),
            Command::Report(options) => return Ok(status(report::run(&options)?)),
            Command::Completions { shell } => {
                clap_complete::generate(shell, &mut Self::command(), NAME, &mut io::stdout());
            }
            Command::Man { folder } => clap_mangen::generate_to(Self::command(), folder)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs a scenario. Returns whether its figures meet the thresholds.
fn show(scenario: &Scenario) -> Result<bool, Box<dyn Error>> {
    let load = scenario.demand().load;
    let progress = Progress::start(load.target.name.as_deref().unwrap_or(scenario.url()));
    let record = scenario.run(&progress)?;
    for warning in &record.summary.warnings {
        progress.keep(&format!("warning: {warning}"));
    }
    if let Some(path) = &load.csv {
        report::write_samples(&record, path)?;
    }
    Ok(thresholds::all_met(&load.require, &[record]))
}

fn status(met: bool) -> ExitCode {
    match met {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(thresholds::NOT_MET as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_reference_names_each_option() {
        let reference = include_str!("../../../docs/hammer.md");
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        for subcommand in shown {
            for option in subcommand.get_arguments() {
                let Some(long) = option.get_long() else {
                    continue;
                };
                let ends = [' ', '`', ','].map(|end| format!("--{long}{end}"));
                let named = ends.iter().any(|text| reference.contains(text));
                assert!(named, "{} --{long}", subcommand.get_name());
            }
        }
    }
}
