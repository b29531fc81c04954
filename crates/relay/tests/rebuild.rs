//! Trees follow the nodes that come and go: nodes in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

mod world;

use std::time::Duration;

use portunus_media::IngestId;
use world::World;

/// A source of node 0, which these nodes watch, one after the other.
fn watched(world: &mut World, nodes: &[usize]) -> Vec<IngestId> {
    let offer = world.offer(0, 3);
    let ingests = nodes.iter().map(|node| {
        let ingest = world.subscribe(*node, 0, &offer);
        world.look(*node, ingest, 1);
        ingest
    });
    let ingests = ingests.collect();
    world.pass(Duration::from_millis(200));
    ingests
}

/// Lets time pass, and checks at each moment that the source reaches a node.
fn pass_with_picture(world: &mut World, seconds: u64, (node, ingest): (usize, IngestId)) {
    for _ in 0..seconds * 10 {
        world.pass(Duration::from_millis(100));
        assert!(world.way(node, ingest, 0).is_some(), "the picture is gone");
    }
}

fn lose(world: &mut World, node: usize) {
    world.kill(node);
    world.lose(node);
}

#[test]
fn when_nodes_leave_those_behind_carriers_take_the_source_from_its_node() {
    let mut world = World::new(&[""; 7], 3);
    let ingests = watched(&mut world, &[1, 2, 3, 4, 5, 6]);
    for (node, carrier) in [(4, 1), (5, 2), (6, 3)] {
        assert_eq!(
            world.way(node, ingests[node - 1], 0),
            Some(vec![carrier, 0])
        );
    }
    world.seconds(10);
    lose(&mut world, 3);
    // Node 6 has lost its carrier. It stays at one of the others for a while.
    world.seconds(2);
    assert_eq!(world.sent(0), 2);
    pass_with_picture(&mut world, 8, (6, ingests[5]));
    assert_eq!(world.sent(0), 3, "one more takes it directly");
    lose(&mut world, 1);
    lose(&mut world, 2);
    world.seconds(15);
    for node in [4, 5, 6] {
        assert_eq!(world.way(node, ingests[node - 1], 0), Some(vec![0]));
        assert_eq!(world.sent(node), 0, "nobody carries any more");
    }
    let before = world.messages;
    world.seconds(60);
    assert_eq!(world.messages, before, "it stays so");
}

#[test]
fn a_place_that_a_viewer_leaves_is_taken_by_a_node_behind_a_carrier() {
    let mut world = World::new(&[""; 4], 2);
    let ingests = watched(&mut world, &[1, 2, 3]);
    world.seconds(10);
    let carrier = world.way(3, ingests[2], 0).unwrap()[0];
    let other = 3 - carrier;
    world.look(other, ingests[other - 1], 0);
    pass_with_picture(&mut world, 20, (3, ingests[2]));
    assert_eq!(world.way(3, ingests[2], 0), Some(vec![0]));
    assert_eq!((world.sent(0), world.sent(carrier)), (2, 0));
    // Who comes back later is served by the tree of then.
    world.look(other, ingests[other - 1], 1);
    assert_eq!(world.way(other, ingests[other - 1], 0).unwrap().len(), 2);
}

#[test]
fn a_node_goes_over_to_the_carrier_of_its_region() {
    // The direct places are taken, so that nodes of a region without any come to other carriers.
    let mut world = World::new(&["eu", "eu", "asia", "us", "us"], 1);
    let ingests = watched(&mut world, &[1, 2, 3, 4]);
    assert_eq!(world.way(3, ingests[2], 0).unwrap().len(), 2);
    world.seconds(10);
    let far = world.way(4, ingests[3], 0).unwrap();
    assert_eq!(far.len(), 2);
    // A place for the first node of the region.
    lose(&mut world, 2);
    pass_with_picture(&mut world, 20, (4, ingests[3]));
    let ways = [3, 4].map(|node| world.way(node, ingests[node - 1], 0).unwrap());
    let direct = ways.iter().filter(|way| way.len() == 1).count();
    let through = ways.iter().filter(|way| way[0] == 3 || way[0] == 4).count();
    assert_eq!((direct, through), (1, 1), "{ways:?}");
}

#[test]
fn a_node_whose_direct_link_is_broken_stays_behind_its_carrier() {
    let mut world = World::new(&[""; 3], 8);
    let ingests = watched(&mut world, &[2]);
    world.seconds(10);
    world.cut(0, 2);
    world.seconds(5);
    let messages = world.messages;
    pass_with_picture(&mut world, 60, (2, ingests[0]));
    assert_eq!(world.way(2, ingests[0], 0), Some(vec![1, 0]));
    assert_eq!(world.messages, messages, "nobody is told another way");
}
