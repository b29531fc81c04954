//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::cluster::Command as Cluster;
use crate::doctor::Doctor;
use crate::health::Health;
use crate::import_janus::ImportJanus;
use crate::recordings::Recordings;
use crate::source::Source;

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

    /// Say what is wrong with the configuration and what this machine lacks for it, with line
    /// numbers, and end
    #[arg(long)]
    pub(crate) check_config: bool,

    /// Print the configuration with every key, and end
    #[arg(long, conflicts_with = "check_config")]
    pub(crate) print_config: bool,
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

    /// Make or join a cluster of servers, and show its state
    #[command(subcommand)]
    Cluster(Cluster),

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

const AFTER_HELP: &str = "\
Ports (all configurable): 8088/tcp web pages and Janus API over HTTP, 8188/tcp Janus API over WebSocket,
7088/tcp dashboard and Admin API over HTTP (on loopback unless admin.bind is set), 10000/udp and the following, one for
each worker, or one for all with media.one_port, media; with cluster.bus 7900/tcp, other nodes of the cluster.

Signals: SIGTERM takes nobody new and lets calls go on until they end, for server.drain_timeout at most; then the server
ends. SIGINT (Ctrl+C) ends calls without waiting for them. A second signal ends a drain, and the next one all that is left.
SIGHUP reads the configuration again.
Exit status: 0 ended by a signal; 1 could not start; 2 wrong command line or configuration.
Logs go to the standard error; PORTUNUS_LOG overrides log.filter of the configuration.";
