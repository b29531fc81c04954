//! The Portunus WebRTC server: command line and wiring. The program is [`main`]; what else is here is for tests.
#![forbid(unsafe_code)]

mod banner;
mod check;
mod cli;
mod config;
mod doctor;
mod event_handlers;
mod health;
mod import_janus;
mod logging;
mod manual;
mod open_files;
mod plugins;
mod public_address;
mod recordings;
mod reload;
mod run;
mod signals;
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
use logging::Logging;
use reload::Read;

/// The exit status when the server cannot start.
const CANNOT_START: u8 = 1;
/// The exit status when the command line or the configuration is wrong, as clap has it.
const WRONG_USE: u8 = 2;

/// The program.
pub fn main() -> ExitCode {
    let cli = Arc::new(Cli::parse());
    match &cli.command {
        Some(Command::Recordings(command)) => return command.run(),
        Some(Command::Doctor(doctor)) => return doctor.run(),
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

/// What `--print-config` prints of a configuration file with this text, or its mistakes as `--check-config` names them.
pub fn print_config(text: &str) -> Result<String, Vec<String>> {
    let config = Config::parse(text)
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    config.to_toml().map_err(|error| vec![error.to_string()])
}

/// What is written of a log line, for tests: `json` if it was formatted as an object.
pub fn written_line(logged: &[u8], json: bool) -> String {
    logging::written_line(logged, json)
}

/// The configuration that `portunus import-janus` makes of files of Janus, each with its name and text; or why there is
/// none.
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
    // Whatever still runs has had its time.
    runtime.shutdown_background();
    outcome
}

/// How much later than the media plane the threads of the control plane get a core that both want, as a
/// nice value. While many join at once, relaying goes on.
const NICE: i32 = 5;

/// Gives way to the media plane's threads.
fn let_media_go_first() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "the priority of a thread cannot be lowered");
    }
}
