//! The program `portunus-hammer`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use portunus_hammer::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("portunus-hammer: {error}");
            ExitCode::FAILURE
        }
    }
}
