//! Two nodes that exchange messages, whose media planes only note requests.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_media::testing::Requested;
use portunus_media::{Demand, IngestId, MediaPlane, NodeLinkKey, NodeLinkOptions, SourceRef};
use portunus_relay::{
    Event, FarNodeId, FarNodeOptions, Message, Offer, SourceDescription, State, TreeOptions,
};
use portunus_sdp::CodecName;

/// A node, and the other one as it knows it.
struct Node {
    media: MediaPlane,
    state: State,
    other: FarNodeId,
    events: Vec<Event>,
}

/// Node 0 offers, node 1 subscribes.
struct Pair {
    nodes: [Node; 2],
    now: Instant,
    /// All messages, as they would be on the wire.
    wire: Vec<String>,
}

fn node() -> Node {
    let (media, _, _) = MediaPlane::detached();
    let mut state = State::new(media.clone(), TreeOptions::default());
    let link = NodeLinkOptions {
        far: vec![SocketAddr::from(([192, 0, 2, 1], 4_000))],
        send: NodeLinkKey::random(),
        receive: NodeLinkKey::random(),
    };
    let max_bps = Some(1_000_000);
    let options = FarNodeOptions {
        link,
        max_bps,
        place: None,
        is_suspect: false,
    };
    let other = state.connect(&options, Instant::now());
    Node {
        media,
        state,
        other,
        events: Vec::new(),
    }
}

impl Pair {
    fn new() -> Self {
        Self {
            nodes: [node(), node()],
            now: Instant::now(),
            wire: Vec::new(),
        }
    }

    fn offer(&mut self, codec: CodecName, encodings: u8) -> (Offer, SourceRef) {
        let source = SourceRef::Ingest(IngestId {
            worker: 0,
            serial: 900 + u64::from(encodings),
        });
        let description = SourceDescription {
            encodings,
            ..SourceDescription::new(codec)
        };
        let offer = self.nodes[0].state.offer(source, description);
        (offer, source)
    }

    fn subscribe(&mut self, offer: &Offer) -> IngestId {
        let node = &mut self.nodes[1];
        node.state.subscribe(node.other, offer).unwrap()
    }

    /// What viewers of an ingest can see.
    fn look(&mut self, ingest: IngestId, encodings: u8) {
        let demand = Demand {
            encodings,
            spatial: 2,
            temporal: 2,
        };
        self.nodes[1].state.reports().pretend(ingest, demand);
        self.settle();
    }

    fn settle(&mut self) {
        for _ in 0..4 {
            for n in 0..2 {
                let state = &mut self.nodes[n].state;
                state.take_reports(self.now);
                if state.poll_timeout().is_some_and(|at| at <= self.now) {
                    state.handle_timeout(self.now);
                }
                while let Some((_, message)) = self.nodes[n].state.poll_message() {
                    let text = serde_json::to_string(&message).unwrap();
                    let read: Message = serde_json::from_str(&text).unwrap();
                    assert_eq!(read, message);
                    self.wire.push(text);
                    let other = &mut self.nodes[1 - n];
                    other.state.take_message(other.other, &read, self.now);
                }
                let node = &mut self.nodes[n];
                node.events
                    .extend(std::iter::from_fn(|| node.state.poll_event()));
            }
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds * 4 {
            self.now += Duration::from_millis(250);
            self.settle();
        }
    }

    fn requested(&self, node: usize) -> Requested {
        self.nodes[node].media.requested()
    }

    /// The encodings that node 0 sends, with their SSRCs.
    fn sent(&self) -> Vec<(u8, u32)> {
        let outlets = self.requested(0).outlets;
        let relays = outlets.iter().filter(|it| it.options.enabled);
        let mut sent: Vec<_> = relays
            .filter_map(|outlet| outlet.relay())
            .map(|relay| (relay.encoding, relay.ssrc.0))
            .collect();
        sent.sort_unstable();
        sent
    }

    fn encodings(&self) -> Vec<u8> {
        self.sent()
            .into_iter()
            .map(|(encoding, _)| encoding)
            .collect()
    }
}

#[test]
fn a_source_is_asked_for_when_somebody_looks_and_no_longer_when_nobody_does() {
    let mut pair = Pair::new();
    let (offer, _) = pair.offer(CodecName::Vp8, 3);
    let ingest = pair.subscribe(&offer);
    pair.pass(10);
    assert_eq!((pair.sent(), pair.wire.len()), (vec![], 0), "nobody looks");
    pair.look(ingest, 7);
    assert_eq!(pair.encodings(), [0, 1, 2]);
    // The node expects just what the other one sends.
    let expected = pair.requested(1).relayed;
    let mut expected: Vec<_> = expected.iter().map(|it| (it.encoding, it.ssrc.0)).collect();
    expected.sort_unstable();
    assert_eq!(expected, pair.sent());
    pair.look(ingest, 1);
    pair.pass(4);
    assert_eq!(pair.encodings(), [0, 1, 2], "somebody may come back");
    pair.pass(2);
    assert_eq!(pair.encodings(), [0]);
    pair.look(ingest, 0);
    pair.pass(8);
    assert_eq!(pair.sent(), []);
    assert_eq!(pair.requested(1).relayed, []);
    let wanted: Vec<u8> = pair.nodes[0]
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Wanted { demand, .. } => Some(demand.encodings),
            _ => None,
        })
        .collect();
    assert_eq!(wanted, [7, 1, 0], "the publisher is told");
}

#[test]
fn no_ssrc_comes_twice() {
    let mut pair = Pair::new();
    let (offer, _) = pair.offer(CodecName::Opus, 1);
    let ingest = pair.subscribe(&offer);
    let mut ssrcs = Vec::new();
    for _ in 0..3 {
        pair.look(ingest, 1);
        ssrcs.extend(pair.sent());
        pair.look(ingest, 0);
        pair.pass(7);
    }
    assert_eq!(ssrcs, [(0, 1), (0, 2), (0, 3)]);
}

#[test]
fn the_end_of_a_source_is_told_once_and_its_ingest_goes_with_it() {
    let mut pair = Pair::new();
    let (offer, _) = pair.offer(CodecName::Vp8, 1);
    let ingest = pair.subscribe(&offer);
    pair.look(ingest, 1);
    pair.nodes[0].state.withdraw(offer.id);
    pair.settle();
    assert_eq!(pair.sent(), []);
    assert!(pair.requested(1).ingests.is_empty());
    let [Event::Ended { ingest: ended, .. }] = pair.nodes[1].events[..] else {
        panic!("{:?}", pair.nodes[1].events);
    };
    assert_eq!(ended, ingest);
    // One who asks later learns it, too.
    let ingest = pair.subscribe(&offer);
    pair.look(ingest, 1);
    assert!(pair.requested(1).ingests.is_empty());
}

#[test]
fn a_connection_that_comes_back_changes_nothing_that_is_still_wanted() {
    let mut pair = Pair::new();
    let (one, _) = pair.offer(CodecName::Vp8, 3);
    let (other, _) = pair.offer(CodecName::Opus, 1);
    let (one, other) = (pair.subscribe(&one), pair.subscribe(&other));
    pair.look(one, 3);
    pair.look(other, 1);
    let before = pair.sent();
    // The message that the audio is not wanted any more gets lost.
    pair.nodes[1].state.unsubscribe(other);
    while pair.nodes[1].state.poll_message().is_some() {}
    for node in &mut pair.nodes {
        let other = node.other;
        node.state.resume(other);
    }
    pair.pass(2);
    assert_eq!(pair.sent(), before);
    pair.pass(5);
    assert_eq!(pair.encodings(), [0, 1], "what was not named has ended");
    assert_eq!(
        pair.sent(),
        before[..1]
            .iter()
            .chain(&before[2..])
            .copied()
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_node_that_is_gone_takes_its_sources_with_it() {
    let mut pair = Pair::new();
    let (offer, _) = pair.offer(CodecName::Vp8, 1);
    let ingest = pair.subscribe(&offer);
    pair.look(ingest, 1);
    for node in &mut pair.nodes {
        let other = node.other;
        node.state.disconnect(other, pair.now);
        assert_eq!(node.state.subscribe(other, &offer), None);
    }
    pair.settle();
    assert_eq!(pair.sent(), []);
    assert!(pair.requested(1).ingests.is_empty());
    assert!(matches!(
        pair.nodes[0].events[..],
        [
            Event::Wanted { .. },
            Event::Wanted {
                demand: Demand::NOTHING,
                ..
            }
        ]
    ));
}

#[test]
fn wants_without_sense_are_refused_or_bounded() {
    let mut pair = Pair::new();
    let (offer, _) = pair.offer(CodecName::Vp8, 3);
    let source = offer.id;
    let want = |encoding, ssrc| Message::Want {
        source,
        streams: vec![portunus_relay::Wanted {
            encoding,
            ssrc,
            worker: 60_000,
        }],
        spatial: 200,
        temporal: 200,
        direct: false,
        without: Vec::new(),
    };
    for (encoding, ssrc, sent) in [(9, 1, 0), (0, 0, 0), (0, u32::MAX, 0), (2, 5, 1)] {
        let node = &mut pair.nodes[0];
        let now = pair.now;
        node.state
            .take_message(node.other, &want(encoding, ssrc), now);
        assert_eq!(pair.sent().len(), sent, "{encoding} {ssrc}");
    }
    let options = pair.requested(0).outlets[0].options.clone();
    assert_eq!((options.spatial, options.temporal), (2, 2));
}
