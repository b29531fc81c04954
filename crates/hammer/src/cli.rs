//! The command line.

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{ceiling, report};

/// Loads a WebRTC server with real clients and measures what it does with them.
#[derive(Debug, Parser)]
#[command(name = "portunus-hammer", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What can be asked for; each names the module that does it.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measure what one core can do at most: a bare loop of encrypting and sending
    Ceiling(ceiling::Options),
    /// Turn the JSON of earlier runs into other forms
    Report(report::Options),
}

impl Cli {
    /// Does what the command line asks for.
    pub fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self.command {
            Command::Ceiling(options) => ceiling::run(&options)?,
            Command::Report(options) => report::run(&options)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
