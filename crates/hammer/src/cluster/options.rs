//! The options of `hammer cluster`.

use std::path::PathBuf;

use clap::{Args, Parser};

use super::script;
use crate::scenario::load::{self, Media};

/// The cluster and its load.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Options {
    /// The nodes, which are called A, B and so on
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=8))]
    pub(super) nodes: u8,
    /// The program of the nodes [default: portunus beside this one, or in PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub(super) server: Option<PathBuf>,
    /// The bus [default: nats-server in PATH, or where scripts/setup cluster installs it]
    #[arg(long, value_name = "PROGRAM")]
    pub(super) nats_server: Option<PathBuf>,
    /// The media of each source
    #[command(flatten)]
    pub(super) media: Media,
    /// Viewers of one source of node A at each node
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) viewers: u32,
    /// Sources of A that cross to B, each for one viewer, beside as many viewers at A; 0: their
    /// cost is not measured
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=500))]
    pub(super) sources: u32,
    /// While the script runs: viewers at each node of each node's publisher, and of A's mountpoint
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) guests: u32,
    /// The delay of each link between two nodes, in ms and in each direction
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = script::milliseconds)]
    pub(super) delay: f64,
    /// By how much that delay varies, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = script::milliseconds)]
    pub(super) jitter: f64,
    /// The share of packets that each link between two nodes loses, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = script::percent)]
    pub(super) loss: f64,
    /// An event of the script: seconds since its start, and kill, start, pause, resume, drain or
    /// undrain with a node, cut or heal with two, delay, jitter or loss with two and a value, stop-bus or
    /// start-bus; may be given several times [default: 5 kill the last node]
    #[arg(long, value_names = ["SECONDS", "EVENT", "NODES", "VALUE"], num_args = 1..=4)]
    pub(super) at: Vec<String>,
    /// How long the script goes on after its last event, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = load::seconds)]
    pub(super) after: f64,
    /// Play no script
    #[arg(long, conflicts_with = "at")]
    pub(super) no_script: bool,
    /// Play the script, and measure nothing else
    #[arg(long, conflicts_with = "no_script")]
    pub(super) script_only: bool,
    /// How long each number of viewers is measured, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = load::seconds)]
    pub(super) duration: f64,
    /// How long to wait before that, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = load::seconds)]
    pub(super) settle: f64,
    /// The share of viewers that decrypt and check all that they get; the first one of each node
    /// always does
    #[arg(long, value_name = "SHARE", default_value_t = 0.02, value_parser = load::share)]
    pub(super) check_share: f64,
    /// Each viewer has a socket, instead of an address of its own and a socket with the others
    #[arg(long)]
    pub(super) own_sockets: bool,
    /// The cores that all nodes and the bus share
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "0")]
    pub(super) server_cores: Vec<usize>,
    /// The cores that the load comes from
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    pub(super) load_cores: Vec<usize>,
    /// The folder for the logs of nodes and bus
    #[arg(long, value_name = "FOLDER", default_value = "hammer-cluster")]
    pub(super) out: PathBuf,
    /// Write the record as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(super) json: Option<PathBuf>,
}

/// A command line of clusters only.
#[derive(Debug, Parser)]
#[command(name = "cluster")]
struct Line {
    #[command(flatten)]
    options: Options,
}

const AFTER_HELP: &str = "\
Each node has a network namespace and one worker, and all share the server's cores: CPU times are compared, not what fits.
It takes root, iproute2 and nats-server 2.11 or newer.

Example, as root:
  portunus-hammer cluster --nodes 3 --delay 25ms --loss 1% --at 5 cut B-C --at 15 heal B-C --at 25 stop-bus --at 35 start-bus --at 45 kill C";

impl Options {
    /// Parses the words of a command line that follow `cluster`.
    pub(crate) fn of(words: &[String]) -> Result<Self, clap::Error> {
        let program = std::iter::once("cluster");
        let line = Line::try_parse_from(program.chain(words.iter().map(String::as_str)));
        line.map(|line| line.options)
    }
}
