//! Nodes that cannot be connected directly, and what third nodes do for them.

use portunus_cluster::{HomeKey, Place, VersionRange, WithoutBus};

use crate::scenarios::{cluster, home_of, is_settled, room, second};
use crate::schedule::check;
use crate::world::World;

/// Returns the node through which the link of one node to another one leads, by their numbers.
fn through(world: &World, from: usize, to: usize) -> Option<String> {
    let status = world.hosts[from].node.as_ref().unwrap().status(world.now);
    let links = status.links.into_iter();
    let mut of_node = links.filter(|link| link.node == world.hosts[to].id);
    let link = of_node.next().filter(|link| link.state == "up")?;
    Some(
        link.through
            .map_or("directly".to_owned(), |it| it.to_string()),
    )
}

fn ways(world: &World, a: usize, b: usize) -> [Option<String>; 2] {
    [through(world, a, b), through(world, b, a)]
}

fn both(way: &str) -> [Option<String>; 2] {
    [Some(way.to_owned()), Some(way.to_owned())]
}

fn lost_nodes(world: &World) -> Vec<u64> {
    let nodes = world.hosts.iter().filter_map(|host| host.node.as_ref());
    nodes.map(|node| node.counters().lost_nodes).collect()
}

/// Opens a room at these nodes, whose home is the first of them.
fn open(world: &mut World, key: &HomeKey, hosts: &[usize]) {
    for index in hosts {
        world.open(*index, key);
        world.until(second(2), "the home", |world| home_of(world, key).is_some());
    }
    world.until(second(2), "the room", |world| is_settled(world, key));
    world.gone.clear();
}

#[test]
fn a_link_that_is_cut_leads_through_the_third_node_and_nobody_leaves() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let (key, other) = (room("1"), room("2"));
    open(&mut world, &key, &[0, 1, 2]);
    world.open(0, &other);
    world.until(second(2), "the home", |world| {
        home_of(world, &other).is_some()
    });
    let home = home_of(&world, &key);
    world.cut.insert((0, 1));
    world.until(second(2), "the way around", |world| {
        ways(world, 0, 1) == both("n2")
    });
    // Somebody joins at the node that is cut off from the home.
    world.open(1, &other);
    let keys = [key, other];
    world.until(second(1), "the join", |world| {
        keys.iter().all(|key| is_settled(world, key))
    });
    check(&world, &keys);
    let status = world.hosts[1].node.as_ref().unwrap().status(world.now);
    let text = "the link to n0 leads through n2, since they cannot be connected directly";
    assert_eq!(status.disagreements, [text]);
    world.run(second(60));
    check(&world, &keys);
    assert_eq!(ways(&world, 0, 1), both("n2"));

    world.cut.clear();
    // An attempt to connect takes 5 s, and the pause after it the same.
    world.until(second(11), "the direct link", |world| {
        ways(world, 0, 1) == both("directly")
    });
    world.run(second(8));
    check(&world, &keys);
    let status = world.hosts[1].node.as_ref().unwrap().status(world.now);
    assert_eq!(status.disagreements, Vec::<String>::new());
    assert_eq!(lost_nodes(&world), [0, 0, 0]);
    assert_eq!(world.gone, []);
    assert_eq!(home_of(&world, &keys[0]), home);
}

#[test]
fn when_the_node_in_the_middle_dies_or_stands_still_another_one_takes_its_place() {
    let mut world = cluster(4, WithoutBus::Refuse);
    let key = room("1");
    open(&mut world, &key, &[0, 1]);
    world.cut.insert((0, 1));
    world.until(second(2), "the way around", |world| {
        through(world, 0, 1).is_some_and(|way| way != "directly")
    });
    world.run(second(2));
    let middle = through(&world, 0, 1).unwrap();
    let (first, second_one) = if middle == "n2" { (2, 3) } else { (3, 2) };
    world.kill(first);
    let other = format!("n{second_one}");
    world.until(second(2), "another way", |world| {
        ways(world, 0, 1) == both(&other)
    });
    world.start(first);
    world.run(second(10));
    world.stall(second_one, second(20));
    world.until(second(3), "the first way", |world| {
        ways(world, 0, 1) == both(&middle)
    });
    world.run(second(30));
    check(&world, std::slice::from_ref(&key));
    assert_eq!(world.gone, []);
    // Without any middle each counts the other as lost.
    let lost = lost_nodes(&world);
    world.cut.extend([(0, 2), (0, 3)]);
    world.until(second(3), "the loss", |world| {
        lost_nodes(world)[0] == lost[0] + 3 && lost_nodes(world)[1] == lost[1] + 1
    });
    world.cut.clear();
    world.run(second(10));
    check(&world, &[key]);
}

#[test]
fn a_node_that_starts_behind_a_cut_is_met_through_another_one() {
    let mut world = World::new(1, 3, WithoutBus::Refuse);
    world.cut.insert((0, 1));
    (0..3).for_each(|index| world.start(index));
    let key = room("1");
    world.until(second(4), "the way around", |world| {
        ways(world, 0, 1) == both("n2")
    });
    open(&mut world, &key, &[1, 0]);
    check(&world, &[key]);
}

#[test]
fn a_dead_node_is_lost_though_its_link_led_through_another_one() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let key = room("1");
    open(&mut world, &key, &[0, 1, 2]);
    world.cut.insert((0, 1));
    world.until(second(2), "the way around", |world| {
        ways(world, 0, 1) == both("n2")
    });
    world.run(second(1));
    assert_eq!(world.gone, []);
    world.kill(1);
    world.hosts[1].open.clear();
    world.until(second(3), "the end of its items", |world| {
        world.gone.len() == 2
    });
    // A node that is stopped is no dead one, and is noticed all the same.
    world.start(1);
    world.run(second(8));
    world.open(1, &key);
    world.until(second(4), "its return", |world| is_settled(world, &key));
    world.gone.clear();
    world.stall(1, second(10));
    world.until(second(3), "the end of its items", |world| {
        world.gone.len() == 2
    });
}

#[test]
fn a_node_that_leaves_is_lost_at_once_behind_a_cut_too() {
    let mut world = cluster(3, WithoutBus::Refuse);
    let key = room("1");
    open(&mut world, &key, &[0, 1, 2]);
    world.cut.insert((0, 1));
    world.until(second(2), "the way around", |world| {
        ways(world, 0, 1) == both("n2")
    });
    world.demand(1, portunus_cluster::Demand::Leave);
    world.until(second(1), "the loss", |world| {
        let lost = lost_nodes(world);
        (lost[0], lost[2]) == (1, 1)
    });
}

#[test]
fn a_node_of_the_release_before_works_with_others_and_has_no_way_around() {
    let mut world = World::new(1, 4, WithoutBus::Refuse);
    world.hosts[0].versions = VersionRange { min: 1, max: 1 };
    (0..4).for_each(|index| world.start(index));
    world.until(second(10), "links", |world| {
        let nodes = world.hosts.iter().filter_map(|host| host.node.as_ref());
        nodes.into_iter().all(|node| node.sizes().links == 3)
    });
    let versions = |index: usize| {
        let status = world.hosts[index].node.as_ref().unwrap().status(world.now);
        let links = status.links.into_iter();
        links.filter_map(|link| link.version).collect::<Vec<_>>()
    };
    assert_eq!((versions(0), versions(1)), (vec![1; 3], vec![1, 2, 2]));
    let key = room("1");
    open(&mut world, &key, &[0, 1, 2, 3]);
    check(&world, std::slice::from_ref(&key));
    // Two that speak version 2 meet through the third one of them, not through the old one.
    world.cut.insert((1, 2));
    world.until(second(2), "the way around", |world| {
        ways(world, 1, 2) == both("n3")
    });
    assert_eq!(world.gone, []);
    // The old one is lost behind a cut, as it ever was.
    world.cut.clear();
    world.run(second(10));
    world.cut.insert((0, 1));
    world.until(second(3), "the loss", |world| {
        lost_nodes(world)[..2] == [1, 1]
    });
    let unreachable = matches!(
        world.hosts[1].places.get(&key),
        Some(Place::There {
            is_reachable: false,
            ..
        })
    );
    assert!(unreachable);
    world.cut.clear();
    world.run(second(10));
    check(&world, std::slice::from_ref(&key));
    world.kill(0);
    world.hosts[0].open.clear();
    world.until(second(16), "a new home", |world| {
        home_of(world, &key).is_some_and(|home| home.node != world.hosts[0].id)
    });
    world.until(second(2), "all registered", |world| is_settled(world, &key));
    check(&world, &[key]);
}
