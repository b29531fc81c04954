//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::config::{Config, ConfigError, DEFAULT_FILE};
use crate::import_janus::ImportJanus;
use crate::recordings::Recordings;

/// A WebRTC server that speaks the Janus API. Without arguments it runs with its defaults.
#[derive(Debug, Parser)]
#[command(
    name = "portunus",
    version,
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Cli {
    /// What to do instead of running the server
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The configuration [default: /etc/portunus/portunus.toml if there is one, else the defaults of all keys]
    #[arg(short, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,

    /// Say what is wrong with the configuration, with line numbers, and end
    #[arg(long)]
    pub(crate) check_config: bool,

    /// Print the configuration with every key, and end
    #[arg(long, conflicts_with = "check_config")]
    pub(crate) print_config: bool,

    /// Media worker threads; 0 means one for each core [default: media.workers of the configuration, which is 0]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    workers: Option<u16>,
}

/// What the program does besides running the server.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List, examine, convert, compose and repair recordings
    #[command(subcommand)]
    Recordings(Recordings),
    /// Make one configuration of the .jcfg (and .cfg) files of a Janus
    ImportJanus(ImportJanus),
}

const AFTER_HELP: &str = "\
Ports (all configurable): 8088/tcp web pages and Janus API over HTTP, 8188/tcp Janus API over WebSocket,
7088/tcp dashboard and Admin API over HTTP (on loopback until admin.secret is set), 10000/udp and the following, one for
each worker, media.

Signals: SIGTERM and SIGINT end all calls, then the server; a second one ends it at once. SIGHUP is ignored.
Exit status: 0 ended by a signal; 1 could not start; 2 wrong command line or configuration.
Logs go to the standard error; PORTUNUS_LOG overrides log.filter of the configuration.";

impl Cli {
    /// The configuration that the command line asks for.
    pub(crate) fn configuration(&self) -> Result<Config, ConfigError> {
        let mut config = match self.file() {
            Some(file) => Config::load(&file)?,
            None => Config::default(),
        };
        if let Some(workers) = self.workers {
            config.media.workers = workers.into();
        }
        Ok(config)
    }

    /// What `--check-config` says of a configuration without mistakes.
    pub(crate) fn checked(&self) -> String {
        match self.file() {
            Some(file) => format!("{}: no mistakes", file.display()),
            None => {
                format!("No configuration: {DEFAULT_FILE} does not exist; the defaults are used")
            }
        }
    }

    /// The configuration's file; none: the defaults are used.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        // One that cannot be looked at is there: without its secrets nobody wants to run.
        let may_exist = |file: &PathBuf| !matches!(file.try_exists(), Ok(false));
        let default = || Some(PathBuf::from(DEFAULT_FILE)).filter(may_exist);
        self.config.clone().or_else(default)
    }
}
