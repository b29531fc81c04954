//! The summary of a run.

use serde::{Deserialize, Serialize};

use super::{
    Calm, Carried, Criterion, Delays, Far, IN_TIME_BEFORE, Quality, Recorded, Registered, SetUp,
    Sound,
};

/// The figures that are quoted for a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The criterion of the figures of carried participants. It is "in time" except in records of
    /// older versions.
    #[serde(default)]
    pub criterion: Criterion,
    /// The share of packets that has to arrive within one frame interval, for "in time".
    #[serde(default = "in_time_before")]
    pub in_time_at_least_share: f64,
    /// The most that were carried at all, if that was searched. [`Summary::most`] returns both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_all: Option<Carried>,
    /// The most participants in a carried step, or 0.
    pub carried_participants: u32,
    /// PeerConnections in that step, including publishing ones.
    #[serde(default)]
    pub peer_connections: u32,
    /// The received rate of UDP payload in that step.
    pub carried_bps: f64,
    /// The received rate of packets in that step.
    pub carried_pps: f64,
    /// The share of expected packets that arrived in that step.
    pub delivered_share: f64,
    /// CPU time of the server in that step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The server's memory per additional participant, from the step with the fewest to that with
    /// the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_participant: Option<f64>,
    /// The server's memory per additional PeerConnection. With a single step, it is relative to the
    /// server without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_peer_connection: Option<f64>,
    /// The server's CPU time per packet that arrived in the best step, including everything around
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_packet: Option<f64>,
    /// The UDP payload that each participant with a limit received in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_bps: Option<f64>,
    /// The sessions that were resumed after all connections had broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumed>,
    /// The server's memory after all participants had left, repeatedly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Leaving>,
    /// Joins that reached media.
    #[serde(default)]
    pub joins: u64,
    /// Joins that failed.
    #[serde(default)]
    pub failed_joins: u64,
    /// PeerConnections that joined per second while joins were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_per_s: Option<f64>,
    /// The same per second of the server's CPU time, without that of relaying, as far as it can be
    /// separated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_per_cpu_s: Option<f64>,
    /// The time from a participant's first request to its first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_delay: Option<Delays>,
    /// The delay from the source's sending to a participant's receiving, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The delay of packets that no stall delayed, if stalls were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
    /// The longest time in which a participant with media received no packet. In a storm or with
    /// churn, only of participants that were there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
    /// The same in frame intervals. 1 means no gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_frames: Option<f64>,
    /// [`Self::carried_pps`], relative to the ceiling by the same criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_share: Option<f64>,
    /// The bare loop's CPU time per packet with these participants, relative to the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_share: Option<f64>,
    /// The measurement repeated with a share of the most that were carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The sound in audio rooms, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// What the far end of calls received, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
    /// The time to set up calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_up: Option<SetUp>,
    /// The registered accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
    /// The quality of sentences sent over a lossy path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// The files of a server that recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// Reasons to doubt the figures: hammer's own limits, stolen time, refused joins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn in_time_before() -> f64 {
    IN_TIME_BEFORE
}

impl Summary {
    /// Returns the most that was carried by a criterion, or `None` if unknown.
    pub fn most(&self, criterion: Criterion) -> Option<Carried> {
        if criterion != self.criterion {
            return self
                .at_all
                .clone()
                .filter(|_| criterion == Criterion::AtAll);
        }
        Some(Carried {
            participants: self.carried_participants,
            peer_connections: self.peer_connections,
            received_bps: self.carried_bps,
            received_pps: self.carried_pps,
            delivered_share: self.delivered_share,
            server_cpu_cores: self.server_cpu_cores,
            cpu_ns_per_packet: self.cpu_ns_per_packet,
            delay: self.delay,
            // Older versions compared what was carried at all with what is now the ceiling in time.
            ceiling_share: self
                .ceiling_share
                .filter(|_| criterion == Criterion::InTime),
            efficiency_share: self.efficiency_share,
        })
    }
}

/// A measurement with a share of the most participants that were carried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The share, 0 to 1.
    pub share: f64,
    /// The number of participants.
    pub participants: u32,
    /// The share of expected packets that arrived.
    pub delivered_share: f64,
    /// CPU time of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The bare loop's CPU time per packet, relative to the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_share: Option<f64>,
    /// The delay from the source's sending to a participant's receiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The delay of packets that no stall delayed, if stalls were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
}

/// The sessions that were resumed after all connections had broken at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// Sessions that could not be resumed.
    pub failed: u32,
    /// The time from the break to the answered ICE restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The longest time meanwhile in which a participant received no packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
}

/// A server's memory while all participants come and leave repeatedly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Leaving {
    /// Before the first one joined.
    pub before_bytes: u64,
    /// With all participants, each time.
    pub full_bytes: Vec<u64>,
    /// After all had left, each time.
    pub empty_bytes: Vec<u64>,
}

impl Leaving {
    /// Returns the growth of memory from the first time to the last one: the larger of the growth
    /// with all participants and with none. Returns `None` with fewer than two times.
    pub fn growth_share(&self) -> Option<f64> {
        let growth = |bytes: &[u64]| match bytes {
            [first, .., last] => Some(*last as f64 / (*first).max(1) as f64 - 1.0),
            _ => None,
        };
        let growths = [growth(&self.full_bytes), growth(&self.empty_bytes)];
        growths.into_iter().flatten().max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn memory_that_stays_is_told_from_memory_that_grows() {
        let mut leaving = Leaving {
            before_bytes: 10,
            full_bytes: vec![100, 100, 101],
            empty_bytes: vec![50],
        };
        assert!((leaving.growth_share().unwrap() - 0.01).abs() < 1e-9);
        leaving.empty_bytes = vec![50, 60];
        assert!((leaving.growth_share().unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(Leaving::default().growth_share(), None);
    }

    #[test]
    fn what_older_versions_counted_is_carried_at_all() {
        let old = Summary {
            carried_participants: 7,
            ceiling_share: Some(1.39),
            ..Summary::default()
        };
        assert_eq!(old.most(Criterion::InTime), None);
        let at_all = old.most(Criterion::AtAll).unwrap();
        assert_eq!((at_all.participants, at_all.ceiling_share), (7, None));
    }
}
