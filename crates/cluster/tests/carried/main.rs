//! Frames that a third node carries: what the node in the middle takes and refuses, and what the
//! nodes at the ends do.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

mod bench;

use std::time::Duration;

use bytes::Bytes;
use portunus_cluster::{CloseReason, Epoch, Event, Frame, Hearing, NodeId, VersionRange, Via};

use bench::{Bench, id};

/// The first version with frames that are carried.
const NEW: VersionRange = VersionRange { min: 1, max: 2 };
const OLD: VersionRange = VersionRange { min: 1, max: 1 };

fn via(from: &str, to: &str, number: u64, frame: Frame) -> Via {
    Via {
        from: id(from),
        to: id(to),
        path: 7,
        number,
        received: 0,
        is_closed: false,
        frame: frame.encode(),
    }
}

fn ping() -> Frame {
    Frame::Ping { clock: 1 }
}

/// The word that the path between two nodes is closed.
fn closed(from: &str, to: &str) -> Frame {
    Frame::Via(Via {
        number: 0,
        is_closed: true,
        frame: Bytes::new(),
        ..via(from, to, 0, ping())
    })
}

fn carried(frames: &[Frame]) -> usize {
    let is_carried = |frame: &&Frame| matches!(frame, Frame::Via(via) if !via.is_closed);
    frames.iter().filter(is_carried).count()
}

/// A node in the middle, which hears a, b and c.
fn middle() -> Bench {
    let mut bench = Bench::new("m");
    for name in ["a", "b", "c"] {
        bench.link(name, NEW);
    }
    bench
}

#[test]
fn a_frame_is_carried_as_it_is() {
    let mut bench = middle();
    let sent = Frame::Via(via("a", "c", 1, ping()));
    bench.send("a", sent.clone());
    assert_eq!(bench.frames("c"), [sent]);
    assert_eq!(bench.frames("b"), []);
    assert_eq!(bench.node.counters().carried_frames, 1);
    assert_eq!(bench.closed(), []);
}

#[test]
fn nobody_speaks_for_another_node() {
    let mut bench = middle();
    let to_itself = via("a", "a", 1, ping());
    let forged = via("b", "c", 1, ping());
    // For the middle itself there is the direct connection.
    let to_the_middle = via("a", "m", 1, ping());
    let of_the_middle = via("m", "c", 1, ping());
    for wrong in [to_itself, forged, to_the_middle, of_the_middle] {
        bench.send("a", Frame::Via(wrong));
    }
    for name in ["a", "b", "c"] {
        assert_eq!(bench.frames(name), [], "{name}");
    }
    assert_eq!(bench.node.counters().refused_carried, 4);
    assert_eq!(bench.node.counters().carried_frames, 0);
    assert_eq!(bench.closed(), []);
}

#[test]
fn a_frame_for_a_node_that_is_not_heard_is_answered() {
    let mut bench = middle();
    bench.link("d", OLD);
    for to in ["x", "d"] {
        bench.send("a", Frame::Via(via("a", to, 1, ping())));
        assert_eq!(bench.frames("a"), [closed(to, "a")]);
        // Such an answer is answered by nobody.
        bench.send("a", closed("a", to));
        assert_eq!(bench.frames("a"), []);
    }
    assert_eq!(bench.frames("d"), []);
    assert_eq!(bench.node.counters().uncarried_frames, 4);
}

#[test]
fn frames_that_wait_are_bounded_and_no_link_is_reset_for_them() {
    let mut bench = middle();
    for number in 1..=600 {
        bench.send("a", Frame::Via(via("a", "c", number, ping())));
    }
    assert_eq!(bench.node.counters().carried_frames, 512);
    let answers = bench.frames("a");
    assert_eq!(answers, vec![closed("c", "a"); 88]);
    assert_eq!(carried(&bench.frames("c")), 512);
    bench.tick(Duration::from_millis(250));
    assert_eq!(bench.closed(), []);
}

#[test]
fn a_flood_of_frames_is_carried_up_to_a_limit_and_ends_the_link_of_its_sender_only() {
    let mut bench = middle();
    let mut arrived = 0;
    // Its first frame counts, too.
    for number in 1..20_000 {
        bench.send("a", Frame::Via(via("a", "c", number, ping())));
        arrived += carried(&bench.frames("c"));
        bench.frames("a");
    }
    assert_eq!(arrived, 10_000);
    assert_eq!(bench.closed(), []);
    bench.send("a", Frame::Via(via("a", "c", 1, ping())));
    bench.send("a", Frame::Via(via("a", "c", 1, ping())));
    assert_eq!(bench.closed(), [(id("a"), CloseReason::Flood)]);
}

#[test]
fn frames_of_this_node_and_of_others_take_turns() {
    let mut bench = middle();
    for number in 1..=20 {
        bench.send("a", Frame::Via(via("a", "c", number, ping())));
        // Each ping is answered.
        bench.send("c", ping());
    }
    let frames = bench.frames("c");
    assert_eq!(frames.len(), 40);
    assert_eq!(carried(&frames[..20]), 10);
}

#[test]
fn only_nodes_of_the_new_version_are_told_who_is_heard() {
    let mut bench = middle();
    bench.link("d", OLD);
    bench.tick(Duration::from_millis(250));
    bench.tick(Duration::from_millis(250));
    let is_told = |frame: &Frame| matches!(frame, Frame::Hears { .. });
    assert!(!bench.all_frames("d").iter().any(is_told));
    let hears = bench.all_frames("a").into_iter().filter(is_told);
    let heard: Vec<NodeId> = hears
        .flat_map(|frame| match frame {
            Frame::Hears { nodes, .. } => nodes,
            _ => Vec::new(),
        })
        .map(|hearing| hearing.node)
        .collect();
    // An old node is no reason to count on a way to it.
    assert_eq!(heard, ["a", "b", "c"].map(id));
}

fn hello(name: &str) -> Frame {
    Frame::Hello {
        node: id(name),
        epoch: Epoch(5),
        cluster: "test".to_owned(),
        versions: NEW,
    }
}

/// The node c, which has a link to m, and knows a from the bus.
fn end() -> Bench {
    let mut bench = Bench::new("c");
    bench.link("m", NEW);
    bench.know(&["a", "m"]);
    bench.frames("m");
    bench
}

/// The node c with a path to a through m.
fn with_path() -> Bench {
    let mut bench = end();
    bench.send("m", Frame::Via(via("a", "c", 1, hello("a"))));
    bench
}

#[test]
fn a_path_is_a_link() {
    let mut bench = with_path();
    let answer = bench.frames("m");
    let Frame::Via(answer) = &answer[0] else {
        panic!("{answer:?}")
    };
    assert_eq!(
        (&answer.from, &answer.to, answer.path, answer.number),
        (&id("c"), &id("a"), 7, 1)
    );
    let named = Frame::decode(answer.frame.clone()).unwrap();
    assert!(matches!(named, Some(Frame::Hello { .. })), "{named:?}");
    let heard = Event::Heard {
        node: id("a"),
        through: Some(id("m")),
    };
    assert!(bench.events.contains(&heard), "{:?}", bench.events);
    assert_eq!(bench.way("a"), Some(Some(id("m"))));
    // A message on it arrives, and a ping is answered.
    bench.send("m", Frame::Via(via("a", "c", 2, ping())));
    let frames = bench.frames("m");
    let Frame::Via(answer) = &frames[0] else {
        panic!("{frames:?}")
    };
    let pong = Frame::Pong { clock: 1 };
    assert_eq!(Frame::decode(answer.frame.clone()).unwrap(), Some(pong));
}

#[test]
fn what_may_not_come_by_a_path_closes_it() {
    let nested = Frame::Via(via("a", "c", 1, ping()));
    let hears = Frame::Hears {
        is_all: true,
        nodes: vec![Hearing {
            node: id("a"),
            epoch: Some(Epoch(5)),
        }],
    };
    for wrong in [nested, hears, hello("a")] {
        let mut bench = with_path();
        bench.frames("m");
        bench.send("m", Frame::Via(via("a", "c", 2, wrong)));
        assert_eq!(bench.frames("m"), [closed("c", "a")]);
        assert_eq!(bench.way("a"), None);
        assert_eq!(bench.node.counters().refused_carried, 1);
        assert_eq!(bench.closed(), []);
    }
    let mut bench = with_path();
    bench.frames("m");
    let malformed = Via {
        frame: Bytes::from_static(&[0x0a, 0xff]),
        ..via("a", "c", 2, ping())
    };
    bench.send("m", Frame::Via(malformed));
    assert_eq!(bench.way("a"), None);
}

#[test]
fn a_frame_that_is_missing_closes_the_path() {
    let mut bench = with_path();
    bench.frames("m");
    bench.send("m", Frame::Via(via("a", "c", 3, ping())));
    assert_eq!(bench.frames("m"), [closed("c", "a")]);
    assert_eq!(bench.way("a"), None);
}

#[test]
fn no_path_is_made_for_strangers_and_none_by_another_node_than_the_lower_one() {
    let mut bench = end();
    bench.know(&["a", "m", "z"]);
    // A node that nobody knows, one that has to wait for this one, and one that names another.
    for (from, named) in [("b", "b"), ("z", "z"), ("a", "b")] {
        bench.send("m", Frame::Via(via(from, "c", 1, hello(named))));
        assert_eq!(bench.frames("m"), [closed("c", from)], "{from}");
        assert_eq!(bench.way(from), None);
    }
    // What is no first frame belongs to no path.
    bench.send("m", Frame::Via(via("a", "c", 2, ping())));
    assert_eq!(bench.frames("m"), [closed("c", "a")]);
    bench.send("m", Frame::Via(via("a", "c", 1, ping())));
    assert_eq!(bench.frames("m"), [closed("c", "a")]);
    assert_eq!(bench.way("a"), None);
}

#[test]
fn a_path_does_not_replace_a_connection_that_is_heard() {
    let mut bench = end();
    bench.link("a", NEW);
    bench.send("m", Frame::Via(via("a", "c", 1, hello("a"))));
    assert_eq!(bench.frames("m"), [closed("c", "a")]);
    assert_eq!(bench.way("a"), Some(None));
    // A direct connection replaces a path.
    let mut bench = with_path();
    assert_eq!(bench.way("a"), Some(Some(id("m"))));
    bench.link("a", NEW);
    assert_eq!(bench.way("a"), Some(None));
    let lost = bench.events.iter();
    let lost = lost.filter(|event| matches!(event, Event::NodeLost { .. }));
    assert_eq!(lost.count(), 0);
}
