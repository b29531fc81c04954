//! Several nodes of a cluster under load.

use serde::{Deserialize, Serialize};

use super::Delays;

/// What the nodes of a cluster did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// The number of nodes.
    pub nodes: u32,
    /// The delay that each link between nodes was given, in each direction.
    pub link_delay_ms: f64,
    /// The share of packets that each link was told to lose.
    pub link_loss_share: f64,
    /// CPU time of one server without a cluster that had as many viewers as each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_cpu_cores: Option<f64>,
    /// The nodes while all had viewers of one source, the node of the source first.
    pub each: Vec<NodeLoad>,
    /// The viewers that all nodes carry, as a multiple of those of one server, by CPU time: the sum
    /// over the nodes of the CPU time of the server alone divided by that of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_one: Option<f64>,
    /// The cost of relayed sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayCost>,
    /// What happened by script, and what viewers had of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<Act>,
}

/// A node with viewers of the one source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// The node.
    pub node: String,
    /// Its viewers.
    pub viewers: u32,
    /// CPU time of its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<f64>,
    /// Packets that arrived during the measurement, as a share of those sent during it. Late packets
    /// lower it, too: those that arrive after the end do not count.
    pub delivered_share: f64,
    /// Packets that never arrived, as a share of those sent to the viewers that decrypt, by their
    /// sequence numbers.
    #[serde(default)]
    pub lost_share: f64,
    /// UDP payload that arrived.
    pub received_bps: f64,
    /// The delay of packets from the source to a viewer, with all viewers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The round trip between this node and that of the source, as the nodes measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<f64>,
    /// What the way over the other node adds to the delay of a packet, with one viewer at each node:
    /// its delay here without that of the same packet at the node of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<Delays>,
}

/// The cost of sources that cross to one other node. CPU time is that of one source or viewer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayCost {
    /// The sources that crossed, each for one viewer.
    pub sources: u32,
    /// CPU time that one relayed source costs its node.
    pub source_cpu_cores: f64,
    /// CPU time that one more viewer costs the same node.
    pub viewer_cpu_cores: f64,
    /// CPU time that one relayed source costs the other node, with its one viewer there.
    pub far_cpu_cores: f64,
    /// The time from the first request of a viewer to its first packet, at the node of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_packet_here: Option<Delays>,
    /// The same at the other node, for sources that do not cross yet, on a link that is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_packet_there: Option<Delays>,
}

/// An event of the script, with what came of it until the next one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Act {
    /// The event, such as `cut A-B`. `start` is the time before the first one.
    pub event: String,
    /// When it was, since the start of the script.
    pub at_s: f64,
    /// When the next one was, or the end.
    pub until_s: f64,
    /// Why it could not be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// All viewers that were there.
    pub viewers: u32,
    /// Those who lost packets, or waited half a second for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Losses>,
    /// What people in the room were told of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Viewers of one source at one node who lost packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// Their node.
    pub node: String,
    /// Their source: `mountpoint of A`, or `A's publisher`.
    pub watched: String,
    /// How many they are.
    pub viewers: u32,
    /// How many of them lost packets, or waited half a second for one.
    pub affected: u32,
    /// Missed packets. The packets of a stream that never continues are not counted.
    pub lost_packets: u64,
    /// The longest time for which one of them got none although packets had been sent.
    pub longest_gap_ms: f64,
}

/// What somebody in the room was told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The node of who was told.
    pub node: String,
    /// The node of the publisher.
    pub of: String,
    /// Whether it left, or was announced.
    pub news: News,
    /// The time since the event.
    pub after_s: f64,
}

/// What became of a publisher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum News {
    /// It has left.
    #[default]
    Left,
    /// It publishes.
    Announced,
}

impl Cluster {
    /// Returns the times after which people learned that the publisher of a killed node is gone.
    pub fn gone_s(&self) -> impl Iterator<Item = f64> + '_ {
        let kills = self.acts.iter().filter_map(|act| {
            let killed = act.event.strip_prefix("kill ")?;
            Some((killed, act))
        });
        kills.flat_map(|(killed, act)| {
            let notices = act.notices.iter();
            let of_killed =
                move |notice: &&Notice| notice.of == killed && notice.news == News::Left;
            notices.filter(of_killed).map(|notice| notice.after_s)
        })
    }

    /// Returns what the way to other nodes adds to the delay of 99 of 100 packets at most, in µs.
    pub fn hop_p99_us(&self) -> Option<f64> {
        let hops = self.each.iter().filter_map(|node| node.hop);
        hops.map(|hop| hop.p99_us).max_by(f64::total_cmp)
    }
}

impl RelayCost {
    /// Returns the cost of a relayed source at its node, as a multiple of that of a viewer.
    pub fn in_viewers(&self) -> Option<f64> {
        let ratio = self.source_cpu_cores / self.viewer_cpu_cores;
        ratio.is_finite().then_some(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_of_killed_nodes_are_gone_when_others_learn_it() {
        let notice = |of: &str, news, after_s| Notice {
            node: "A".to_owned(),
            of: of.to_owned(),
            news,
            after_s,
        };
        let act = |event: &str, notices| Act {
            event: event.to_owned(),
            notices,
            ..Act::default()
        };
        let cluster = Cluster {
            acts: vec![
                act("cut A-B", vec![notice("B", News::Left, 3.0)]),
                act(
                    "kill C",
                    vec![
                        notice("C", News::Left, 2.5),
                        notice("B", News::Announced, 4.0),
                    ],
                ),
            ],
            ..Cluster::default()
        };
        assert_eq!(cluster.gone_s().collect::<Vec<_>>(), [2.5]);
    }
}
