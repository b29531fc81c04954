//! Statistics of node links, readable at any time without asking workers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::LinkRefusal;

/// What a node link carried since it was added. Times are those of the last reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeLinkStats {
    /// The streams that are sent at present.
    pub sent_streams: u64,
    /// The streams that are expected at present.
    pub received_streams: u64,
    /// Packets sent, without retransmissions.
    pub sent_packets: u64,
    /// Their bytes, with headers and tags, and those of retransmissions.
    pub sent_bytes: u64,
    /// Packets received, with retransmissions.
    pub received_packets: u64,
    /// Their bytes, with headers and tags.
    pub received_bytes: u64,
    /// Packets that were requested again of the other node.
    pub requested_packets: u64,
    /// Packets that the other node requested again and got.
    pub retransmitted_packets: u64,
    /// Packets that did not come, however often they were requested.
    pub lost_packets: u64,
    /// Keyframes requested of the other node.
    pub keyframe_requests: u64,
    /// Packets that came twice.
    pub repeated_packets: u64,
    /// Datagrams refused because they are not RTP or RTCP.
    pub malformed: u64,
    /// Datagrams refused because their SSRC is not expected.
    pub unknown_ssrc: u64,
    /// Datagrams refused because they were not sealed with the key of the link.
    pub unauthentic: u64,
    /// Datagrams refused because they came before, or too late.
    pub replayed: u64,
    /// The fraction of packets that the other node lost in the last second, in 1/256.
    pub fraction_lost: u8,
    /// The round trip, if it is known.
    pub round_trip: Option<Duration>,
    /// The reports of this node that the other one has answered in time.
    pub answered_reports: u64,
}

/// Whether the other node is heard on a link: numbers that grow as long as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignsOfLife {
    /// Packets and reports that came from it.
    pub heard: u64,
    /// Reports of this node that it has answered in time, so that both directions work.
    pub answered: u64,
}

/// What a worker counts of a node link.
#[derive(Debug, Default)]
pub(crate) struct NodeLinkStatus {
    pub(crate) sent_streams: AtomicU64,
    pub(crate) received_streams: AtomicU64,
    pub(crate) sent_packets: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_packets: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) requested: AtomicU64,
    pub(crate) retransmitted: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) keyframe_requests: AtomicU64,
    pub(crate) repeated: AtomicU64,
    refused: Refusals,
    pub(crate) fraction_lost: AtomicU64,
    /// In µs. 0 before it is known.
    pub(crate) round_trip: AtomicU64,
    /// Compounds of RTCP that came from the other node.
    pub(crate) reports: AtomicU64,
    /// Reports of ours that the other node has answered in time.
    pub(crate) answered: AtomicU64,
}

/// Refused datagrams, by reason.
#[derive(Debug, Default)]
pub(crate) struct Refusals([AtomicU64; LinkRefusal::COUNT]);

impl Refusals {
    pub(crate) fn count(&self, why: LinkRefusal) {
        if let Some(count) = self.0.get(why as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn get(&self, why: LinkRefusal) -> u64 {
        let count = self.0.get(why as usize);
        count.map_or(0, |count| count.load(Relaxed))
    }
}

impl NodeLinkStatus {
    pub(crate) fn refuse(&self, why: LinkRefusal) {
        self.refused.count(why);
    }

    pub(crate) fn note_round_trip(&self, round_trip: Duration) {
        let us = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
        self.round_trip.store(us.max(1), Relaxed);
    }

    /// Adds the signs of life that a worker has noted.
    pub(crate) fn add_signs(&self, sum: &mut SignsOfLife) {
        sum.heard += self.received_packets.load(Relaxed) + self.reports.load(Relaxed);
        sum.answered += self.answered.load(Relaxed);
    }

    /// Adds what a worker has counted.
    pub(crate) fn add_to(&self, sum: &mut NodeLinkStats) {
        let counts = [
            (&mut sum.sent_streams, &self.sent_streams),
            (&mut sum.received_streams, &self.received_streams),
            (&mut sum.sent_packets, &self.sent_packets),
            (&mut sum.sent_bytes, &self.sent_bytes),
            (&mut sum.received_packets, &self.received_packets),
            (&mut sum.received_bytes, &self.received_bytes),
            (&mut sum.requested_packets, &self.requested),
            (&mut sum.retransmitted_packets, &self.retransmitted),
            (&mut sum.lost_packets, &self.lost),
            (&mut sum.keyframe_requests, &self.keyframe_requests),
            (&mut sum.repeated_packets, &self.repeated),
            (&mut sum.answered_reports, &self.answered),
        ];
        for (sum, count) in counts {
            *sum += count.load(Relaxed);
        }
        sum.malformed += self.refused.get(LinkRefusal::Malformed);
        sum.unknown_ssrc += self.refused.get(LinkRefusal::UnknownSsrc);
        sum.unauthentic += self.refused.get(LinkRefusal::Unauthentic);
        sum.replayed += self.refused.get(LinkRefusal::Replayed);
        let lost = u8::try_from(self.fraction_lost.load(Relaxed)).unwrap_or(u8::MAX);
        sum.fraction_lost = sum.fraction_lost.max(lost);
        let round_trip = match self.round_trip.load(Relaxed) {
            0 => None,
            us => Some(Duration::from_micros(us)),
        };
        sum.round_trip = sum.round_trip.max(round_trip);
    }
}

/// What a relayed stream has carried, written by its worker.
#[derive(Debug, Default)]
pub struct RelayCount {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl RelayCount {
    /// The packets sent, with retransmissions.
    pub fn packets(&self) -> u64 {
        self.packets.load(Relaxed)
    }

    /// Their bytes, with headers and tags.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        // Only its worker writes it.
        self.packets.store(self.packets() + 1, Relaxed);
        self.bytes.store(self.bytes() + bytes as u64, Relaxed);
    }
}
