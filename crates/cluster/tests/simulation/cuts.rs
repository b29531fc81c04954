//! Schedules at random in which two nodes lose sight of each other, and a third one hears both.

use std::collections::BTreeSet;
use std::time::Duration;

use portunus_cluster::{HomeKey, NodeId, WithoutBus};
use rand::Rng;

use crate::scenarios::home_of;
use crate::schedule::check;
use crate::world::World;

/// Within this time after the last change all see each other, cut or not, and a home that came when
/// nobody wanted it any more is gone.
const SETTLING: Duration = Duration::from_secs(20);

/// Within this time after a cut was mended, there is a direct connection.
const MENDING: Duration = Duration::from_secs(11);

/// Runs the schedule of a seed.
pub fn run(seed: u64) {
    let mut world = World::new(seed, 0, WithoutBus::Refuse);
    let count = world.random.random_range(3..=5);
    let mut world = World::new(
        seed.wrapping_mul(17).wrapping_add(3),
        count,
        WithoutBus::Refuse,
    );
    let keys: Vec<_> = (0..4)
        .map(|it| HomeKey::new("room.test", &format!("room {it}")).unwrap())
        .collect();
    (0..count).for_each(|index| world.start(index));
    world.run(SETTLING);
    // Of the nodes that are not cut one may be dead, if another one is left in the middle.
    let mut dead: Option<usize> = None;
    for _ in 0..12 {
        world.cut.clear();
        world.run(MENDING);
        let first = world.random.random_range(0..count);
        let second = world.random.random_range(0..count);
        let is_pair = first != second && dead.is_none_or(|it| it != first && it != second);
        let has_middle = count - usize::from(dead.is_some()) >= 3;
        if is_pair && has_middle && world.random.random_ratio(4, 5) {
            world.note(format!("n{first} and n{second} are cut off"));
            world.cut.insert((first.min(second), first.max(second)));
        } else {
            world.note("there is no cut".to_owned());
        }
        let mut excused = BTreeSet::new();
        for _ in 0..world.random.random_range(1..8) {
            let pause = Duration::from_millis(world.random.random_range(1..2_500));
            world.run(pause);
            something(&mut world, &keys, &mut dead, &mut excused);
        }
        world.run(SETTLING);
        if dead.is_some() {
            // The home may have been on the node that died: its entry expires.
            world.run(Duration::from_secs(18));
        }
        check(&world, &keys);
        let gone = std::mem::take(&mut world.gone).into_iter();
        let missed: Vec<_> = gone
            .filter(|(_, key, node)| !excused.contains(&(key.clone(), node.clone())))
            .collect();
        assert!(missed.is_empty(), "{missed:?} went\n{}", world.story());
    }
}

/// Returns whether the home of a room is a run that has ended.
fn has_dead_home(world: &World, key: &HomeKey) -> bool {
    home_of(world, key).is_some_and(|home| {
        let mut hosts = world.hosts.iter().filter(|host| host.node.is_some());
        !hosts.any(|host| home.is(&host.id, host.epoch))
    })
}

/// One thing happens. `excused` gets the items that may go for it.
fn something(
    world: &mut World,
    keys: &[HomeKey],
    dead: &mut Option<usize>,
    excused: &mut BTreeSet<(HomeKey, NodeId)>,
) {
    let count = world.hosts.len();
    let index = world.random.random_range(0..count);
    let key = keys[world.random.random_range(0..keys.len())].clone();
    let id = world.hosts[index].id.clone();
    let is_cut = world.cut.iter().any(|(a, b)| [*a, *b].contains(&index));
    match world.random.random_range(0..20) {
        // While the home is dead, who comes may take it without knowing the others, and who goes
        // has nobody to tell.
        0..17 if has_dead_home(world, &key) => {}
        0..10 => world.open(index, &key),
        10..17 => {
            excused.insert((key.clone(), id));
            world.release(index, &key, false);
        }
        // The node in the middle dies, and another one is left.
        17..19 if dead.is_none() && !is_cut && count > 3 => {
            excused.extend(keys.iter().map(|key| (key.clone(), id.clone())));
            world.kill(index);
            world.hosts[index].open.clear();
            *dead = Some(index);
        }
        _ => {
            if let Some(index) = dead.take() {
                world.start(index);
            }
        }
    }
}
