//! The Portunus WebRTC server: reads the configuration, wires the parts together, and runs until told to stop.
#![forbid(unsafe_code)]

mod banner;
mod config;
mod logging;
mod server;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use config::{Config, ConfigError, DEFAULT_FILE};

/// A general-purpose WebRTC server that speaks the Janus API.
///
/// Without arguments it runs with its defaults: web pages and the Janus API over HTTP on port 8088
/// (/janus), over WebSocket on 8188, media on UDP 10000 and up, one port a worker.
#[derive(Debug, Parser)]
#[command(name = "portunus", version, after_help = AFTER_HELP)]
struct Arguments {
    /// The configuration file; without this option /etc/portunus/portunus.toml is read if it exists.
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Check the configuration, tell its mistakes with their lines, and exit.
    #[arg(long)]
    check_config: bool,
    /// Print the configuration in force as a file, and exit.
    #[arg(long)]
    print_config: bool,
    /// Media worker threads; 0 means one for each core. Wins over media.workers.
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
}

const AFTER_HELP: &str = "\
Exit codes: 0 stopped as asked, 1 could not start or go on, 2 wrong arguments or configuration.
Signals: SIGTERM and SIGINT end all calls, then the server; a second one ends it at once.
The documentation is in docs/, a commented configuration in packaging/portunus.toml.";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (mut config, file) = match load(arguments.config.as_deref()) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Some(workers) = arguments.workers {
        config.media.workers = workers;
    }
    if arguments.print_config {
        print!("{}", config.to_toml());
        return ExitCode::SUCCESS;
    }
    if arguments.check_config {
        match file {
            Some(file) => println!("{}: no mistakes", file.display()),
            None => println!("no configuration file: the defaults are in force"),
        }
        return ExitCode::SUCCESS;
    }
    logging::start(&config.log);
    match server::run(config, file.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("portunus: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the named file, or the default one if there is one.
fn load(named: Option<&Path>) -> Result<(Config, Option<PathBuf>), ConfigError> {
    let default = Path::new(DEFAULT_FILE);
    let file = named.or_else(|| default.exists().then_some(default));
    match file {
        Some(file) => Ok((Config::load(file)?, Some(file.to_owned()))),
        None => Ok((Config::default(), None)),
    }
}
