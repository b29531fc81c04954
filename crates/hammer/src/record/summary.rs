//! What is left of all that a run measured.

use serde::{Deserialize, Serialize};

use super::{Calm, Carried, Criterion, Delays, Far, Quality, Recorded, Registered, SetUp, Sound};

/// The figures that a run is quoted with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What the figures of carried participants mean: in time, but in records of older versions.
    #[serde(default)]
    pub criterion: Criterion,
    /// The most that were carried at all, if that was looked for; [`Summary::most`] gives both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_all: Option<Carried>,
    /// The most participants in a step that was carried; 0 if none was.
    pub carried_participants: u32,
    /// PeerConnections in that step, those included that publish.
    #[serde(default)]
    pub peer_connections: u32,
    /// What arrived in that step, UDP payload.
    pub carried_bps: f64,
    /// What arrived in that step.
    pub carried_pps: f64,
    /// The share that arrived in that step.
    pub delivered_share: f64,
    /// CPU time of the server in that step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The server's memory for one more participant: from the step with the fewest to that with the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_participant: Option<f64>,
    /// The same for one more PeerConnection; with one step only, from the server without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_peer_connection: Option<f64>,
    /// The server's CPU time for each packet that arrived in the best step, with all that is around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_packet: Option<f64>,
    /// UDP payload that each of those with a limit got in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_bps: Option<f64>,
    /// The server's memory when all had left, again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Leaving>,
    /// Joins until media.
    #[serde(default)]
    pub joins: u64,
    /// Joins that failed.
    #[serde(default)]
    pub failed_joins: u64,
    /// PeerConnections that came in each second of time while joins were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_per_s: Option<f64>,
    /// The same for each second of the server's CPU time, relaying excluded as far as it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_per_cpu_s: Option<f64>,
    /// From a participant's first request to its first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_delay: Option<Delays>,
    /// From the source's sending to a participant's receiving, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The same of packets that no stall delayed, if stalls were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
    /// The longest time that a participant with media got none: in a storm or churn, one of those who were
    /// there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
    /// The same in times between two frames; 1 is none at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_frames: Option<f64>,
    /// [`Self::carried_pps`] of the ceiling's by the same criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_share: Option<f64>,
    /// The bare loop's CPU time for each packet of the server's, with these participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_share: Option<f64>,
    /// What was measured once more with a share of the most that were carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// What was heard in audio rooms, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// What came at the far end of calls, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
    /// How long calls took to be set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_up: Option<SetUp>,
    /// Accounts that were registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
    /// How well sentences were heard that came over a bad way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// What a server that recorded has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// What makes figures doubtful: hammer's own limits, stolen time, refused joins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Summary {
    /// The most that was carried by a criterion; none if that is not known.
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

/// A share of the most participants that were carried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Which share, 0 to 1.
    pub share: f64,
    /// So many they were.
    pub participants: u32,
    /// The share of packets that arrived.
    pub delivered_share: f64,
    /// CPU time of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The bare loop's CPU time for each packet of the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_share: Option<f64>,
    /// From the source's sending to a participant's receiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The same of packets that no stall delayed, if stalls were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
}

/// A server's memory over times in which all came and left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Leaving {
    /// Before anybody came.
    pub before_bytes: u64,
    /// With everybody there, each time.
    pub full_bytes: Vec<u64>,
    /// When all had left, each time.
    pub empty_bytes: Vec<u64>,
}

impl Leaving {
    /// By how much more memory is in use after the last time than after the first; the larger one of
    /// those with everybody there and with nobody. None of fewer than two times.
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
    #![allow(clippy::unwrap_used)]
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
