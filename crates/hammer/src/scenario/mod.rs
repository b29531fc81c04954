//! Scenarios: participants join a server, media flows, figures are taken.
//!
//! Each scenario is a file or folder with its options. All have a `stage`, and a `run` on it by the
//! participants of a `crowd`.

mod bridge;
mod browsers;
mod crowd;
mod echo;
mod error;
pub(crate) mod load;
pub(crate) mod nodes;
mod plugins;
mod recording;
mod room;
mod run;
mod sip;
mod stage;
mod streaming;
mod target;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use tokio::runtime;

pub use error::{ScenarioError, WordsError};
pub use target::Target;

use crate::machine::pin;
use crate::progress::Progress;
use crate::record::RunRecord;
use crate::traffic::{Topology, Traffic};

/// A scenario.
#[derive(Debug, Subcommand)]
pub enum Scenario {
    /// One source to many viewers, through the server's streaming plugin
    Streaming(Box<streaming::Options>),
    /// Peers that send media and get the same back, through the server's echo test plugin
    Echo(Box<echo::Options>),
    /// Some publish in a video room, and many watch all of them
    Room(Box<room::RoomOptions>),
    /// A video room whose endpoints all publish and watch each other
    Star(Box<room::StarOptions>),
    /// Video rooms whose endpoints all publish and watch each other
    Rooms(Box<room::RoomsOptions>),
    /// Publishers of a video room who are all recorded, while others watch them
    Record(Box<recording::Options>),
    /// Participants of audio rooms, who hear what the server mixes of those who talk
    Bridge(Box<bridge::Options>),
    /// Calls by SIP to a far end that answers and sends back what it hears; or accounts that are
    /// registered
    Sip(Box<sip::Options>),
    /// Real browsers in video rooms that fill up until some could not connect
    Browsers(Box<browsers::Options>),
}

/// The demands of a scenario on a server.
pub(crate) struct Demand<'a> {
    /// The options of all scenarios.
    pub(crate) load: &'a load::Options,
    /// The traffic of each participant, as far as it is known.
    pub(crate) traffic: Traffic,
    /// Who receives it.
    pub(crate) topology: Topology,
}

/// A command line for scenarios only.
#[derive(Parser)]
#[command(name = "portunus-hammer")]
struct Line {
    #[command(subcommand)]
    scenario: Scenario,
}

impl Scenario {
    /// Parses the words of a command line with a scenario and its options.
    pub fn of(words: &[String]) -> Result<Self, WordsError> {
        let program = std::iter::once("portunus-hammer");
        let line = program.chain(words.iter().map(String::as_str));
        let parsed = Line::try_parse_from(line).map_err(|error| match error.kind() {
            ErrorKind::InvalidSubcommand => WordsError::Name(error),
            _ => WordsError::Options(error),
        });
        parsed.map(|line| line.scenario)
    }

    /// Measures on the calling thread, and writes the record if requested.
    pub fn run(&self, progress: &Progress) -> Result<RunRecord, ScenarioError> {
        let load = self.demand().load;
        // Pins all threads that are started from here on.
        load.core.map(pin).transpose()?;
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ScenarioError::Runtime)?;
        let record = runtime.block_on(self.measure(progress))?;
        run::write(load, &record)?;
        Ok(record)
    }

    async fn measure(&self, progress: &Progress) -> Result<RunRecord, ScenarioError> {
        match self {
            Self::Streaming(options) => streaming::measure(options, progress).await,
            Self::Echo(options) => echo::measure(options, progress).await,
            Self::Room(options) => room::room(options, progress).await,
            Self::Star(options) => room::star(options, progress).await,
            Self::Rooms(options) => room::rooms(options, progress).await,
            Self::Record(options) => recording::measure(options, progress).await,
            Self::Bridge(options) => bridge::measure(options, progress).await,
            Self::Sip(options) => sip::measure(options, progress).await,
            Self::Browsers(options) => {
                options.among().map(|words| Self::of(&words)).transpose()?;
                browsers::measure(options, progress).await
            }
        }
    }

    /// Returns the URL of the server.
    pub(crate) fn url(&self) -> &str {
        let livekit = match self {
            Self::Room(it) => it.common.livekit.as_deref(),
            Self::Star(it) => it.common.livekit.as_deref(),
            Self::Rooms(it) => it.common.livekit.as_deref(),
            Self::Streaming(_)
            | Self::Echo(_)
            | Self::Record(_)
            | Self::Bridge(_)
            | Self::Sip(_)
            | Self::Browsers(_) => None,
        };
        livekit.unwrap_or(&self.demand().load.target.janus)
    }

    /// Returns its demands on the server.
    pub(crate) fn demand(&self) -> Demand<'_> {
        let (load, traffic, topology) = match self {
            Self::Streaming(it) => (&it.load, it.media.traffic.clone(), it.topology()),
            Self::Echo(it) => (&it.load, it.media.traffic.clone(), Topology::Echo),
            Self::Room(it) => (&it.load, it.media.traffic.clone(), it.topology()),
            Self::Star(it) => (&it.load, it.media.traffic.clone(), it.topology()),
            Self::Rooms(it) => (&it.load, it.media.traffic.clone(), it.topology()),
            Self::Record(it) => (&it.load, it.media.traffic.clone(), it.topology()),
            Self::Bridge(it) => (&it.load, it.traffic(), it.topology()),
            Self::Sip(it) => (&it.load, it.traffic(), Topology::Echo),
            Self::Browsers(it) => (&it.load, it.traffic(), it.topology()),
        };
        Demand {
            load,
            traffic,
            topology,
        }
    }
}
