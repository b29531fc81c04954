//! Schedules at random, and what has to hold after them.

use std::collections::BTreeMap;
use std::time::Duration;

use portunus_cluster::{Bucket, HomeKey, HomeRecord, Place, WithoutBus};
use rand::Rng;

use crate::world::World;

/// How long things happen.
const UNREST: Duration = Duration::from_secs(120);

/// Within this time after the last fault all is well.
const HEALING: Duration = Duration::from_secs(45);

/// How long it stays well.
const CALM: Duration = Duration::from_secs(30);

/// Runs the schedule of a seed.
pub fn run(seed: u64) {
    let mut world = World::new(seed, 0, WithoutBus::Refuse);
    let count = world.random.random_range(3..=6);
    let policy = match world.random.random_bool(0.5) {
        true => WithoutBus::Local,
        false => WithoutBus::Refuse,
    };
    let mut world = World::new(seed.wrapping_mul(31).wrapping_add(7), count, policy);
    let keys: Vec<_> = (0..4)
        .map(|it| HomeKey::new("room.test", &format!("room {it}")).unwrap())
        .collect();
    for index in 0..count {
        if world.random.random_ratio(1, 8) {
            // The release before.
            world.hosts[index].versions.max = 1;
        }
        world.start(index);
    }
    let end = world.now + UNREST;
    while world.now < end {
        let pause = Duration::from_millis(world.random.random_range(10..4_000));
        world.run(pause);
        something(&mut world, &keys);
    }
    heal(&mut world);
    world.run(HEALING);
    check(&world, &keys);
    let before = world.bus.writes;
    world.run(CALM);
    check(&world, &keys);
    let writes = world.bus.writes - before;
    // One write for each node in 3 s, with one more at either end.
    let most = count as u64 * (CALM.as_secs() / 3 + 2);
    assert!(
        writes <= most,
        "{writes} writes in calm times\n{}",
        world.story()
    );
}

/// One thing happens.
fn something(world: &mut World, keys: &[HomeKey]) {
    let count = world.hosts.len();
    let index = world.random.random_range(0..count);
    let other = world.random.random_range(0..count);
    let key = keys[world.random.random_range(0..keys.len())].clone();
    match world.random.random_range(0..100) {
        0..30 => world.open(index, &key),
        30..45 => world.release(index, &key, false),
        45..50 => {
            // Only the home may end it.
            if matches!(
                world.hosts[index].places.get(&key),
                Some(Place::Here { .. })
            ) {
                world.release(index, &key, true);
            }
        }
        50..58 => {
            if world.hosts[index].node.is_some() {
                world.kill(index);
            }
        }
        58..70 => {
            if world.hosts[index].node.is_none() {
                world.start(index);
            }
        }
        70..76 => {
            if world.hosts[index].node.is_some() && world.hosts[index].stalled_until.is_none() {
                let millis = world.random.random_range(200..40_000);
                world.stall(index, Duration::from_millis(millis));
            }
        }
        76..82 => {
            if index != other {
                world.note(format!("n{index} and n{other} are cut off"));
                world.cut.insert((index.min(other), index.max(other)));
                world
                    .deaths
                    .retain(|it| it.witness != index && it.witness != other);
            }
        }
        82..87 => {
            world.note("all links are mended".to_owned());
            world.cut.clear();
        }
        87..91 => {
            world.note(format!("n{index} is cut off from the bus, or back"));
            world.hosts[index].no_bus = !world.hosts[index].no_bus;
            world.rewire_bus();
        }
        91..95 => {
            world.bus.is_up = !world.bus.is_up;
            world.note(format!("the bus is up: {}", world.bus.is_up));
            world.rewire_bus();
        }
        95..96 => {
            if !world.bus.is_up {
                world.note("the bus loses all its entries".to_owned());
                world.bus.wipe();
            }
        }
        _ => {
            let on = world.random.random_bool(0.5);
            world.note(format!("n{index} drains: {on}"));
            world.demand(index, portunus_cluster::Demand::Drain(on));
        }
    }
}

/// All is mended, and all nodes run.
fn heal(world: &mut World) {
    world.note("all is mended".to_owned());
    world.cut.clear();
    world.bus.is_up = true;
    for index in 0..world.hosts.len() {
        world.hosts[index].no_bus = false;
        if let Some(until) = world.hosts[index].stalled_until {
            let left = until.saturating_duration_since(world.now);
            world.run(left + Duration::from_millis(10));
        }
        if world.hosts[index].node.is_none() {
            world.start(index);
        }
        world.demand(index, portunus_cluster::Demand::Drain(false));
    }
    world.rewire_bus();
}

/// Every room that is open has one home, which the bus names, and all who have it open see each
/// other's items and no others. No other room has a home.
pub fn check(world: &World, keys: &[HomeKey]) {
    let homes: BTreeMap<_, _> = world
        .bus
        .entries(Bucket::Homes)
        .into_iter()
        .filter_map(|entry| Some((entry.key, HomeRecord::parse(&entry.value?).unwrap())))
        .collect();
    for key in keys {
        let open: Vec<_> = world
            .hosts
            .iter()
            .filter(|host| host.open.contains_key(key))
            .collect();
        let home = homes.get(key.as_str());
        assert_eq!(
            home.is_some(),
            !open.is_empty(),
            "{key}: {home:?}\n{}",
            world.story()
        );
        let Some(home) = home else {
            continue;
        };
        for host in &open {
            let place = host.places.get(key);
            let is_right = match place {
                Some(Place::Here { .. }) => home.is(&host.id, host.epoch),
                Some(Place::There {
                    node, is_reachable, ..
                }) => home.node == *node && *is_reachable,
                _ => false,
            };
            assert!(
                is_right,
                "{}: {key} is {place:?}, and {home:?}\n{}",
                host.id,
                world.story()
            );
            let seen: BTreeMap<_, _> = host
                .items
                .iter()
                .filter(|((of, _, _), _)| of == key)
                .map(|((_, node, _), value)| (node.clone(), value.clone()))
                .collect();
            let others = open.iter().filter(|other| other.id != host.id);
            let due: BTreeMap<_, _> = others
                .map(|it| (it.id.clone(), it.open[key].clone()))
                .collect();
            assert_eq!(seen, due, "{} sees of {key}\n{}", host.id, world.story());
        }
    }
}
