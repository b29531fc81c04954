//! The messages to and from the load threads.

use std::time::Duration;

use portunus_srtp::Profile;

use super::check::Findings;
use super::ear::{Heard, Hearing};
use super::id::PeerId;
use super::preparation::Prepared;

/// A participant to run.
#[derive(Debug)]
pub struct NewPeer {
    /// Its id.
    pub id: PeerId,
    /// The prepared participant.
    pub prepared: Prepared,
    /// Decrypts and checks all packets, instead of counting them.
    pub check: bool,
    /// Sends receiver reports.
    pub reports: bool,
    /// The sources whose packets it should receive, from
    /// [`LoadThreads::add_source`](super::LoadThreads::add_source). If empty, it should receive
    /// what it receives, or, if it sends without publishing, what it sends.
    pub sources: Vec<usize>,
    /// The participants that it counts as: 1, or 0 for further PeerConnections of one.
    pub stands_for: u32,
    /// Its limit in bits per second. If it sends transport-wide feedback, it is behind a link of
    /// that rate. Otherwise, it reports the limit to the server (REMB).
    pub limit_bps: Option<u64>,
    /// Set if it is in an audio room.
    pub hearing: Option<Hearing>,
}

/// An event of a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The participant.
    pub id: PeerId,
    /// The event.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// ICE and DTLS are complete. Media is protected by this profile.
    Connected(Option<Profile>),
    /// The first media packet arrived.
    Media,
    /// The participant ended, with the reason. Not sent for removed participants.
    Ended(String),
}

/// What one participant has received since it joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The participant.
    pub id: PeerId,
    /// Received media packets.
    pub packets: u64,
    /// Numbers that are missing and have not arrived late. `None` if it does not check packets.
    pub lost: Option<i64>,
    /// The longest wait for a packet that had been sent and then arrived, since the last call.
    pub longest_wait: Option<Duration>,
    /// The time since its last packet.
    pub silent: Option<Duration>,
}

/// What all participants received since the last window.
#[derive(Debug, Default)]
pub struct Window {
    /// Participants with media at its end.
    pub participants: u32,
    /// PeerConnections that were up at its end, including publishing ones.
    pub peer_connections: u32,
    /// Participants that received their first packet.
    pub joined: u32,
    /// Participants with media that left.
    pub left: u32,
    /// Expected packets.
    pub expected: u64,
    /// Received packets.
    pub packets: u64,
    /// The UDP payload of these packets, in bytes.
    pub bytes: u64,
    /// The part of these bytes that participants with a limit received.
    pub limited_bytes: u64,
    /// Participants with a limit that have media at its end.
    pub limited: u32,
    /// The findings of decrypting participants.
    pub findings: Findings,
    /// What participants of audio rooms received.
    pub heard: Heard,
    /// The longest time between two packets of one decrypting participant.
    pub longest_gap: Duration,
    /// The share of time in which the busiest load thread did not sleep, 0 to 1.
    pub busy_share: f64,
    /// The delays with which frames left hammer after they were due, in microseconds.
    pub late_us: Vec<f64>,
}
