//! What a bare loop of encrypting and sending does with the same packets, for as many viewers.

use serde::{Deserialize, Serialize};

use super::Criterion;

/// The most that a bare loop of encrypting and sending reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The SRTP profile, by its name in OpenSSL.
    pub srtp_profile: String,
    /// The most in time: each frame left within its frame interval, and none was joined to another one of its source.
    #[serde(flatten)]
    pub in_time: BareLoop,
    /// The most at all: frames of a source waited for each other and left as one message, as far as that paid. Never less.
    /// None in records of versions that did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_all: Option<BareLoop>,
}

/// What the loop reached in one way of sending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BareLoop {
    /// What arrived, UDP payload.
    pub delivered_bps: f64,
    /// What arrived.
    pub delivered_pps: f64,
    /// Arrived of sent.
    pub delivered_share: f64,
    /// Streams of the whole traffic that this would be enough for.
    pub viewers: f64,
    /// The same as the scenario counts participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participants: Option<f64>,
    /// Addresses of viewers that it sent to.
    #[serde(default)]
    pub addresses: u32,
    /// Frames of a source that left together; 1: none was joined to another.
    #[serde(default = "one")]
    pub frames_joined: u32,
    /// Frames of several sources for one viewer left together.
    #[serde(default)]
    pub sources_joined: bool,
    /// Packets were padded to one size, so that they could be joined.
    #[serde(default)]
    pub padded: bool,
    /// Time for one packet's header and encryption.
    pub crypto_ns: f64,
    /// Time for one packet's part of the system calls.
    pub send_ns: f64,
    /// Bytes that were encrypted between two system calls: the fastest of those tried.
    pub batch_bytes: u64,
    /// How much of the time the loop had its core; what is missing went to something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
}

/// What the loop used for a given number of participants, sending each frame when it was due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BareLoad {
    /// So many they were.
    pub participants: u32,
    /// CPU time for each packet, with all that was around it.
    pub cpu_ns_per_packet: f64,
    /// CPU time.
    pub cpu_cores: f64,
    /// Arrived of sent.
    pub delivered_share: f64,
}

impl Ceiling {
    /// The one to compare with.
    pub fn of(&self, criterion: Criterion) -> Option<&BareLoop> {
        match criterion {
            Criterion::InTime => Some(&self.in_time),
            Criterion::AtAll => self.at_all.as_ref(),
        }
    }
}

impl BareLoop {
    /// CPU time for each packet.
    pub fn cpu_ns_per_packet(&self) -> f64 {
        (self.crypto_ns + self.send_ns) * self.cpu_share.unwrap_or(1.0)
    }

    /// What left as one message, in words.
    pub fn joined(&self) -> String {
        let mut words = match self.frames_joined {
            0 | 1 => "each frame by itself".to_owned(),
            frames => format!("{frames} frames of a source joined"),
        };
        if self.sources_joined {
            words += ", sources joined";
        }
        if self.padded {
            words += ", packets padded";
        }
        words
    }
}

fn one() -> u32 {
    1
}
