//! Media that comes through another node: as a tree of nodes, and around a link that carries no UDP.
//! Processes, a real nats-server, and clients with real media. Skipped with a message where no
//! nats-server of 2.11 or newer is installed, or where the rights for network namespaces are missing.
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
use nodes::{Node, Site, links_up};
use portunus_hammer::machine::Station;
use serde_json::{Value, json};
use server::{PATIENCE, metric};

const ROOM: u64 = 1234;

/// What a node says of its media link with another one.
fn media(status: &Value, node: &str) -> Value {
    let links = status["links"].as_array().unwrap();
    let link = links.iter().find(|link| link["node"] == node).unwrap();
    link["media"].clone()
}

/// A viewer that is looked at all the time, and the longest time without a picture.
struct Watch<'a> {
    viewer: &'a mut Guest,
    publisher: &'a mut Guest,
    mark: u8,
    last: Instant,
    longest: Duration,
}

impl<'a> Watch<'a> {
    fn new(viewer: &'a mut Guest, publisher: &'a mut Guest) -> Self {
        viewer.peer.packets.clear();
        Watch {
            viewer,
            publisher,
            mark: 1,
            last: Instant::now(),
            longest: Duration::ZERO,
        }
    }

    async fn go_on(&mut self) {
        let before = self.viewer.peer.packets.len();
        let time = Duration::from_millis(50);
        self.mark = self.viewer.flow(self.publisher, self.mark, time).await;
        if self.viewer.peer.packets.len() > before {
            self.last = Instant::now();
        }
        self.longest = self.longest.max(self.last.elapsed());
    }

    async fn go_on_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.go_on().await;
        }
    }

    /// Goes on until a node says so. Its status is looked at twice a second.
    async fn go_on_until(&mut self, what: &str, node: &Node, holds: impl Fn(&Value) -> bool) {
        let begin = Instant::now();
        loop {
            let status = node.admin(&json!({ "janus": "cluster_status", "transaction": "t" }));
            let status = match status.get("cluster") {
                Some(status) => status.clone(),
                None => panic!("no status of the cluster: {status}"),
            };
            if holds(&status) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{what}: {status:#}");
            self.go_on_for(Duration::from_millis(500)).await;
        }
    }

    /// Returns the longest time without a picture since the last call.
    fn take_longest(&mut self) -> Duration {
        std::mem::take(&mut self.longest)
    }
}

fn is_through(status: &Value, of: &str, carrier: &str) -> bool {
    media(status, of)["through"][carrier].as_u64() >= Some(1)
}

fn is_direct(status: &Value, of: &str) -> bool {
    media(status, of)["through"] == json!({})
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_go_around_a_link_that_carries_no_udp() {
    let Some((site, mesh)) = Site::apart(&["a", "b", "c"]) else {
        return;
    };
    let [a, b, c] = &site.nodes[..] else {
        panic!("three nodes")
    };
    let mut ada = Guest::publisher(a.api(), ROOM, 11).await;
    let (mut cleo, _) = Guest::listener(c.api(), ROOM, 33).await;
    let mut viewer = Guest::viewer(c.api(), ROOM, 11).await;
    viewer.watch(&mut ada, 0).await;
    cleo.untold();
    let mut watch = Watch::new(&mut viewer, &mut ada);
    watch.go_on_for(Duration::from_secs(2)).await;
    println!("before: {:?} without a picture", watch.take_longest());
    let status = c.status();
    assert!(is_direct(&status, "a"), "{status:#}");

    mesh.cut_media(Station::Node(0), Station::Node(2)).unwrap();
    let around =
        |status: &Value| is_through(status, "a", "b") && media(status, "a")["works"] == false;
    watch.go_on_until("a way around", c, around).await;
    watch.go_on_for(Duration::from_secs(3)).await;
    let longest = watch.take_longest();
    println!("around the link: {longest:?} without a picture");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    let status = b.status();
    assert!(
        media(&status, "c")["carried_streams"].as_u64() >= Some(1),
        "{status:#}"
    );
    assert_eq!(
        links_up(&c.status()),
        2,
        "the nodes still talk to each other"
    );
    // Who comes now sees pictures, too: another viewer, and one of a new publisher.
    let mut dan = Guest::publisher(a.api(), ROOM, 44).await;
    cleo.until(|data| data["publishers"][0]["id"] == 44);
    let mut late = Guest::viewer(c.api(), ROOM, 44).await;
    late.watch(&mut dan, 1).await;

    mesh.heal_media(Station::Node(0), Station::Node(2)).unwrap();
    let mut watch = Watch::new(&mut viewer, &mut ada);
    watch.go_on_for(Duration::from_secs(1)).await;
    watch.take_longest();
    let begin = Instant::now();
    watch
        .go_on_until("the direct way", c, |status| is_direct(status, "a"))
        .await;
    println!("the direct way is back after {:?}", begin.elapsed());
    watch.go_on_for(Duration::from_secs(2)).await;
    let longest = watch.take_longest();
    println!("back to the direct way: {longest:?} without a picture");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    let marks = viewer.marks();
    let missing = |pair: &[u8]| (u16::from(pair[1]) + 249 - u16::from(pair[0])) % 250;
    let missing: u16 = marks.windows(2).map(missing).sum();
    println!("{missing} of {} pictures were missing", marks.len());
    assert!(missing <= 2, "{marks:?}");
    let left = |data: &Value| data.get("leaving").is_some();
    assert!(!cleo.untold().iter().any(left), "nobody has left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_node_takes_a_source_from_the_second_and_outlives_it() {
    let keys = "fan_out = 1";
    let Some(mut site) = Site::with(&[("a", keys), ("b", keys), ("c", keys)]) else {
        return;
    };
    let [a, b, c] = [0, 1, 2].map(|index| site.nodes[index].api().to_owned());
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    let (_bob, _) = Guest::listener(&b, ROOM, 22).await;
    let mut at_b = Guest::viewer(&b, ROOM, 11).await;
    at_b.watch(&mut ada, 1).await;
    let (_cleo, _) = Guest::listener(&c, ROOM, 33).await;
    let mut viewer = Guest::viewer(&c, ROOM, 11).await;
    viewer.watch(&mut ada, 2).await;
    let status = site.nodes[2].status();
    assert!(is_through(&status, "a", "b"), "{status:#}");
    let status = site.nodes[0].status();
    assert_eq!(media(&status, "c")["streams_out"], 0, "{status:#}");
    assert!(metric(&b, "portunus_cluster_media_carried_streams") >= 1);
    assert!(metric(&c, "portunus_cluster_media_sources_through_others") >= 1);
    assert_eq!(metric(&c, "portunus_cluster_media_broken_links"), 0);
    at_b.watch(&mut ada, 3).await;

    let mut watch = Watch::new(&mut viewer, &mut ada);
    watch.go_on_for(Duration::from_secs(3)).await;
    let longest = watch.take_longest();
    println!("through b: {longest:?} without a picture");
    site.nodes[1].running = None;
    watch.go_on_for(Duration::from_secs(6)).await;
    let longest = watch.take_longest();
    println!("b is killed: {longest:?} without a picture");
    assert!(longest < Duration::from_secs(3), "{longest:?}");
    let status = site.nodes[2].status();
    assert!(is_direct(&status, "a"), "{status:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_go_around_a_link_that_carries_nothing_at_all() {
    let Some((site, mesh)) = Site::apart(&["a", "b", "c"]) else {
        return;
    };
    let [a, _, c] = &site.nodes[..] else {
        panic!("three nodes")
    };
    let mut ada = Guest::publisher(a.api(), ROOM, 11).await;
    let (mut cleo, _) = Guest::listener(c.api(), ROOM, 33).await;
    let mut viewer = Guest::viewer(c.api(), ROOM, 11).await;
    viewer.watch(&mut ada, 0).await;
    cleo.untold();
    let mut watch = Watch::new(&mut viewer, &mut ada);
    mesh.cut(Station::Node(0), Station::Node(2)).unwrap();
    let around = |status: &Value| is_through(status, "a", "b");
    watch.go_on_for(Duration::from_secs(1)).await;
    watch.go_on_until("a way around", c, around).await;
    watch.go_on_for(Duration::from_secs(2)).await;
    let longest = watch.take_longest();
    println!("around the cut link: {longest:?} without a picture");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    mesh.heal(Station::Node(0), Station::Node(2)).unwrap();
    watch
        .go_on_until("the direct way", c, |status| is_direct(status, "a"))
        .await;
    watch.go_on_for(Duration::from_secs(2)).await;
    let longest = watch.take_longest();
    println!("back to the direct way: {longest:?} without a picture");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    let left = |data: &Value| data.get("leaving").is_some();
    assert!(!cleo.untold().iter().any(left), "nobody has left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_behind_a_carrier_takes_the_place_that_another_one_leaves() {
    let keys = "fan_out = 2";
    let nodes = ["a", "b", "c", "d"].map(|name| (name, keys));
    let Some(site) = Site::with(&nodes) else {
        return;
    };
    let mut ada = Guest::publisher(site.nodes[0].api(), ROOM, 11).await;
    let mut direct = Vec::new();
    for (index, id) in [(1, 22), (2, 33)] {
        let api = site.nodes[index].api();
        let listener = Guest::listener(api, ROOM, id).await.0;
        let mut viewer = Guest::viewer(api, ROOM, 11).await;
        viewer.watch(&mut ada, 1).await;
        direct.push((listener, viewer));
    }
    let d = &site.nodes[3];
    let _dora = Guest::listener(d.api(), ROOM, 44).await;
    let mut viewer = Guest::viewer(d.api(), ROOM, 11).await;
    viewer.watch(&mut ada, 2).await;
    let status = d.status();
    let (stays, leaves) = match is_through(&status, "a", "b") {
        true => (1, 2),
        false => (2, 1),
    };
    let carrier = site.nodes[stays].name.clone();
    assert!(is_through(&status, "a", &carrier), "{status:#}");

    direct[leaves - 1]
        .1
        .send(json!({ "request": "leave" }), None);
    let mut watch = Watch::new(&mut viewer, &mut ada);
    let begin = Instant::now();
    watch
        .go_on_until("the direct way", d, |status| is_direct(status, "a"))
        .await;
    println!("the direct way is taken after {:?}", begin.elapsed());
    watch.go_on_for(Duration::from_secs(2)).await;
    let longest = watch.take_longest();
    println!("on the way there: {longest:?} without a picture");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    let marks = viewer.marks();
    let missing = |pair: &[u8]| (u16::from(pair[1]) + 249 - u16::from(pair[0])) % 250;
    let missing: u16 = marks.windows(2).map(missing).sum();
    println!("{missing} of {} pictures were missing", marks.len());
    assert!(missing <= 2, "{marks:?}");
}
