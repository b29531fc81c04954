//! The command line.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::ceiling::Topology;
use crate::progress::Progress;
use crate::record::RunRecord;
use crate::scenario::{ScenarioError, bridge, echo, load, recording, room, sip, streaming};
use crate::traffic::Traffic;
use crate::{ceiling, inside, lab, report};

/// The program's name.
const NAME: &str = "portunus-hammer";

/// Loads a WebRTC server with real clients and measures what it does with them.
#[derive(Debug, Parser)]
#[command(name = NAME, version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What can be asked for; each names the module that does it.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measure what one core can do at most: a bare loop of encrypting and sending
    Ceiling(Box<ceiling::Options>),
    /// One source to many viewers, through the server's streaming plugin
    Streaming(Box<streaming::Options>),
    /// Peers that send media and get the same back, through the server's echo test plugin
    Echo(Box<echo::Options>),
    /// Some publish in a video room, and many watch all of them
    Room(Box<room::RoomOptions>),
    /// A video room whose endpoints all publish and watch each other
    Star(Box<room::StarOptions>),
    /// Video rooms whose endpoints all publish and watch each other
    Rooms(Box<room::RoomsOptions>),
    /// Publishers of a video room who are all recorded, while others watch them
    Record(Box<recording::Options>),
    /// Participants of audio rooms, who hear what the server mixes of those who talk
    Bridge(Box<bridge::Options>),
    /// Calls by SIP to a far end that answers and sends back what it hears; or accounts that are registered
    Sip(Box<sip::Options>),
    /// Run a scenario against one or several servers in turn, between two network namespaces
    Lab(lab::Options),
    /// Start a program in a network namespace and on given cores
    #[command(hide = true)]
    Inside(inside::Options),
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

/// What a scenario's options say that others want to know.
pub(crate) struct ScenarioFacts {
    pub(crate) traffic: Traffic,
    pub(crate) profile: Option<ceiling::Profile>,
    pub(crate) check_share: f64,
    pub(crate) topology: Topology,
}

impl Cli {
    /// None if it is not a scenario.
    pub(crate) fn scenario(&self) -> Option<ScenarioFacts> {
        let (load, media, topology) = match &self.command {
            Command::Streaming(options) => (&options.load, &options.media, options.topology()),
            Command::Echo(options) => (&options.load, &options.media, Topology::Echo),
            Command::Room(options) => (&options.load, &options.media, options.topology()),
            Command::Star(options) => (&options.load, &options.media, options.topology()),
            Command::Rooms(options) => (&options.load, &options.media, options.topology()),
            Command::Record(options) => (&options.load, &options.media, options.topology()),
            Command::Bridge(options) => {
                let load = &options.load;
                return Some(ScenarioFacts {
                    traffic: options.traffic(),
                    profile: load.target.profile,
                    check_share: load.check_share,
                    topology: options.topology(),
                });
            }
            Command::Sip(options) => {
                let load = &options.load;
                return Some(ScenarioFacts {
                    traffic: options.traffic(),
                    profile: load.target.profile,
                    check_share: load.check_share,
                    topology: options.topology(),
                });
            }
            Command::Ceiling(_)
            | Command::Lab(_)
            | Command::Inside(_)
            | Command::Report(_)
            | Command::Completions { .. }
            | Command::Man { .. } => return None,
        };
        Some(ScenarioFacts {
            traffic: media.traffic.clone(),
            profile: load.target.profile,
            check_share: load.check_share,
            topology,
        })
    }

    /// Does what the command line asks for.
    pub fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self.command {
            Command::Ceiling(options) => ceiling::run(&options)?,
            Command::Streaming(options) => {
                show(&options.load, |progress| streaming::run(&options, progress))?;
            }
            Command::Echo(options) => {
                show(&options.load, |progress| echo::run(&options, progress))?;
            }
            Command::Room(options) => {
                show(&options.load, |progress| room::run_room(&options, progress))?;
            }
            Command::Star(options) => {
                show(&options.load, |progress| room::run_star(&options, progress))?;
            }
            Command::Rooms(options) => {
                show(&options.load, |progress| {
                    room::run_rooms(&options, progress)
                })?;
            }
            Command::Record(options) => {
                show(&options.load, |progress| recording::run(&options, progress))?;
            }
            Command::Bridge(options) => {
                show(&options.load, |progress| bridge::run(&options, progress))?;
            }
            Command::Sip(options) => {
                show(&options.load, |progress| sip::run(&options, progress))?;
            }
            Command::Lab(options) => lab::run(&options)?,
            Command::Inside(options) => return Err(inside::run(options).into()),
            Command::Report(options) => report::run(&options)?,
            Command::Completions { shell } => {
                clap_complete::generate(shell, &mut Self::command(), NAME, &mut io::stdout());
            }
            Command::Man { folder } => clap_mangen::generate_to(Self::command(), folder)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(
    options: &load::Options,
    scenario: impl FnOnce(&Progress) -> Result<RunRecord, ScenarioError>,
) -> Result<(), ScenarioError> {
    let target = &options.target;
    let progress = Progress::start(target.name.as_ref().unwrap_or(&target.janus));
    let record = scenario(&progress)?;
    for warning in &record.summary.warnings {
        progress.keep(&format!("warning: {warning}"));
    }
    Ok(())
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
