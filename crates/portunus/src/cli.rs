//! The command line.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::config::{Announced, Config, ConfigError, DEFAULT_FILE};
use crate::doctor::Doctor;
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

    #[command(flatten)]
    pub(crate) source: Source,

    /// Say what is wrong with the configuration and what this machine lacks for it, with line numbers, and end
    #[arg(long)]
    pub(crate) check_config: bool,

    /// Print the configuration with every key, and end
    #[arg(long, conflicts_with = "check_config")]
    pub(crate) print_config: bool,
}

/// Where the configuration of a server is, and what takes the place of its keys.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The configuration [default: /etc/portunus/portunus.toml if there is one, else the defaults of all keys]
    #[arg(short, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,

    /// Media worker threads; 0 means one for each core [default: media.workers of the configuration, which is 0]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    workers: Option<u16>,

    /// Let all workers share the ports of media, as media.one_port of the configuration does
    #[arg(long)]
    one_port: bool,

    /// What clients are told instead of the machine's address, as in media.announced, whose place it takes; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    announce: Vec<Announced>,
}

/// What the program does besides running the server.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List, examine, convert, compose and repair recordings
    #[command(subcommand)]
    Recordings(Recordings),
    /// Make one configuration of the .jcfg (and .cfg) files of a Janus
    ImportJanus(ImportJanus),

    /// Look whether the server can work on this machine, and say what to change: addresses, ports,
    /// certificates, limits, disks
    Doctor(Doctor),

    /// Ask the running server whether it works; for health checks of containers and load balancers
    Health(Health),

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

/// The options of `portunus health`.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// The server's configuration, which says where it listens [default: as for the server]
    #[arg(short, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,

    /// Ask whether the server takes new clients, too: it does not while it is drained or overloaded
    #[arg(short, long)]
    pub(crate) ready: bool,
}

impl Health {
    /// Reads the configuration of the server that is asked.
    pub(crate) fn configuration(&self) -> Result<Config, ConfigError> {
        load(file(&self.config).as_deref())
    }
}

const AFTER_HELP: &str = "\
Ports (all configurable): 8088/tcp web pages and Janus API over HTTP, 8188/tcp Janus API over WebSocket,
7088/tcp dashboard and Admin API over HTTP (on loopback unless admin.bind is set), 10000/udp and the following, one for
each worker, or one for all with media.one_port, media.

Signals: SIGTERM takes nobody new and lets calls go on until they end, for server.drain_timeout at most; then the server
ends. SIGINT (Ctrl+C) ends calls without waiting for them. A second signal ends a drain, and the next one all that is left.
SIGHUP reads the configuration again.
Exit status: 0 ended by a signal; 1 could not start; 2 wrong command line or configuration.
Logs go to the standard error; PORTUNUS_LOG overrides log.filter of the configuration.";

impl Source {
    /// Reads the configuration of the server.
    pub(crate) fn configuration(&self) -> Result<Config, ConfigError> {
        let mut config = load(self.file().as_deref())?;
        if let Some(workers) = self.workers {
            config.media.workers = workers.into();
        }
        if self.one_port {
            config.media.one_port = true;
        }
        if !self.announce.is_empty() {
            config.reached.announced = self.announce.clone();
        }
        config.read_environment()?;
        Ok(config)
    }

    /// The configuration's file; none: the defaults are used.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        file(&self.config)
    }
}

/// Returns the file that was named, or the default one if it may exist.
fn file(named: &Option<PathBuf>) -> Option<PathBuf> {
    // One that cannot be looked at is there: without its secrets nobody wants to run.
    let may_exist = |file: &PathBuf| !matches!(file.try_exists(), Ok(false));
    let default = || Some(PathBuf::from(DEFAULT_FILE)).filter(may_exist);
    named.clone().or_else(default)
}

/// Reads the configuration of a file, or takes all defaults without one.
fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
    match file {
        Some(file) => Config::load(file),
        None => Ok(Config::default()),
    }
}
