//! One thing at a time, with its figure.

use std::time::Duration;

use portunus_cluster::{
    Bucket, Demand, HomeKey, HomeRecord, Load, Place, Unplaced, VersionRange, WithoutBus,
};

use crate::schedule::check;
use crate::world::World;

/// A seed with which no early request to the bus is slow.
const SEED: u64 = 3;

pub(crate) fn second(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) fn room(name: &str) -> HomeKey {
    HomeKey::new("room.test", name).unwrap()
}

/// Returns a cluster whose nodes are all linked.
pub(crate) fn cluster(count: usize, without_bus: WithoutBus) -> World {
    let mut world = World::new(SEED, count, without_bus);
    for index in 0..count {
        world.start(index);
    }
    world.until(second(10), "links between all", |world| {
        linked(world, count - 1)
    });
    world
}

#[test]
fn a_busy_node_names_one_that_is_not() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let relief = |world: &World, index: usize| {
        let node = world.hosts[index].node.as_ref().unwrap();
        node.relief().map(|other| world.index(&other.node))
    };
    assert_eq!([0, 1, 2].map(|index| relief(&world, index)), [None; 3]);
    for (index, worker) in [(0, 0.9), (1, 0.65), (2, 0.3)] {
        let load = Load {
            worker,
            ..Load::default()
        };
        world.demand(index, Demand::Load(load));
    }
    world.until(second(10), "the loads at all nodes", |world| {
        relief(world, 0) == Some(2)
    });
    assert_eq!((relief(&world, 1), relief(&world, 2)), (None, None));
    // Where all are busy, nobody is sent around.
    let load = Load {
        worker: 0.65,
        ..Load::default()
    };
    world.demand(2, Demand::Load(load));
    world.until(second(10), "no relief", |world| relief(world, 0).is_none());
}

fn linked(world: &World, each: usize) -> bool {
    world
        .hosts
        .iter()
        .filter_map(|host| host.node.as_ref())
        .all(|node| node.sizes().links == each)
}

pub(crate) fn home_of(world: &World, key: &HomeKey) -> Option<HomeRecord> {
    let entries = world.bus.entries(Bucket::Homes).into_iter();
    let found = entries
        .filter(|entry| entry.key == key.as_str())
        .find_map(|entry| entry.value);
    found.map(|value| HomeRecord::parse(&value).unwrap())
}

pub(crate) fn is_settled(world: &World, key: &HomeKey) -> bool {
    world
        .hosts
        .iter()
        .filter(|host| host.open.contains_key(key))
        .all(|host| {
            let others = world
                .hosts
                .iter()
                .filter(|it| it.open.contains_key(key))
                .count()
                - 1;
            let seen = host.items.keys().filter(|(of, _, _)| of == key).count();
            seen == others
                && matches!(
                    host.places.get(key),
                    Some(
                        Place::Here { .. }
                            | Place::There {
                                is_reachable: true,
                                ..
                            }
                    )
                )
        })
}

#[test]
fn two_who_open_a_room_at_once_see_each_other_and_the_room_costs_two_writes() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let key = room("1");
    let beats = |world: &World| world.bus.entries(Bucket::Nodes).len();
    assert_eq!(beats(&world), 3);
    world.open(0, &key);
    world.open(1, &key);
    world.until(second(2), "the room", |world| is_settled(world, &key));
    check(&world, std::slice::from_ref(&key));
    world.release(0, &key, false);
    world.release(1, &key, false);
    world.until(second(3), "its end", |world| home_of(world, &key).is_none());
    let writes = world.bus.entries(Bucket::Homes);
    assert_eq!(
        writes.iter().map(|it| it.sequence).max(),
        Some(2),
        "{writes:?}"
    );
}

#[test]
fn a_room_that_is_ended_is_gone_after_two_writes_also_if_the_bus_is_faster_than_the_links() {
    let mut world = cluster(3, WithoutBus::Refuse);
    for count in 1..=100_u32 {
        let key = room(&count.to_string());
        world.open(0, &key);
        world.until(second(10), "the home", |world| is_settled(world, &key));
        (1..3).for_each(|index| world.open(index, &key));
        world.until(second(10), "the room", |world| is_settled(world, &key));
        let before = last_write(&world);
        world.release(0, &key, true);
        world.until(second(10), "its end", |world| {
            home_of(world, &key).is_none() && world.hosts.iter().all(|it| it.open.is_empty())
        });
        world.run(second(2));
        assert_eq!(last_write(&world), before + 1, "{}", world.story());
    }
}

/// Returns the number of writes of homes until now.
fn last_write(world: &World) -> u64 {
    let writes = world.bus.entries(Bucket::Homes);
    let numbers = writes.iter().map(|it| it.sequence);
    numbers.max().unwrap_or_default()
}

#[test]
fn a_home_that_dies_is_taken_over_within_16_seconds_and_its_items_go_within_3() {
    let mut world = cluster(4, WithoutBus::Refuse);
    let key = room("1");
    world.open(0, &key);
    world.until(second(2), "the home", |world| {
        home_of(world, &key).is_some()
    });
    (1..4).for_each(|index| world.open(index, &key));
    world.until(second(2), "the room", |world| is_settled(world, &key));
    world.kill(0);
    world.hosts[0].open.clear();
    world.until(second(3), "the end of its items", |world| {
        let lost = &world.hosts[0].id;
        world
            .hosts
            .iter()
            .skip(1)
            .all(|host| !host.items.keys().any(|(_, node, _)| node == lost))
    });
    // Nobody else's items went.
    assert!(world.hosts.iter().skip(1).all(|host| host.items.len() == 2));
    world.until(second(16), "a new home", |world| {
        home_of(world, &key).is_some_and(|home| home.node != world.hosts[0].id)
    });
    world.until(second(2), "all registered", |world| is_settled(world, &key));
    check(&world, &[key]);
}

#[test]
fn a_node_that_was_stopped_for_30_seconds_yields_its_homes() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let key = room("1");
    world.open(0, &key);
    world.until(second(2), "the home", |world| {
        home_of(world, &key).is_some()
    });
    world.open(1, &key);
    world.open(2, &key);
    world.stall(0, second(30));
    world.run(second(25));
    let home = home_of(&world, &key).unwrap();
    assert_ne!(home.node, world.hosts[0].id);
    world.run(second(10));
    assert_eq!(home_of(&world, &key), Some(home));
    check(&world, &[key]);
    assert_eq!(world.hosts[0].node.as_ref().unwrap().counters().yields, 1);
}

#[test]
fn while_the_bus_is_away_known_rooms_go_on_and_all_is_normal_5_seconds_after_its_return() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let key = room("1");
    world.open(0, &key);
    world.until(second(2), "the home", |world| {
        home_of(world, &key).is_some()
    });
    world.open(1, &key);
    world.until(second(2), "the room", |world| is_settled(world, &key));
    world.bus.is_up = false;
    world.rewire_bus();
    world.run(second(600));
    // A join to a known room.
    world.open(2, &key);
    world.until(second(1), "the join", |world| is_settled(world, &key));
    let new = room("2");
    world.open(2, &new);
    let refused = Some(&Place::Nowhere(Unplaced::NoBus));
    assert_eq!(world.hosts[2].places.get(&new), refused);
    let before: Vec<_> = world
        .hosts
        .iter()
        .map(|host| host.node.as_ref().unwrap().counters().lost_nodes)
        .collect();
    assert_eq!(before, [0, 0, 0]);
    world.bus.is_up = true;
    world.rewire_bus();
    world.run(second(3));
    world.until(second(5), "all normal", |world| {
        world
            .hosts
            .iter()
            .all(|host| host.node.as_ref().unwrap().is_confirmed())
            && is_settled(world, &new)
    });
    check(&world, &[key, new]);
    // Nobody was taken for dead, though all entries had expired.
    world.run(second(30));
    assert!(
        world
            .hosts
            .iter()
            .all(|host| host.node.as_ref().unwrap().counters().takeovers == 0)
    );
}

#[test]
fn rooms_that_were_opened_on_both_sides_become_one() {
    let mut world = cluster(2, WithoutBus::Local);
    world.bus.is_up = false;
    world.rewire_bus();
    world.run(second(12));
    let key = room("1");
    world.open(0, &key);
    world.open(1, &key);
    let here = |world: &World, index: usize| {
        matches!(
            world.hosts[index].places.get(&key),
            Some(Place::Here { .. })
        )
    };
    assert!(here(&world, 0) && here(&world, 1));
    world.bus.is_up = true;
    world.rewire_bus();
    world.run(second(6));
    check(&world, &[key]);
}

#[test]
fn a_bus_that_has_lost_its_entries_is_filled_again() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let keys: Vec<_> = (0..5).map(|it| room(&it.to_string())).collect();
    for (index, key) in keys.iter().enumerate() {
        world.open(index % 3, key);
        world.open((index + 1) % 3, key);
    }
    world.run(second(3));
    world.bus.is_up = false;
    world.rewire_bus();
    world.run(second(5));
    world.bus.wipe();
    world.bus.is_up = true;
    world.rewire_bus();
    world.run(second(8));
    check(&world, &keys);
}

#[test]
fn a_drained_node_hands_its_homes_over_and_gets_none_until_that_is_undone() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let keys: Vec<_> = (0..20).map(|it| room(&it.to_string())).collect();
    for key in &keys {
        world.open(0, key);
        world.until(second(2), "the home", |world| home_of(world, key).is_some());
        world.open(1, key);
        world.open(2, key);
    }
    world.until(second(2), "the rooms", |world| {
        keys.iter().all(|key| is_settled(world, key))
    });
    world.demand(0, Demand::Drain(true));
    world.until(second(4), "the handover", |world| {
        keys.iter()
            .all(|key| home_of(world, key).is_some_and(|home| home.node != world.hosts[0].id))
    });
    world.run(second(20));
    check(&world, &keys);
    // Nobody has left for anybody, whichever node has registered first.
    let gone: Vec<u64> = world.hosts.iter().map(|host| host.gone).collect();
    assert_eq!(gone, [0, 0, 0]);
    let counters = world.hosts[0].node.as_ref().unwrap().counters();
    assert_eq!((counters.handovers, counters.yields), (20, 0));
    let new = room("new");
    world.open(0, &new);
    world.until(second(3), "the new room", |world| is_settled(world, &new));
    assert_ne!(home_of(&world, &new).unwrap().node, world.hosts[0].id);
    world.demand(0, Demand::Drain(false));
    let newer = room("newer");
    world.open(0, &newer);
    world.until(second(3), "the newer room", |world| {
        is_settled(world, &newer)
    });
    assert_eq!(home_of(&world, &newer).unwrap().node, world.hosts[0].id);
}

#[test]
fn a_claimed_name_is_of_one_node_and_stays_there() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let name = HomeKey::new("user.test", "al").unwrap();
    let has_place = |world: &World, index: usize| world.hosts[index].places.contains_key(&name);
    let is_here = |world: &World, index: usize| {
        let place = world.hosts[index].places.get(&name);
        matches!(place, Some(Place::Here { .. }))
    };
    let seen = |world: &World, index: usize| {
        let node = world.hosts[index].node.as_ref().unwrap();
        (node.home_of(&name), node.names_of("user.test"))
    };
    for index in [0, 1] {
        world.demand(index, Demand::Claim(name.clone()));
    }
    world.until(second(2), "an answer to both", |world| {
        has_place(world, 0) && has_place(world, 1)
    });
    world.run(second(1));
    let owners: Vec<usize> = (0..2).filter(|index| is_here(&world, *index)).collect();
    assert_eq!(owners.len(), 1, "{owners:?}");
    let owner = owners[0];
    world.demand(1 - owner, Demand::Release(name.clone()));
    // Neither a drain of its node nor another one's wish takes it away.
    world.demand(owner, Demand::Drain(true));
    world.demand(2, Demand::Claim(name.clone()));
    world.run(second(3));
    assert!(!is_here(&world, 2));
    world.demand(2, Demand::Release(name.clone()));
    let id = world.hosts[owner].id.clone();
    for index in 0..3 {
        assert_eq!(
            seen(&world, index),
            (Some(id.clone()), vec!["al".to_owned()])
        );
    }
    // Then it is free. A drained node claims for itself, too.
    world.demand(owner, Demand::Release(name.clone()));
    world.until(second(3), "a free name", |world| {
        home_of(world, &name).is_none() && seen(world, 2) == (None, Vec::new())
    });
    world.demand(owner, Demand::Claim(name.clone()));
    world.until(second(3), "the name again", |world| {
        home_of(world, &name).is_some_and(|home| home.node == id)
    });
    // Nobody finds it at a dead node.
    world.run(second(1));
    world.kill(owner);
    world.until(second(5), "its node to be lost", |world| {
        seen(world, 2) == (None, Vec::new())
    });
}

#[test]
fn neighbouring_versions_work_together_and_others_are_refused() {
    let mut world = World::new(1, 3, WithoutBus::Refuse);
    world.hosts[0].versions = VersionRange { min: 1, max: 2 };
    world.hosts[1].versions = VersionRange { min: 2, max: 3 };
    world.hosts[2].versions = VersionRange { min: 3, max: 4 };
    (0..3).for_each(|index| world.start(index));
    world.run(second(5));
    let spoken = |index: usize| {
        let status = world.hosts[index].node.as_ref().unwrap().status(world.now);
        let links = status.links.into_iter().filter(|link| link.state == "up");
        links
            .map(|link| (link.node.to_string(), link.version.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(spoken(0), [("n1".to_owned(), 2)]);
    assert_eq!(spoken(1), [("n0".to_owned(), 2), ("n2".to_owned(), 3)]);
    assert!(
        world.hosts[0]
            .node
            .as_ref()
            .unwrap()
            .counters()
            .version_refusals
            > 0
    );
}

#[test]
fn rooms_of_a_node_that_nobody_else_has_open_are_deleted_when_it_dies() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let key = room("1");
    world.open(0, &key);
    world.until(second(2), "the home", |world| {
        home_of(world, &key).is_some()
    });
    world.kill(0);
    world.hosts[0].open.clear();
    world.until(second(25), "its deletion", |world| {
        home_of(world, &key).is_none()
    });
}
