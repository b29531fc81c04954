//! The options of ceilings.

use std::path::PathBuf;

use clap::Args;

use crate::scenario::{Demand, Scenario, WordsError, load};
use crate::traffic::{Profile, Topology, Traffic};

/// How to measure.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// What each viewer gets
    #[command(flatten)]
    pub traffic: Traffic,
    /// Numbers of viewers for which the loop's CPU time is measured as well, sending as their
    /// sources do
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
    /// The share of viewers whose data is read completely, as by participants that decrypt it
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = load::share)]
    pub check_share: f64,
    /// The core that sends: the server's
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub server_core: usize,
    /// The core that reads: the load's
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub load_core: usize,
    /// Send over the loopback interface instead of a veth pair between two namespaces; needs no
    /// rights
    #[arg(long)]
    pub loopback: bool,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
    /// The scenario to compare with, and its options: participants get the same
    #[arg(last = true, value_name = "SCENARIO", conflicts_with_all = ["video_bps", "fps", "packets_per_frame", "sizes", "audio_bps", "profile", "check_share"])]
    pub scenario: Vec<String>,
    /// The receivers.
    #[arg(skip = Topology::Streaming { sources: 1 })]
    pub topology: Topology,
}

impl Options {
    /// Returns the options with the traffic and topology of the scenario, if there is one.
    pub(super) fn with_scenario(&self) -> Result<Self, WordsError> {
        if self.scenario.is_empty() {
            return Ok(self.clone());
        }
        let scenario = Scenario::of(&self.scenario)?;
        let demand = scenario.demand();
        Ok(Self {
            profile: demand.load.target.profile.unwrap_or_default(),
            check_share: demand.load.check_share,
            traffic: demand.traffic,
            topology: demand.topology,
            ..self.clone()
        })
    }

    /// Returns the defaults for a scenario's participants.
    pub(crate) fn of(demand: Demand<'_>) -> Self {
        Self {
            traffic: demand.traffic,
            viewers: Vec::new(),
            profile: demand.load.target.profile.unwrap_or_default(),
            duration: 5.0,
            batch: None,
            no_gso: false,
            own_sockets: false,
            check_share: demand.load.check_share,
            server_core: 0,
            load_core: 1,
            loopback: false,
            json: None,
            scenario: Vec::new(),
            topology: demand.topology,
        }
    }
}

/// Reads a duration of at least 10 ms, or 0.
pub(crate) fn seconds_or_none(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(0.0),
        _ => seconds(text),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let expected = "a number of seconds from 0.01 to 86400 is expected";
    load::number(text, 0.01..=86_400.0, expected)
}

fn batch(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes) if (2_048..=64 << 20).contains(&bytes) => Ok(bytes),
        _ => Err("a number of bytes from 2048 to 67108864 is expected".to_owned()),
    }
}
