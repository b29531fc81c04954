//! The Portunus WebRTC server: command line and wiring. The program is [`main`]; other functions
//! are for tests.
#![forbid(unsafe_code)]

mod banner;
mod check;
mod cli;
mod cluster;
mod config;
mod doctor;
mod event_handlers;
mod exit_status;
mod health;
mod import_janus;
mod livekit;
mod logging;
mod manual;
mod open_files;
mod plugins;
mod process_metrics;
mod public_address;
mod recordings;
mod reload;
mod run;
mod signals;
mod source;
mod supervisor;
mod traces;
mod turn_client;
mod watchdog;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use cli::{Cli, Command};
use config::Config;
use exit_status::{CANNOT_START, WRONG_USE};
use logging::Logging;
use reload::Read;

/// The program.
pub fn main() -> ExitCode {
    let cli = Arc::new(Cli::parse());
    match &cli.command {
        Some(Command::Recordings(command)) => return command.run(),
        Some(Command::Doctor(doctor)) => return doctor.run(),
        Some(Command::Cluster(command)) => return command.run(),
        Some(Command::Health(options)) => return health::run(options),
        Some(Command::Completions { shell }) => return manual::completions(*shell),
        Some(Command::Man { folder }) => return manual::pages(folder),
        Some(Command::ImportJanus(command)) => return command.run(),
        None => {}
    }
    let config = match cli.source.configuration() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(WRONG_USE);
        }
    };
    if cli.check_config {
        return check::run(config, cli.source.file().as_deref());
    }
    if cli.print_config {
        return print(&config);
    }
    let log = match logging::start(&config.log) {
        Ok(log) => log,
        Err(error) => {
            eprintln!("portunus: cannot log: {error}");
            return ExitCode::from(CANNOT_START);
        }
    };
    let read: Read = Arc::new({
        let cli = Arc::clone(&cli);
        move || cli.source.configuration()
    });
    match serve(config, cli.source.file().as_deref(), &log, read) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log.say(&format!("portunus: {error}"));
            ExitCode::from(CANNOT_START)
        }
    }
}

fn print(config: &Config) -> ExitCode {
    match config.to_toml() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("portunus: {error}");
            ExitCode::from(CANNOT_START)
        }
    }
}

/// Returns the output of `--print-config` for a configuration with this text, or its mistakes as in
/// `--check-config`.
pub fn print_config(text: &str) -> Result<String, Vec<String>> {
    let config = Config::parse(text)
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    config.to_toml().map_err(|error| vec![error.to_string()])
}

/// Returns the written form of a log line, for tests. `json`: it was formatted as an object.
pub fn written_line(logged: &[u8], json: bool) -> String {
    logging::written_line(logged, json)
}

/// Returns the configuration that `portunus import-janus` makes of files of Janus, given by their
/// names and texts.
pub fn import_janus(files: &[(&str, &str)]) -> Result<String, String> {
    import_janus::import_texts(files).map_err(|error| error.to_string())
}

fn serve(
    config: Config,
    file: Option<&Path>,
    log: &Logging,
    read: Read,
) -> Result<(), run::RunError> {
    check::log(&config);
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(let_media_go_first)
        .build()
        .map_err(run::RunError::Runtime)?;
    let outcome = runtime.block_on(run::run(config, file, log, read));
    // Remaining tasks have had their time.
    runtime.shutdown_background();
    outcome
}

/// The nice value of the control plane's threads, so that the media plane gets contended cores
/// first. Relaying goes on during mass joins.
const NICE: i32 = 5;

/// Lowers the priority of a thread.
fn let_media_go_first() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "the priority of a thread cannot be lowered");
    }
}
