//! Topologies: who receives what in a scenario, as the bare loop serves it.

/// A scenario's participants, and what they receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Viewers who take turns at the sources.
    Streaming {
        /// The number of sources.
        sources: u32,
    },
    /// Peers that receive what they send.
    Echo,
    /// Subscribers of all of a room's publishers.
    Room {
        /// The number of publishers.
        publishers: u32,
        /// One PeerConnection for all feeds of a subscriber, instead of one per feed.
        multistream: bool,
    },
    /// The endpoints of a room, who all watch each other.
    Star {
        /// As in a room.
        multistream: bool,
    },
    /// Rooms of such endpoints.
    Rooms {
        /// Endpoints of each room.
        endpoints: u32,
        /// As in a room.
        multistream: bool,
    },
}

/// The limit of connections: the addresses of a lab, minus a reserve.
const MOST_CONNECTIONS: u32 = 200_000;

/// PeerConnections that receive media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Connections {
    pub(crate) count: u32,
    /// The feeds of each.
    pub(crate) feeds: u32,
}

/// The connections that receive each source's packets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Graph {
    pub(crate) connections: u32,
    pub(crate) sources: Vec<Vec<u32>>,
}

impl Topology {
    /// Returns the PeerConnections of these participants that receive media.
    pub(crate) fn connections(self, participants: u32) -> Connections {
        let n = participants;
        let of = |viewers: u32, feeds: u32, multistream: bool| {
            let (count, feeds) = match multistream {
                true => (viewers, feeds),
                false => (viewers.saturating_mul(feeds), 1),
            };
            Connections { count, feeds }
        };
        match self {
            Self::Streaming { .. } | Self::Echo => of(n, 1, true),
            Self::Room {
                publishers,
                multistream,
            } => of(n, publishers, multistream),
            Self::Star { multistream } => of(n, n.saturating_sub(1), multistream),
            Self::Rooms {
                endpoints,
                multistream,
            } => of(
                n.saturating_mul(endpoints),
                endpoints.saturating_sub(1),
                multistream,
            ),
        }
    }

    /// Returns the participants who together receive this number of streams of the whole traffic.
    pub(crate) fn participants(self, streams: f64) -> f64 {
        match self {
            Self::Streaming { .. } | Self::Echo => streams,
            Self::Room { publishers, .. } => streams / f64::from(publishers.max(1)),
            // K (K - 1) streams.
            Self::Star { .. } => 0.5 + (0.25 + streams).sqrt(),
            Self::Rooms { endpoints, .. } => {
                let endpoints = f64::from(endpoints);
                streams / (endpoints * (endpoints - 1.0)).max(1.0)
            }
        }
    }

    /// Returns the same as a number that can be served: at least one participant, or two of a star.
    pub(crate) fn whole_participants(self, streams: f64) -> u32 {
        let least = match self {
            Self::Star { .. } => 2,
            _ => 1,
        };
        let mut participants = (self.participants(streams).round() as u32).max(least);
        while participants > least && self.connections(participants).count > MOST_CONNECTIONS {
            participants /= 2;
        }
        participants.max(least)
    }

    /// Returns who sends to whom with this number of participants.
    pub(crate) fn graph(self, participants: u32) -> Graph {
        let n = participants;
        let sources = match self {
            Self::Streaming { sources } => {
                let watching = |source| (source..n).step_by(sources.max(1) as usize).collect();
                (0..sources.min(n)).map(watching).collect()
            }
            Self::Echo => (0..n).map(|peer| vec![peer]).collect(),
            Self::Room {
                publishers,
                multistream,
            } => {
                let watching = |publisher: u32| match multistream {
                    true => (0..n).collect(),
                    false => (0..n)
                        .map(|viewer| viewer * publishers + publisher)
                        .collect(),
                };
                (0..publishers).map(watching).collect()
            }
            Self::Star { multistream } => rooms(1, n, multistream),
            Self::Rooms {
                endpoints,
                multistream,
            } => rooms(n, endpoints, multistream),
        };
        Graph {
            connections: self.connections(n).count,
            sources,
        }
    }
}

fn rooms(rooms: u32, endpoints: u32, multistream: bool) -> Vec<Vec<u32>> {
    let feeds = endpoints.saturating_sub(1);
    let watching = |room: u32, source: u32| {
        let others = (0..endpoints).filter(move |other| *other != source);
        let connection = move |other: u32| {
            let viewer = room * endpoints + other;
            // The feed's index at the viewer, which does not count its own.
            let feed = if source < other {
                source
            } else {
                source.saturating_sub(1)
            };
            match multistream {
                true => viewer,
                false => viewer * feeds + feed,
            }
        };
        others.map(connection).collect()
    };
    (0..rooms)
        .flat_map(|room| (0..endpoints).map(move |source| watching(room, source)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Topology; 8] = [
        Topology::Streaming { sources: 1 },
        Topology::Streaming { sources: 4 },
        Topology::Echo,
        Topology::Room {
            publishers: 3,
            multistream: true,
        },
        Topology::Room {
            publishers: 3,
            multistream: false,
        },
        Topology::Star { multistream: false },
        Topology::Rooms {
            endpoints: 4,
            multistream: true,
        },
        Topology::Rooms {
            endpoints: 4,
            multistream: false,
        },
    ];

    #[test]
    fn each_connection_gets_as_many_feeds_as_it_has() {
        for topology in ALL {
            let Connections { count, feeds } = topology.connections(6);
            let graph = topology.graph(6);
            assert_eq!(graph.connections, count, "{topology:?}");
            for connection in 0..count {
                let of = |to: &&Vec<u32>| to.contains(&connection);
                let sources = graph.sources.iter().filter(of).count();
                assert_eq!(sources, feeds as usize, "{topology:?}: {connection}");
            }
        }
    }

    #[test]
    fn participants_are_told_from_their_streams() {
        for topology in ALL {
            let Connections { count, feeds } = topology.connections(6);
            let streams = f64::from(count * feeds);
            assert!((topology.participants(streams) - 6.0).abs() < 1e-9);
            assert_eq!(topology.whole_participants(streams), 6, "{topology:?}");
        }
        assert_eq!(
            Topology::Star { multistream: true }.whole_participants(0.1),
            2
        );
    }

    #[test]
    fn there_are_addresses_for_all() {
        let rooms = Topology::Rooms {
            endpoints: 100,
            multistream: false,
        };
        let most = rooms.whole_participants(1e9);
        assert!(rooms.connections(most).count <= MOST_CONNECTIONS);
    }
}
