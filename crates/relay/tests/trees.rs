//! Trees of nodes, and ways around broken links: nodes in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

mod world;

use std::time::Duration;

use portunus_media::IngestId;
use portunus_relay::{Event, Message, Offer};
use proptest::prelude::*;
use world::{World, name};

const ALL: u8 = 7;

/// A source of node 0, which these nodes watch, one after the other.
fn watched(world: &mut World, nodes: &[usize], encodings: u8) -> (Offer, Vec<IngestId>) {
    let offer = world.offer(0, 3);
    let ingests = nodes.iter().map(|node| {
        let ingest = world.subscribe(*node, 0, &offer);
        world.look(*node, ingest, encodings);
        ingest
    });
    let ingests = ingests.collect();
    world.pass(Duration::from_millis(200));
    (offer, ingests)
}

#[test]
fn a_source_of_which_12_nodes_want_something_leaves_its_node_8_times() {
    let mut world = World::new(&[""; 13], 8);
    let nodes: Vec<usize> = (1..13).collect();
    let (offer, ingests) = watched(&mut world, &nodes, 1);
    assert_eq!(world.sent(0), 8);
    for (node, ingest) in nodes.iter().zip(&ingests) {
        let way = world.way(*node, *ingest, 0).unwrap();
        assert_eq!(way.last(), Some(&0));
        assert!(way.len() <= 2, "{way:?}");
        assert_eq!(way.len(), if *node <= 8 { 1 } else { 2 }, "{node}: {way:?}");
    }
    // The carriers have one node each.
    let sent: Vec<usize> = (1..9).map(|node| world.sent(node)).collect();
    assert_eq!(sent, [1, 1, 1, 1, 0, 0, 0, 0]);
    world.seconds(20);
    assert_eq!(world.sent(0), 8, "it stays so");
    // The end of the source reaches all.
    world.nodes[0].state.withdraw(offer.id);
    world.settle();
    for (node, ingest) in nodes.iter().zip(&ingests) {
        let ended: Vec<_> = world.nodes[*node]
            .events
            .iter()
            .filter(|event| matches!(event, Event::Ended { ingest: it, .. } if it == ingest))
            .collect();
        assert_eq!(ended.len(), 1, "{node}");
        assert_eq!(world.sent(*node), 0);
        assert!(world.nodes[*node].media.requested().ingests.is_empty());
    }
}

#[test]
fn what_a_node_behind_a_carrier_wants_reaches_the_source() {
    let mut world = World::new(&["", "", ""], 1);
    let (_, ingests) = watched(&mut world, &[1, 2], 1);
    assert_eq!(world.way(2, ingests[1], 0), Some(vec![1, 0]));
    assert_eq!((world.crossing(0, 1), world.crossing(0, 2)), (1, 0));
    world.look(2, ingests[1], ALL);
    assert_eq!((world.crossing(0, 1), world.crossing(1, 2)), (3, 3));
    for encoding in 0..3 {
        assert_eq!(world.way(2, ingests[1], encoding), Some(vec![1, 0]));
    }
    let wanted = world.nodes[0].events.last().unwrap();
    assert!(
        matches!(wanted, Event::Wanted { demand, .. } if demand.encodings == ALL),
        "the publisher is told: {wanted:?}"
    );
    // Nobody looks behind the carrier, and then nobody at all.
    world.look(2, ingests[1], 0);
    world.seconds(12);
    assert_eq!((world.crossing(0, 1), world.crossing(1, 2)), (1, 0));
    world.look(1, ingests[0], 0);
    world.seconds(12);
    assert_eq!(world.sent(0), 0);
    // Who comes back first takes it from the source's node.
    world.look(2, ingests[1], 1);
    assert_eq!(world.way(2, ingests[1], 0), Some(vec![0]));
}

#[test]
fn a_carrier_that_nobody_watches_at_carries_as_long_as_it_is_needed() {
    let mut world = World::new(&["", "", ""], 1);
    let (_, ingests) = watched(&mut world, &[1, 2], 1);
    // The carrier's own viewers leave, and so does its subscription.
    world.look(1, ingests[0], 0);
    world.nodes[1].state.unsubscribe(ingests[0]);
    world.seconds(20);
    assert_eq!(world.way(2, ingests[1], 0), Some(vec![1, 0]));
    world.look(2, ingests[1], 0);
    world.seconds(20);
    assert_eq!((world.sent(0), world.sent(1)), (0, 0));
    assert!(world.nodes[1].media.requested().ingests.is_empty());
}

#[test]
fn nodes_of_a_region_share_one_crossing() {
    let mut world = World::new(&["eu", "us", "us", "us", "asia", "eu", "us"], 8);
    let nodes: Vec<usize> = (1..7).collect();
    let (_, ingests) = watched(&mut world, &nodes, 1);
    let from_eu: Vec<usize> = nodes.iter().map(|to| world.crossing(0, *to)).collect();
    assert_eq!(from_eu, [1, 0, 0, 1, 1, 0]);
    for node in [2, 3, 6] {
        assert_eq!(world.way(node, ingests[node - 1], 0), Some(vec![1, 0]));
    }
}

#[test]
fn the_first_node_of_a_region_takes_a_source_itself_though_there_are_many() {
    let mut world = World::new(&["eu", "eu", "eu", "us", "us"], 2);
    let (_, ingests) = watched(&mut world, &[1, 2, 3, 4], 1);
    assert_eq!(world.way(3, ingests[2], 0), Some(vec![0]));
    assert_eq!(world.way(4, ingests[3], 0), Some(vec![3, 0]));
}

#[test]
fn a_lost_carrier_is_replaced_by_the_second_one_before_it_counts_as_dead() {
    let mut world = World::new(&[""; 4], 2);
    let (_, ingests) = watched(&mut world, &[1, 2, 3], 1);
    let way = world.way(3, ingests[2], 0).unwrap();
    let carrier = way[0];
    assert_eq!(way.len(), 2);
    world.kill(carrier);
    world.pass(Duration::from_millis(2_000));
    let other = 3 - carrier;
    assert_eq!(world.way(3, ingests[2], 0), Some(vec![other, 0]));
    world.lose(carrier);
    world.seconds(5);
    assert_eq!(world.way(3, ingests[2], 0), Some(vec![other, 0]));
    // The last one dies, too: the source's node sends it itself.
    world.kill(other);
    world.pass(Duration::from_millis(2_000));
    assert_eq!(world.way(3, ingests[2], 0), Some(vec![0]));
    assert_eq!(world.nodes[3].media.requested().ingests.len(), 1);
    assert_eq!(world.nodes[3].media.requested().ingests[0].id, ingests[2]);
}

#[test]
fn a_carrier_that_ends_in_order_is_replaced_at_once() {
    let mut world = World::new(&[""; 3], 1);
    let (_, ingests) = watched(&mut world, &[1, 2], 1);
    world.kill(1);
    world.lose(1);
    assert_eq!(world.way(2, ingests[1], 0), Some(vec![0]));
}

#[test]
fn a_broken_link_is_gone_around_and_taken_again_when_it_works() {
    let mut world = World::new(&[""; 3], 8);
    let (_, ingests) = watched(&mut world, &[2], ALL);
    assert_eq!(world.way(2, ingests[0], 2), Some(vec![0]));
    world.seconds(2);
    world.cut(0, 2);
    world.pass(Duration::from_millis(3_500));
    for encoding in 0..3 {
        assert_eq!(world.way(2, ingests[0], encoding), Some(vec![1, 0]));
    }
    world.seconds(3);
    assert_eq!(world.crossing(0, 2), 0, "what does not arrive is not sent");
    let figures = world.nodes[2]
        .state
        .tree_figures(world.nodes[2].others[&0], world.now);
    let figures = figures.unwrap();
    assert_eq!(
        (figures.works, figures.through.get(&name(1))),
        (false, Some(&1))
    );
    let id = world.nodes[1].others[&2];
    let carried = world.nodes[1].state.tree_figures(id, world.now).unwrap();
    assert_eq!(carried.carried_streams, 3);
    // Node 1 has no viewers of its own, and no more than one ingest.
    assert_eq!(world.nodes[1].media.requested().ingests.len(), 1);

    world.heal(0, 2);
    world.seconds(4);
    assert_eq!(world.way(2, ingests[0], 0), Some(vec![1, 0]), "not at once");
    world.seconds(4);
    assert_eq!(world.way(2, ingests[0], 0), Some(vec![0]));
    world.seconds(10);
    assert_eq!(world.sent(1), 0);
    assert!(world.nodes[1].media.requested().ingests.is_empty());
    assert_eq!(world.nodes[2].media.requested().ingests[0].id, ingests[0]);
}

#[test]
fn who_comes_while_a_link_is_broken_gets_a_source_around_it() {
    let mut world = World::new(&[""; 4], 8);
    world.cut(0, 2);
    world.cut(2, 1);
    world.seconds(5);
    let (_, ingests) = watched(&mut world, &[2], 1);
    assert_eq!(world.way(2, ingests[0], 0), Some(vec![3, 0]));
}

#[test]
fn without_a_node_that_reaches_both_the_source_is_sought_until_there_is_one() {
    let mut world = World::new(&[""; 3], 8);
    world.cut(0, 2);
    world.cut(1, 2);
    world.seconds(5);
    let (_, ingests) = watched(&mut world, &[2], 1);
    world.seconds(5);
    assert_eq!(world.way(2, ingests[0], 0), None);
    let before = world.messages;
    world.seconds(10);
    assert!(world.messages - before < 60, "{}", world.messages - before);
    world.heal(1, 2);
    world.seconds(5);
    assert_eq!(world.way(2, ingests[0], 0), Some(vec![1, 0]));
    world.heal(0, 2);
    world.seconds(8);
    assert_eq!(world.way(2, ingests[0], 0), Some(vec![0]));
}

#[test]
fn a_carrier_whose_own_link_breaks_is_left() {
    let mut world = World::new(&[""; 4], 8);
    let (_, ingests) = watched(&mut world, &[2], 1);
    world.cut(0, 2);
    world.seconds(4);
    let carrier = world.way(2, ingests[0], 0).unwrap()[0];
    world.cut(0, carrier);
    world.seconds(5);
    let other = 4 - carrier;
    assert_eq!(world.way(2, ingests[0], 0), Some(vec![other, 0]));
}

#[test]
fn two_carriers_that_lose_the_source_do_not_carry_for_each_other() {
    let mut world = World::new(&[""; 4], 8);
    let (_, ingests) = watched(&mut world, &[1, 2, 3], 1);
    for node in 1..4 {
        world.cut(0, node);
    }
    // `way` panics if there is a circle.
    for _ in 0..40 {
        world.pass(Duration::from_millis(500));
        for node in 1..4 {
            assert_eq!(
                world
                    .way(node, ingests[node - 1], 0)
                    .filter(|way| way.len() > 2),
                None
            );
        }
    }
    for (node, ingest) in (1..4).zip(&ingests) {
        assert_eq!(world.way(node, *ingest, 0), None);
    }
    world.heal(0, 1);
    world.seconds(8);
    assert_eq!(world.way(1, ingests[0], 0), Some(vec![0]));
    world.seconds(4);
    for node in 2..4 {
        assert_eq!(world.way(node, ingests[node - 1], 0), Some(vec![1, 0]));
    }
}

#[test]
fn a_carrier_that_is_not_reached_is_named_once() {
    let mut world = World::new(&[""; 3], 1);
    world.cut(1, 2);
    world.seconds(5);
    let before = world.messages;
    let (_, ingests) = watched(&mut world, &[1, 2], 1);
    assert_eq!(world.way(2, ingests[1], 0), Some(vec![0]));
    world.seconds(20);
    assert_eq!(world.way(2, ingests[1], 0), Some(vec![0]));
    let messages = world.messages - before;
    assert!(messages < 10, "{messages}");
}

#[test]
fn nodes_of_an_old_version_get_all_from_the_source_and_carry_nothing() {
    let mut world = World::with(&[""; 5], 1, &[1, 3]);
    let (_, ingests) = watched(&mut world, &[1, 2, 3, 4], 1);
    for (node, ingest) in (1..4).zip(&ingests) {
        assert_eq!(world.way(node, *ingest, 0), Some(vec![0]), "{node}");
    }
    assert_eq!(world.way(4, ingests[3], 0), Some(vec![2, 0]));
}

#[test]
fn a_node_that_drains_is_no_carrier_for_more() {
    let mut world = World::new(&[""; 4], 2);
    let (_, _) = watched(&mut world, &[1], 1);
    world.nodes[1].state.set_draining(true);
    world.cut(0, 2);
    world.cut(2, 3);
    world.seconds(5);
    let (_, ingests) = watched(&mut world, &[2], 1);
    world.seconds(5);
    assert_eq!(
        world.way(2, ingests[0], 0),
        None,
        "the only way is through it"
    );
    world.nodes[1].state.set_draining(false);
    world.seconds(15);
    assert_eq!(world.way(2, ingests[0], 0), Some(vec![1, 0]));
}

#[test]
fn a_connection_of_a_carrier_that_is_replaced_changes_nothing() {
    let mut world = World::new(&[""; 3], 1);
    let (_, ingests) = watched(&mut world, &[1, 2], ALL);
    for (a, b) in [(1, 2), (0, 1), (0, 2)] {
        world.replace_connection(a, b);
        world.seconds(8);
        assert_eq!(world.way(2, ingests[1], 2), Some(vec![1, 0]));
        assert_eq!((world.crossing(0, 1), world.crossing(1, 2)), (3, 3));
    }
}

#[test]
fn encodings_that_a_link_before_the_carrier_withholds_are_told_behind_it() {
    let mut world = World::new(&[""; 3], 1);
    let (offer, ingests) = watched(&mut world, &[1, 2], ALL);
    let now = world.now;
    let withheld = Message::Withheld {
        source: offer.id,
        encodings: vec![2],
    };
    let node = &mut world.nodes[1];
    let source = node.others[&0];
    node.state.take_message(source, &withheld, now);
    world.settle();
    let told = Event::Withheld {
        ingest: ingests[1],
        encodings: vec![2],
    };
    assert!(world.nodes[2].events.contains(&told));
}

#[test]
fn requests_without_sense_are_refused_and_leave_nothing() {
    let mut world = World::new(&[""; 3], 8);
    let offer = world.offer(0, 3);
    let now = world.now;
    let ask = |of| Message::Ask {
        of: name(of),
        source: offer.id,
        description: offer.description.clone(),
    };
    let carry = Message::Carry {
        of: name(0),
        source: offer.id,
        streams: vec![portunus_relay::Wanted {
            encoding: 0,
            ssrc: 1,
            worker: 0,
        }],
        spatial: 2,
        temporal: 2,
    };
    // Of the node that asks, of the node that is asked, of one that nobody knows; and a want without
    // a request before.
    for message in [ask(2), ask(1), ask(77), carry] {
        let node = &mut world.nodes[1];
        let from = node.others[&2];
        node.state.take_message(from, &message, now);
        let answer = node.state.poll_message_to(from);
        assert!(
            matches!(answer, Some(Message::Refused { .. })),
            "{message:?}: {answer:?}"
        );
        assert!(node.media.requested().ingests.is_empty());
    }
    // One that asks and then says nothing.
    let node = &mut world.nodes[1];
    let from = node.others[&2];
    node.state.take_message(from, &ask(0), now);
    assert_eq!(node.media.requested().ingests.len(), 1);
    world.seconds(7);
    assert!(world.nodes[1].media.requested().ingests.is_empty());
    // A flood of requests makes no flood of ingests.
    for source in 0..5_000 {
        let node = &mut world.nodes[1];
        let Message::Ask {
            of, description, ..
        } = ask(0)
        else {
            panic!("not that message")
        };
        let source = portunus_relay::SourceId(source);
        let ask = Message::Ask {
            of,
            source,
            description,
        };
        node.state.take_message(from, &ask, now);
    }
    assert_eq!(world.nodes[1].media.requested().ingests.len(), 4_096);
}

/// A step of a schedule at random.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Viewers of a node look at these encodings of the source, or (0) at nothing.
    Look(usize, u8),
    Cut(usize, usize),
    Heal(usize, usize),
    /// The connection for messages between two nodes is replaced.
    Replace(usize, usize),
    Drain(usize, bool),
    /// A node gets a message with any content from another one.
    Message(usize, usize, u8),
    /// 100 ms pass.
    Pass(u8),
}

const NODES: usize = 5;

fn act() -> impl Strategy<Value = Act> {
    let two = || (0..NODES, 1..NODES).prop_map(|(a, by)| (a, (a + by) % NODES));
    prop_oneof![
        3 => (1..NODES, 0..8_u8).prop_map(|(node, encodings)| Act::Look(node, encodings)),
        2 => two().prop_map(|(a, b)| Act::Cut(a, b)),
        2 => two().prop_map(|(a, b)| Act::Heal(a, b)),
        1 => two().prop_map(|(a, b)| Act::Replace(a, b)),
        1 => (0..NODES, any::<bool>()).prop_map(|(node, drains)| Act::Drain(node, drains)),
        2 => (two(), any::<u8>()).prop_map(|((a, b), kind)| Act::Message(a, b, kind)),
        4 => (1..60_u8).prop_map(Act::Pass),
    ]
}

/// A message that is well-formed, and may make no sense.
fn any_message(offer: &Offer, kind: u8) -> Message {
    let of = name(usize::from(kind / 10) % (NODES + 1));
    let source = match kind % 2 {
        0 => offer.id,
        _ => portunus_relay::SourceId(u64::from(kind)),
    };
    let streams = vec![portunus_relay::Wanted {
        encoding: kind % 4,
        ssrc: 100_000 + u32::from(kind),
        worker: u16::from(kind % 3),
    }];
    let nodes = vec![of.clone(), name(2), name(3)];
    match kind % 10 {
        0 | 1 => Message::Carriers { source, nodes },
        2 => Message::Ask {
            of,
            source,
            description: offer.description.clone(),
        },
        3 => Message::Carry {
            of,
            source,
            streams,
            spatial: 2,
            temporal: 2,
        },
        4 => Message::Carrying {
            of,
            source,
            worker: 9,
        },
        5 | 6 => Message::Refused { of, source },
        7 => Message::Seek {
            source,
            without: nodes,
        },
        _ => Message::CarriedWithheld {
            of,
            source,
            encodings: vec![kind; 9],
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever happens, no source goes in a circle or over more than two links for long, and when
    /// all is mended everybody gets what they look at, directly or by a carrier.
    #[test]
    fn all_get_what_they_look_at_in_the_end(
        acts in proptest::collection::vec(act(), 0..40),
        fan_out in 1..3_usize,
    ) {
        let mut world = World::new(&["", "", "us", "us", ""], fan_out);
        let offer = world.offer(0, 3);
        let ingests: Vec<IngestId> =
            (1..NODES).map(|node| world.subscribe(node, 0, &offer)).collect();
        let mut looks = [0; NODES];
        for act in acts {
            match act {
                Act::Look(node, encodings) => {
                    looks[node] = encodings;
                    world.look(node, ingests[node - 1], encodings);
                }
                Act::Cut(a, b) => world.cut(a, b),
                Act::Heal(a, b) => world.heal(a, b),
                Act::Replace(a, b) => world.replace_connection(a, b),
                Act::Drain(node, drains) => world.nodes[node].state.set_draining(drains),
                Act::Message(from, to, kind) => {
                    let message = any_message(&offer, kind);
                    let (now, node) = (world.now, &mut world.nodes[to]);
                    let from = node.others[&from];
                    node.state.take_message(from, &message, now);
                    world.settle();
                }
                Act::Pass(times) => world.pass(Duration::from_millis(100) * u32::from(times)),
            }
            for node in 1..NODES {
                for encoding in 0..3 {
                    // It panics if there is a circle.
                    world.way(node, ingests[node - 1], encoding);
                }
            }
        }
        for a in 0..NODES {
            world.nodes[a].state.set_draining(false);
            for b in 0..a {
                world.heal(a, b);
            }
        }
        world.seconds(40);
        for node in 1..NODES {
            for encoding in 0..3 {
                let way = world.way(node, ingests[node - 1], encoding);
                let is_wanted = looks[node] & 1 << encoding != 0;
                prop_assert!(way.is_some() || !is_wanted, "{node} {encoding}");
                prop_assert!(way.is_none_or(|way| way.len() <= 2));
            }
        }
        // When nobody looks any more, nothing is left but what was subscribed to.
        for node in 1..NODES {
            world.look(node, ingests[node - 1], 0);
        }
        world.seconds(20);
        for node in 0..NODES {
            prop_assert_eq!(world.sent(node), 0, "{}", node);
            let ingests = world.nodes[node].media.requested().ingests.len();
            prop_assert_eq!(ingests, usize::from(node != 0), "{}", node);
            prop_assert_eq!(world.nodes[node].media.requested().relayed, vec![]);
        }
    }
}
