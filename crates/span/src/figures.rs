//! What the media links of a node carry.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use portunus_cluster::NodeId;
use portunus_media::NodeLinkStats;
use portunus_relay::TreeFigures;
use serde::Serialize;

/// The media link with another node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkFigures {
    /// The other node.
    pub node: NodeId,
    /// The round trip, in µs, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
    /// The share of packets that the other node has lost in the last second, 0 to 1.
    pub lost: f32,
    /// The rate of what is sent, in Mbit/s.
    pub mbps_out: f32,
    /// The rate of what is received, in Mbit/s.
    pub mbps_in: f32,
    /// The streams that are sent.
    pub streams_out: u64,
    /// The streams that are received.
    pub streams_in: u64,
    /// Packets that did not come, however often they were requested.
    pub lost_packets: u64,
    /// Datagrams that were refused.
    pub refused: u64,
    /// Whether media crosses the link in both directions, as far as is known.
    pub works: bool,
    /// The streams that are sent to the other node for third ones.
    pub carried_streams: u64,
    /// The sources of the other node that come through third ones: how many by which.
    pub through: BTreeMap<String, u64>,
    /// Bytes sent and received since the link was added.
    #[serde(skip)]
    pub bytes: (u64, u64),
}

/// The rates of links, from two moments.
#[derive(Debug, Default)]
pub(crate) struct Rates(HashMap<NodeId, Moment>);

#[derive(Debug)]
struct Moment {
    at: Instant,
    bytes: (u64, u64),
    /// In Mbit/s, out and in.
    mbps: (f32, f32),
}

impl Rates {
    /// Measures a link. The time since the last measurement is one second or so.
    pub(crate) fn measure(&mut self, node: &NodeId, stats: &NodeLinkStats, now: Instant) {
        let bytes = (stats.sent_bytes, stats.received_bytes);
        let moment = self.0.entry(node.clone()).or_insert(Moment {
            at: now,
            bytes,
            mbps: (0.0, 0.0),
        });
        let seconds = now.saturating_duration_since(moment.at).as_secs_f32();
        if seconds > 0.0 {
            // A link that was added anew begins at 0.
            let rate = |now: u64, then: u64| now.saturating_sub(then) as f32 * 8e-6 / seconds;
            moment.mbps = (rate(bytes.0, moment.bytes.0), rate(bytes.1, moment.bytes.1));
            (moment.at, moment.bytes) = (now, bytes);
        }
    }

    /// Forgets the links with other nodes than these.
    pub(crate) fn keep(&mut self, is_there: impl Fn(&NodeId) -> bool) {
        self.0.retain(|node, _| is_there(node));
    }

    pub(crate) fn figures(
        &self,
        node: NodeId,
        stats: &NodeLinkStats,
        tree: &TreeFigures,
    ) -> LinkFigures {
        let mbps = self.0.get(&node).map_or((0.0, 0.0), |it| it.mbps);
        let round_trip = stats.round_trip.map(|it| it.as_micros());
        let refused = [
            stats.malformed,
            stats.unknown_ssrc,
            stats.unauthentic,
            stats.replayed,
        ];
        let through = tree.through.iter();
        let through = through.map(|(name, sources)| (name.to_string(), *sources as u64));
        LinkFigures {
            node,
            round_trip_us: round_trip.and_then(|us| u64::try_from(us).ok()),
            lost: f32::from(stats.fraction_lost) / 256.0,
            mbps_out: mbps.0,
            mbps_in: mbps.1,
            streams_out: stats.sent_streams,
            streams_in: stats.received_streams,
            lost_packets: stats.lost_packets,
            refused: refused.iter().sum(),
            works: tree.works,
            carried_streams: tree.carried_streams as u64,
            through: through.collect(),
            bytes: (stats.sent_bytes, stats.received_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::time::Duration;

    use super::*;

    #[test]
    fn rates_are_those_of_the_last_second() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let node = NodeId::new("b").unwrap();
        let stats = |sent_bytes| NodeLinkStats {
            sent_bytes,
            ..NodeLinkStats::default()
        };
        rates.measure(&node, &stats(0), start);
        rates.measure(&node, &stats(250_000), start + Duration::from_secs(2));
        let figures = rates.figures(node.clone(), &stats(250_000), &TreeFigures::default());
        assert!((figures.mbps_out - 1.0).abs() < 1e-3);
        // A link that was added anew.
        rates.measure(&node, &stats(10), start + Duration::from_secs(3));
        let figures = rates.figures(node, &stats(10), &TreeFigures::default());
        assert!(figures.mbps_out.abs() < 1e-3);
    }
}
