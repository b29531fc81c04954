//! The options of all scenarios.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::Target;
use super::crowd::Hall;
use crate::farend::FarEnd;
use crate::machine::{Addresses, usage};
use crate::source::{SourceConfig, VideoCodec};
use crate::thresholds::Threshold;
use crate::traffic::{AUDIO_PERIOD, Traffic};

/// Video and audio like those of a camera and a microphone.
#[derive(Debug, Clone, Args)]
#[group(id = "media")]
pub struct Media {
    /// What each participant gets
    #[command(flatten)]
    pub traffic: Traffic,
    /// What the video looks like
    #[arg(long, value_enum, default_value_t)]
    pub codec: VideoCodec,
    /// Time between two keyframes, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub keyframes: f64,
    /// All sources send their frames at the same moments; else these are spread over the time of a
    /// frame
    #[arg(long)]
    pub align_sources: bool,
}

/// The traffic of participants, as a run measures it.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    /// The scenario's name.
    pub(super) name: &'static str,
    /// The time within which packets count as in time, unless configured.
    pub(super) interval: Duration,
    /// The longest time between two packets of a participant, without jitter.
    pub(super) period: Duration,
    /// The options that it depends on, by their names.
    pub(super) options: BTreeMap<String, Value>,
    /// The participants' audio rooms.
    pub(super) hall: Option<Arc<Hall>>,
    /// The far end that participants call.
    pub(super) far: Option<Arc<FarEnd>>,
}

/// The number of participants, the pace of joins, and the times of measuring.
#[derive(Debug, Clone, Args)]
#[group(id = "load")]
pub struct Options {
    /// Which server
    #[command(flatten)]
    pub target: Target,
    /// Participants; with --ramp: the most that are tried
    #[arg(long, visible_aliases = ["peers", "subscribers", "participants"], value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub viewers: u32,
    /// Stress test: so many more each time, until they are not carried in time any more: 99.5 % of
    /// what is due to all arrives, no more than 0.1 % is lost, and 99 of 100 packets arrive
    /// within one frame interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ramp: Option<u32>,
    /// With --ramp: each time so many times more are added than the last time, for servers that
    /// carry very different numbers
    #[arg(long, value_name = "FACTOR", requires = "ramp", default_value_t = 1.0, value_parser = factor)]
    pub ramp_factor: f64,
    /// After --ramp: look for the maximum between the last number that was carried and the first
    /// that was not, to within this many
    #[arg(long, value_name = "N", requires = "ramp", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub bisect: Option<u32>,
    /// After --ramp: look for the most that are carried at all, too: 99.5 % arrives, however late
    #[arg(long, requires = "ramp")]
    pub at_all: bool,
    /// In time is what arrives within so many milliseconds [default: one frame interval]
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub max_delay: Option<f64>,
    /// After --ramp: measure once more with this share of the most that were carried in time
    #[arg(long, value_name = "SHARE", requires = "ramp", value_parser = share)]
    pub hold: Option<f64>,
    /// Afterwards: so many more join as fast as they can, while the others' media is watched
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub storm: Option<u32>,
    /// Afterwards: so many leave each second, and others join in their place
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub churn: Option<u32>,
    /// Afterwards: the connections of all participants break at once, and they resume their sessions
    /// while their media is watched; for --livekit
    #[arg(long)]
    pub resume: bool,
    /// At the end: all leave, and come again but for the last time, so many times; the server's
    /// memory is compared
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub leave: Option<u32>,
    /// How long each number of participants is measured, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub duration: f64,
    /// How long to wait before that, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub settle: f64,
    /// Joins started in a second; 0: as many as go
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = rate)]
    pub join_rate: f64,
    /// Joins under way at a time
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub joins_at_a_time: u32,
    /// The share of participants that decrypt and check all that they get; the others count
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = share)]
    pub check_share: f64,
    /// Participants send no receiver reports; browsers do each second
    #[arg(long)]
    pub no_reports: bool,
    /// Those who watch tell of each packet's arrival, 20 times a second as browsers do
    /// (transport-wide feedback), so that the server estimates their bandwidth
    #[arg(long)]
    pub transport_feedback: bool,
    /// Threads that run the participants
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub load_threads: u32,
    /// A network whose addresses are all this machine's: each participant takes one, and they share
    /// few sockets, which costs hammer and the receiving side of the kernel less. lab gives it
    #[arg(long, value_name = "NETWORK")]
    pub addresses: Option<Addresses>,
    /// The core that all of hammer runs on
    #[arg(long, value_name = "N")]
    pub core: Option<usize>,
    /// What to watch meanwhile
    #[command(flatten)]
    pub watch: usage::Options,
    /// Write the record as JSON
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
    /// Write each second as a line of CSV
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
    /// End with status 3 unless the figures meet this, such as 'loss<1%'; may be given several
    /// times
    #[arg(long, value_name = "THRESHOLD")]
    pub require: Vec<Threshold>,
}

impl Options {
    /// Returns the time within which packets count as in time.
    pub(super) fn in_time(&self, flow: &Flow) -> Duration {
        let set = self.max_delay.map(|ms| Duration::from_secs_f64(ms / 1e3));
        set.unwrap_or(flow.interval)
    }

    /// Returns the options that affect the figures, by their names.
    pub(super) fn by_name(&self) -> BTreeMap<String, Value> {
        let pairs = [
            ("viewers", json!(self.viewers)),
            ("ramp", json!(self.ramp)),
            ("ramp-factor", json!(self.ramp.map(|_| self.ramp_factor))),
            ("bisect", json!(self.bisect)),
            ("at-all", json!(self.at_all)),
            ("max-delay", json!(self.max_delay)),
            ("hold", json!(self.hold)),
            ("storm", json!(self.storm)),
            ("churn", json!(self.churn)),
            ("resume", json!(self.resume)),
            ("leave", json!(self.leave)),
            ("duration", json!(self.duration)),
            ("settle", json!(self.settle)),
            ("join-rate", json!(self.join_rate)),
            ("joins-at-a-time", json!(self.joins_at_a_time)),
            ("check-share", json!(self.check_share)),
            (
                "profile",
                json!(self.target.profile.map(|profile| profile.name())),
            ),
            ("no-reports", json!(self.no_reports)),
            ("transport-feedback", json!(self.transport_feedback)),
            ("load-threads", json!(self.load_threads)),
            (
                "addresses",
                json!(self.addresses.map(|addresses| addresses.to_string())),
            ),
        ];
        given(pairs)
    }
}

impl Media {
    /// Returns the configuration of the source.
    pub(super) fn source(&self) -> SourceConfig {
        SourceConfig {
            codec: self.codec,
            keyframes: Duration::from_secs_f64(self.keyframes),
            aligned: self.align_sources,
            ..SourceConfig::of(self.traffic.clone())
        }
    }

    /// Returns the options that affect the figures, by their names.
    pub(crate) fn by_name(&self) -> BTreeMap<String, Value> {
        let traffic = &self.traffic;
        given([
            ("bitrate", json!(traffic.video_bps)),
            ("fps", json!(traffic.fps)),
            ("packets-per-frame", json!(traffic.packets_per_frame)),
            ("sizes", json!(traffic.sizes)),
            ("audio-bitrate", json!(traffic.audio_bps)),
            ("codec", json!(self.codec)),
            ("keyframes", json!(self.keyframes)),
            ("align-sources", json!(self.align_sources)),
        ])
    }

    /// Returns the traffic, as a run measures it.
    pub(super) fn flow(&self, name: &'static str) -> Flow {
        let traffic = &self.traffic;
        let period = match traffic.video_bps {
            0 => AUDIO_PERIOD,
            _ if traffic.audio_bps > 0 => traffic.frame_period().min(AUDIO_PERIOD),
            _ => traffic.frame_period(),
        };
        Flow {
            name,
            interval: traffic.interval(),
            period,
            options: self.by_name(),
            hall: None,
            far: None,
        }
    }
}

/// Returns the options that have a value, by their names.
pub(crate) fn given<const N: usize>(pairs: [(&str, Value); N]) -> BTreeMap<String, Value> {
    let given = pairs.into_iter().filter(|(_, value)| !value.is_null());
    given
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Parses a number in `range`. `expected` explains it.
pub(crate) fn number(
    text: &str,
    range: impl RangeBounds<f64>,
    expected: &str,
) -> Result<f64, String> {
    let number = text
        .parse::<f64>()
        .ok()
        .filter(|number| range.contains(number));
    number.ok_or_else(|| expected.to_owned())
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    number(text, 0.0..=86_400.0, "a time in seconds is expected")
}

fn factor(text: &str) -> Result<f64, String> {
    number(text, 1.0..=10.0, "a factor from 1 to 10 is expected")
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let range = (Bound::Excluded(0.0), Bound::Included(60_000.0));
    number(text, range, "milliseconds up to 60000 are expected")
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1.0, "a share from 0 to 1 is expected")
}

fn rate(text: &str) -> Result<f64, String> {
    let expected = "a number from 0 to 1,000,000 is expected";
    number(text, 0.0..=1e6, expected)
}

/// Parses `KEY=VALUE`. VALUE is JSON, or else a text.
pub(super) fn member(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE is expected")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn further_members_are_json_or_text() {
        assert_eq!(member("threads=2").unwrap().1, json!(2));
        assert_eq!(member("secret=abc").unwrap().1, json!("abc"));
        assert!(member("threads").is_err());
    }
}
