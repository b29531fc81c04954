//! Completions for shells and manual pages, made from the command line's own description.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> ExitCode {
    clap_complete::generate(shell, &mut Cli::command(), "portunus", &mut io::stdout());
    ExitCode::SUCCESS
}

/// Writes `portunus.1` and a page for each subcommand into a folder.
pub(crate) fn pages(folder: &Path) -> ExitCode {
    match clap_mangen::generate_to(Cli::command(), folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("portunus: cannot write to {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}
