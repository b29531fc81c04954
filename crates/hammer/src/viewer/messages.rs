//! What the load threads are told, and what they tell.

use std::time::Duration;

use portunus_srtp::Profile;

use super::check::Findings;
use super::ear::{Heard, Hearing};
use super::id::PeerId;
use super::prepare::Prepared;

/// A participant to be run.
#[derive(Debug)]
pub struct NewPeer {
    /// Its name from now on.
    pub id: PeerId,
    /// What it is made of.
    pub prepared: Prepared,
    /// Decrypt and check all that it gets, instead of counting.
    pub check: bool,
    /// Send receiver reports.
    pub reports: bool,
    /// The sources whose packets it should get: what [`LoadThreads::add_source`](super::LoadThreads::add_source) gave. None: it should
    /// get what it gets, or if it sends but does not publish, that.
    pub sources: Vec<usize>,
    /// How many participants it is the face of: 1, or 0 for the further PeerConnections of one.
    pub stands_for: u32,
    /// It can take no more than so many bits per second: it is behind a link of that rate if it sends
    /// transport-wide feedback; else it tells the server so (REMB).
    pub limit_bps: Option<u64>,
    /// It is in an audio room.
    pub hearing: Option<Hearing>,
}

/// Something that happened to a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// To whom.
    pub id: PeerId,
    /// What.
    pub kind: EventKind,
}

/// What happened to a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// ICE and DTLS are done; media is protected by this profile.
    Connected(Option<Profile>),
    /// Its first media packet came.
    Media,
    /// It is over, and why. Not told of those that are removed.
    Ended(String),
}

/// What all participants got since the last window.
#[derive(Debug, Default)]
pub struct Window {
    /// Participants with media at its end.
    pub participants: u32,
    /// PeerConnections that were up at its end, those included that publish.
    pub peer_connections: u32,
    /// Participants that got their first packet in it.
    pub joined: u32,
    /// Participants with media that left in it.
    pub left: u32,
    /// Packets that should have come.
    pub expected: u64,
    /// Packets that came.
    pub packets: u64,
    /// Their UDP payload, in bytes.
    pub bytes: u64,
    /// Of these, what those with a limit got.
    pub limited_bytes: u64,
    /// Those with a limit and with media at its end.
    pub limited: u32,
    /// What the decrypting participants found.
    pub findings: Findings,
    /// What those in audio rooms got.
    pub heard: Heard,
    /// The longest time between two packets of one decrypting participant.
    pub longest_gap: Duration,
    /// The share of its time that the busiest load thread did not sleep, 0 to 1.
    pub busy_share: f64,
    /// How much later than they were due frames left hammer, in microseconds.
    pub late_us: Vec<f64>,
}
