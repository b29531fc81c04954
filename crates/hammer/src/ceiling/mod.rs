//! What one core can do at most: a bare loop of encrypting and sending.
//!
//! The loop seals the same RTP packets for each viewer with the crypto library's bare calls, and sends them by sendmmsg
//! with UDP_SEGMENT. It has no protocol and no state of a stream: what a server reaches of it is what its design leaves of
//! the machine. It sends to as many addresses as it has viewers, which are read as a server's viewers are: both are a part
//! of what sending costs.
//!
//! There are two ceilings. *In time* each frame leaves within its frame interval, so that no two of a source are joined. *At
//! all* frames wait for others and leave with them as one message, as far as that pays.

mod bench;
mod cipher;
mod plan;
mod sender;
mod text;
mod topology;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser};
use serde::Serialize;

pub use cipher::Profile;
pub use topology::Topology;

use crate::cli::{Cli, ScenarioFacts};
use crate::namespace::{Link, NamespaceError, pin};
use crate::record::{BareLoad, Ceiling};
use crate::scenario::load;
use crate::traffic::{Traffic, TrafficError};
use bench::Bench;

/// The share of the time that the loop has to have its core for, or something else ran there.
pub(crate) const UNDISTURBED: f64 = 0.97;

/// How to measure.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// What each viewer gets
    #[command(flatten)]
    pub traffic: Traffic,
    /// Numbers of viewers for which the loop's CPU time is measured as well, sending as their sources do
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub viewers: Vec<u32>,
    /// What packets are sealed with
    #[arg(long, value_enum, default_value_t)]
    pub profile: Profile,
    /// How long to measure, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    pub duration: f64,
    /// Bytes that are sealed between two system calls [default: the fastest of several]
    #[arg(long, value_name = "BYTES", value_parser = batch)]
    pub batch: Option<usize>,
    /// Send each packet by itself, without UDP_SEGMENT
    #[arg(long)]
    pub no_gso: bool,
    /// Each viewer has a socket, instead of an address of its own and a socket with the others
    #[arg(long)]
    pub own_sockets: bool,
    /// The share of viewers of whom all that comes is read, as of those who decrypt it
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = load::share)]
    pub check_share: f64,
    /// The core that sends: the server's
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub server_core: usize,
    /// The core that reads: the load's
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub load_core: usize,
    /// Send over the loopback interface instead of a veth pair between two namespaces; needs no rights
    #[arg(long)]
    pub loopback: bool,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
    /// The scenario to compare with, and its options: who gets what is as there
    #[arg(last = true, value_name = "SCENARIO", conflicts_with_all = ["video_bps", "fps", "packets_per_frame", "sizes", "audio_bps", "profile", "check_share"])]
    pub scenario: Vec<String>,
    /// Who gets it
    #[arg(skip = Topology::Streaming { sources: 1 })]
    pub topology: Topology,
}

impl Options {
    /// With who gets what from the scenario, if one is named.
    fn with_scenario(&self) -> Result<Self, CeilingError> {
        if self.scenario.is_empty() {
            return Ok(self.clone());
        }
        let program = std::iter::once("portunus-hammer");
        let line = program.chain(self.scenario.iter().map(String::as_str));
        let scenario = Cli::try_parse_from(line).map_err(CeilingError::Scenario)?;
        let facts = scenario.scenario().ok_or(CeilingError::NotAScenario)?;
        Ok(Self {
            traffic: facts.traffic.clone(),
            profile: facts.profile.unwrap_or_default(),
            check_share: facts.check_share,
            topology: facts.topology,
            ..self.clone()
        })
    }

    /// The defaults, for what a scenario's participants get.
    pub(crate) fn of(facts: &ScenarioFacts) -> Self {
        Self {
            traffic: facts.traffic.clone(),
            viewers: Vec::new(),
            profile: facts.profile.unwrap_or_default(),
            duration: 5.0,
            batch: None,
            no_gso: false,
            own_sockets: false,
            check_share: facts.check_share,
            server_core: 0,
            load_core: 1,
            loopback: false,
            json: None,
            scenario: Vec::new(),
            topology: facts.topology,
        }
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CeilingError {
    /// The traffic cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// No namespaces.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A core that is not there, or may not be used.
    #[error("core {core} cannot be used: {source}")]
    Core {
        /// Which.
        core: usize,
        /// What the system says.
        source: io::Error,
    },
    /// A socket could not be made.
    #[error("no socket on {ip}: {source}")]
    Socket {
        /// Where.
        ip: IpAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Sending failed.
    #[error("sending: {0}")]
    Send(io::Error),
    /// The scenario's options are wrong: clap's own message.
    #[error("{0}")]
    Scenario(clap::Error),
    /// The scenario is none.
    #[error("what follows -- has to be a scenario, such as streaming or room")]
    NotAScenario,
    /// The crypto library refused.
    #[error("the crypto library refused to seal")]
    Crypto,
    /// A thread ended unexpectedly.
    #[error("a measuring thread ended unexpectedly")]
    Thread,
    /// The result cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Measures, prints and writes the result.
pub fn run(options: &Options) -> Result<(), CeilingError> {
    let options = options.with_scenario()?;
    let link = match options.loopback {
        true => None,
        false => Some(Link::new()?),
    };
    let ceiling = measure(&options, link.as_ref())?;
    let loads = loads(&options, link.as_ref(), &ceiling, &options.viewers)?;
    print!("{}", text::ceiling(&options, &ceiling, &loads));
    let Some(path) = &options.json else {
        return Ok(());
    };
    let result = Measured { ceiling, loads };
    let text = serde_json::to_string_pretty(&result).map_err(io::Error::from);
    let written = text.and_then(|text| std::fs::write(path, text + "\n"));
    written.map_err(|source| CeilingError::Write {
        path: path.clone(),
        source,
    })
}

/// What is written as JSON.
#[derive(Debug, Serialize)]
struct Measured {
    #[serde(flatten)]
    ceiling: Ceiling,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loads: Vec<BareLoad>,
}

/// Measures both ceilings over `link`, or over the loopback interface.
pub fn measure(options: &Options, link: Option<&Link>) -> Result<Ceiling, CeilingError> {
    options.traffic.check()?;
    Bench::new(options, link).ceiling()
}

/// Measures what the loop needs for each number of participants, sending each frame when it is due, in the way that was
/// the fastest in time.
pub fn loads(
    options: &Options,
    link: Option<&Link>,
    ceiling: &Ceiling,
    participants: &[u32],
) -> Result<Vec<BareLoad>, CeilingError> {
    let bench = Bench::new(options, link);
    let loads = participants.iter();
    loads
        .map(|participants| bench.load(*participants, &ceiling.in_time))
        .collect()
}

/// Keeps the calling thread on `core`.
pub(crate) fn pinned(core: usize) -> Result<(), CeilingError> {
    pin(core).map_err(|source| CeilingError::Core { core, source })
}

/// A duration of at least 10 ms, or 0.
pub(crate) fn seconds_or_none(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(0.0),
        _ => seconds(text),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.01 to 86400 is expected".to_owned()),
    }
}

fn batch(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes) if (2_048..=64 << 20).contains(&bytes) => Ok(bytes),
        _ => Err("a number of bytes from 2048 to 67108864 is expected".to_owned()),
    }
}
