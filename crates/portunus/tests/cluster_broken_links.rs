//! Links between nodes that break, and what clients see of it: processes in network namespaces, a
//! real nats-server, and clients with real media. Skipped with a message where no nats-server of 2.11
//! or newer is installed, or where the rights for network namespaces are missing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::time::{Duration, Instant};

use nodes::guests::Guest;
use nodes::{Node, Site, home, home_of, links_up};
use portunus_hammer::machine::Station;
use serde_json::{Value, json};
use server::PATIENCE;

const ROOM: u64 = 1234;

/// Others are told of a dead node within this time.
const TOLD: Duration = Duration::from_secs(3);

/// The ids of publishers in data of the plugin, in their order.
fn publishers(data: &Value) -> Vec<u64> {
    let all = data["publishers"].as_array();
    let ids = all.into_iter().flatten();
    let mut ids: Vec<u64> = ids.filter_map(|it| it["id"].as_u64()).collect();
    ids.sort_unstable();
    ids
}

/// Returns the node through which the link to another one leads.
fn through<'s>(status: &'s Value, node: &str) -> Option<&'s str> {
    let mut links = status["links"].as_array().unwrap().iter();
    let link = links.find(|link| link["node"] == *node && link["state"] == "up")?;
    link["through"].as_str()
}

/// A number among the metrics of a node.
fn figure(node: &Node, name: &str) -> u64 {
    let request = json!({ "janus": "metrics", "transaction": "t", "names": [name] });
    let answer = node.admin(&request);
    let value = answer["metrics"][0]["value"].as_f64();
    value.unwrap_or_else(|| panic!("{name}: {answer}")) as u64
}

/// Waits until a node shows a number, which it looks at now and then.
fn until_figure(node: &Node, name: &str, expected: u64) {
    let begin = Instant::now();
    while figure(node, name) != expected {
        assert!(begin.elapsed() < PATIENCE, "{}: {name}", node.name);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a number is no longer 0.
fn until_some(node: &Node, name: &str) {
    let begin = Instant::now();
    while figure(node, name) == 0 {
        assert!(begin.elapsed() < PATIENCE, "{}: {name}", node.name);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the room of a node has so many publishers, and until a guest there was told of them.
async fn told_of(guest: &mut Guest, count: usize) {
    let begin = Instant::now();
    loop {
        let listed = guest.ask(json!({ "request": "listparticipants", "room": ROOM }));
        let all = listed["participants"].as_array().unwrap();
        if all.iter().filter(|it| it["publisher"] == true).count() == count {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{listed}");
        guest.peer.run_for(Duration::from_millis(50)).await;
    }
    // The answer comes after all that was told before.
    guest.send(json!({ "request": "configure" }), None);
    guest.until(|data| data["configured"] == "ok");
}

fn participants(guest: &Guest) -> usize {
    let listed = guest.ask(json!({ "request": "listparticipants", "room": ROOM }));
    listed["participants"].as_array().unwrap().len()
}

/// Waits until both nodes have their link to each other through a third one.
fn until_through(a: &Node, b: &Node, middle: &str) {
    for (node, other) in [(a, b), (b, a)] {
        let status = node.until("the way around", |status| {
            through(status, &other.name) == Some(middle)
        });
        println!("{}: {}", node.name, status["disagreements"]);
        assert_eq!(status["confirmed"], true);
        assert_eq!(links_up(&status), 2);
        until_figure(node, "portunus_cluster_links_through", 1);
        let table = node.says(&["status"]);
        assert!(table.contains(&format!("up through {middle}")), "{table}");
    }
}

fn until_direct(nodes: &[Node]) {
    for node in nodes {
        node.until("direct links", |status| {
            links_up(status) == 2 && status["disagreements"] == json!([])
        });
        until_figure(node, "portunus_cluster_links_through", 0);
        until_figure(node, "portunus_cluster_lost_nodes_total", 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_that_cannot_reach_each_other_meet_again() {
    let Some((site, mesh)) = Site::apart(&["a", "b", "c"]) else {
        return;
    };
    let [a, b, c] = &site.nodes[..] else {
        panic!("three nodes")
    };
    let (mut cleo, _) = Guest::listener(c.api(), ROOM, 33).await;
    c.until("a home", |status| {
        home_of(status, "1234").is_some_and(|home| home["node"] == "c")
    });
    let mut ada = Guest::publisher(a.api(), ROOM, 11).await;
    cleo.until(|data| publishers(data) == [11]);
    let (mut bob, joined) = Guest::listener(b.api(), ROOM, 22).await;
    assert_eq!(publishers(&joined), [11], "{joined}");
    let mut at_b = Guest::viewer(b.api(), ROOM, 11).await;
    let mut at_c = Guest::viewer(c.api(), ROOM, 11).await;
    at_b.watch(&mut ada, 1).await;
    at_c.watch(&mut ada, 2).await;
    let before = home(&c.status());
    cleo.untold();
    bob.untold();

    mesh.cut(Station::Node(0), Station::Node(1)).unwrap();
    let begin = Instant::now();
    until_through(a, b, "c");
    println!("the link leads through c after {:?}", begin.elapsed());
    // Node c has both, and what it sees goes on.
    assert_eq!(links_up(&c.status()), 2);
    at_c.watch(&mut ada, 3).await;
    // The home is alive for all, so nobody leaves.
    for (name, guest) in [("cleo", &mut cleo), ("bob", &mut bob)] {
        assert_eq!(guest.untold(), Vec::<Value>::new(), "{name}");
    }
    assert_eq!(home(&c.status()), before);
    assert_eq!(home(&a.status()), before);

    mesh.heal(Station::Node(0), Station::Node(1)).unwrap();
    let begin = Instant::now();
    until_direct(&site.nodes);
    println!("the link is direct after {:?}", begin.elapsed());
    at_b.watch(&mut ada, 4).await;
    println!("the picture is back after {:?}", begin.elapsed());
    at_c.watch(&mut ada, 5).await;
    // The other way round, too.
    let mut dan = Guest::publisher(b.api(), ROOM, 44).await;
    ada.until(|data| publishers(data) == [44]);
    let mut at_a = Guest::viewer(a.api(), ROOM, 44).await;
    at_a.watch(&mut dan, 6).await;
    assert_eq!(home(&c.status()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_leaves_when_the_link_to_the_home_of_a_room_breaks() {
    let Some((site, mesh)) = Site::apart(&["a", "b", "c"]) else {
        return;
    };
    let mut guests = Vec::new();
    for (node, id) in site.nodes.iter().zip([11, 22, 33]) {
        guests.push(Guest::publisher(node.api(), ROOM, id).await);
        node.until("a home", |status| home_of(status, "1234").is_some());
    }
    for guest in &mut guests {
        told_of(guest, 3).await;
    }
    let before = home(&site.nodes[2].status());
    assert_eq!(before.0, "a");
    mesh.cut(Station::Node(0), Station::Node(1)).unwrap();
    until_through(&site.nodes[0], &site.nodes[1], "c");
    until_some(&site.nodes[2], "portunus_cluster_carried_frames_total");
    // The people stay for all, and longer than it takes to lose a node.
    let begin = Instant::now();
    while begin.elapsed() < TOLD * 2 {
        for guest in &mut guests {
            assert_eq!(participants(guest), 3);
            guest.peer.run_for(Duration::from_millis(50)).await;
        }
    }
    for (guest, id) in guests.iter_mut().zip([11, 22, 33]) {
        assert_eq!(guest.untold(), Vec::<Value>::new(), "{id}");
    }
    // A client that joins at the node that is cut off from the home sees all, and all see it.
    let (mut dan, joined) = Guest::listener(site.nodes[1].api(), ROOM, 44).await;
    assert_eq!(publishers(&joined), [11, 22, 33], "{joined}");
    for guest in &mut guests {
        guest.until_there_are(ROOM, 4).await;
        guest.untold();
    }
    for node in &site.nodes {
        assert_eq!(home(&node.status()), before);
    }

    mesh.heal(Station::Node(0), Station::Node(1)).unwrap();
    let begin = Instant::now();
    until_direct(&site.nodes);
    println!("the link is direct after {:?}", begin.elapsed());
    for guest in guests.iter_mut().chain([&mut dan]) {
        assert_eq!(participants(guest), 4);
        assert_eq!(guest.untold(), Vec::<Value>::new());
    }
    // Everybody sees everybody.
    for (from, publisher) in guests.iter_mut().enumerate() {
        let id = [11, 22, 33][from];
        for (_, node) in site.nodes.iter().enumerate().filter(|(at, _)| *at != from) {
            let mut viewer = Guest::viewer(node.api(), ROOM, id).await;
            viewer.watch(publisher, 2).await;
        }
    }
    assert_eq!(home(&site.nodes[2].status()), before);
}

/// How a node is lost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Loss {
    Kill,
    Stop,
    Cut,
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_of_a_lost_node_within_3_seconds() {
    let Some((mut site, mesh)) = Site::apart(&["a", "b", "c"]) else {
        return;
    };
    let api = |site: &Site, index: usize| site.nodes[index].api().to_owned();
    let (mut ada, _) = Guest::listener(&api(&site, 0), ROOM, 11).await;
    let (mut bob, _) = Guest::listener(&api(&site, 1), ROOM, 22).await;
    let mut slowest = Duration::ZERO;
    let losses = [Loss::Kill, Loss::Stop, Loss::Cut].into_iter().cycle();
    for (round, loss) in losses.take(9).enumerate() {
        let id = 100 + round as u64;
        let cleo = Guest::publisher(&api(&site, 2), ROOM, id).await;
        for guest in [&mut ada, &mut bob] {
            guest.until(|data| publishers(data) == [id]);
        }
        let begin = Instant::now();
        let cuts = [Station::Node(0), Station::Node(1), Station::Bus];
        match loss {
            Loss::Kill => site.nodes[2].running = None,
            Loss::Stop => server::signal(&site.nodes[2].running.as_ref().unwrap().0, "-STOP"),
            Loss::Cut => cuts
                .into_iter()
                .for_each(|other| mesh.cut(Station::Node(2), other).unwrap()),
        }
        for (name, guest) in [("ada", &mut ada), ("bob", &mut bob)] {
            guest.until(|data| data["leaving"] == id);
            let took = begin.elapsed();
            println!("{loss:?}: {name} is told after {took:?}");
            assert!(took < TOLD, "{loss:?}: {took:?}");
            slowest = slowest.max(took);
        }
        drop(cleo);
        if loss == Loss::Cut {
            for other in cuts {
                mesh.heal(Station::Node(2), other).unwrap();
            }
        }
        site.nodes[2].running = None;
        site.nodes[2].start();
        for node in &site.nodes {
            node.until("links", |status| links_up(status) == 2);
        }
    }
    println!("the slowest took {slowest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_the_release_before_works_with_others() {
    let nodes = [("a", ""), ("b", "version = 1"), ("c", "")];
    let Some(mut site) = Site::with(&nodes) else {
        return;
    };
    let version = |node: &Node, other: &str| {
        let status = node.status();
        let mut links = status["links"].as_array().unwrap().iter();
        let link = links.find(|link| link["node"] == *other).unwrap();
        link["version"].clone()
    };
    let [a, b, c] = &site.nodes[..] else {
        panic!("three nodes")
    };
    assert_eq!((version(a, "b"), version(a, "c")), (json!(1), json!(2)));
    assert_eq!((version(b, "a"), version(b, "c")), (json!(1), json!(1)));
    let mut ada = Guest::publisher(a.api(), ROOM, 11).await;
    let mut bob = Guest::publisher(b.api(), ROOM, 22).await;
    let (mut cleo, joined) = Guest::listener(c.api(), ROOM, 33).await;
    assert_eq!(publishers(&joined), [11, 22]);
    let mut at_b = Guest::viewer(b.api(), ROOM, 11).await;
    at_b.watch(&mut ada, 1).await;
    let mut at_c = Guest::viewer(c.api(), ROOM, 22).await;
    at_c.watch(&mut bob, 2).await;
    // The old one is told of a dead one, and the new ones of an old one.
    drop(ada);
    site.nodes[0].running = None;
    bob.until(|data| data["leaving"] == 11);
    cleo.until(|data| data["leaving"] == 11);
    drop(bob);
    site.nodes[1].running = None;
    cleo.until(|data| data["leaving"] == 22);
}
