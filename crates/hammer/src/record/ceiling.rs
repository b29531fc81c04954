//! The ceiling: the same packets, encrypted and sent by a bare loop to as many viewers.

use serde::{Deserialize, Serialize};

use super::Criterion;

/// The most that a bare loop of encrypting and sending reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The SRTP profile, by its name in OpenSSL.
    pub srtp_profile: String,
    /// The most in time: each frame left within its frame interval, and was not joined with another
    /// one of its source.
    #[serde(flatten)]
    pub in_time: BareLoop,
    /// The most at all: frames of a source waited for each other and left as one message, as far as
    /// that was faster. Never less than `in_time`. `None` in records of versions that did not
    /// measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_all: Option<BareLoop>,
}

/// The result of one way of sending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BareLoop {
    /// The delivered rate of UDP payload.
    pub delivered_bps: f64,
    /// The delivered rate of packets.
    pub delivered_pps: f64,
    /// Arrived packets as a share of sent ones.
    pub delivered_share: f64,
    /// The streams of the whole traffic that this rate suffices for.
    pub viewers: f64,
    /// The same, in the scenario's participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participants: Option<f64>,
    /// Viewers' addresses that the loop sent to.
    #[serde(default)]
    pub addresses: u32,
    /// Frames of a source that left together. 1 if none were joined.
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
    /// Bytes encrypted between two system calls: the fastest size that was tried.
    pub batch_bytes: u64,
    /// The share of time in which the loop had its core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
}

/// The load of the loop with a given number of participants, when it sends each frame when it is
/// due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BareLoad {
    /// The number of participants.
    pub participants: u32,
    /// CPU time per packet, including everything around it.
    pub cpu_ns_per_packet: f64,
    /// CPU time.
    pub cpu_cores: f64,
    /// Arrived packets as a share of sent ones.
    pub delivered_share: f64,
}

impl Ceiling {
    /// Returns the bare loop to compare with.
    pub fn of(&self, criterion: Criterion) -> Option<&BareLoop> {
        match criterion {
            Criterion::InTime => Some(&self.in_time),
            Criterion::AtAll => self.at_all.as_ref(),
        }
    }
}

impl BareLoop {
    /// Returns the CPU time per packet.
    pub fn cpu_ns_per_packet(&self) -> f64 {
        (self.crypto_ns + self.send_ns) * self.cpu_share.unwrap_or(1.0)
    }

    /// Describes which packets left as one message.
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
