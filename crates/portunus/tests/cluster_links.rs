//! Links of a cluster that are broken in one direction, or bad: processes in network namespaces, a real
//! nats-server, and clients with real media. Skipped with a message where no nats-server of 2.11 or
//! newer is installed, or where the rights for network namespaces are missing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use nodes::guests::Guest;
use nodes::{Site, direct_links, home, home_of, links_up};
use portunus_hammer::machine::{PartsPerMillion, Station};
use serde_json::{Value, json};

const ROOM: u64 = 1234;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_cut_in_one_direction_counts_as_cut_and_comes_back() {
    let Some((site, mesh)) = Site::apart(&["a", "b", "c"]) else {
        return;
    };
    let [a, b, c] = &site.nodes[..] else {
        panic!("three nodes")
    };
    // Node c is the home, and has all its links.
    let (mut cleo, _) = Guest::listener(c.api(), ROOM, 33).await;
    c.until("a home", |status| {
        home_of(status, "1234").is_some_and(|home| home["node"] == "c")
    });
    let mut ada = Guest::publisher(a.api(), ROOM, 11).await;
    let mut bob = Guest::publisher(b.api(), ROOM, 22).await;
    let mut at_a = Guest::viewer_soon(a.api(), ROOM, 22).await;
    let mut at_b = Guest::viewer_soon(b.api(), ROOM, 11).await;
    let mut at_c = Guest::viewer_soon(c.api(), ROOM, 11).await;
    at_a.watch(&mut bob, 0).await;
    at_b.watch(&mut ada, 0).await;
    at_c.watch(&mut ada, 0).await;
    let before = home(&c.status());
    cleo.untold();
    for (round, (from, to)) in [(1, (0, 1)), (2, (1, 0))] {
        let (from, to) = (Station::Node(from), Station::Node(to));
        mesh.cut_way(from, to).unwrap();
        let begin = Instant::now();
        for node in [a, b] {
            node.until("a link through the third node", |status| {
                direct_links(status) == 1 && links_up(status) == 2
            });
        }
        println!("both know of it after {:?}", begin.elapsed());
        at_c.watch(&mut ada, round).await;
        assert_eq!(cleo.untold(), Vec::<Value>::new());
        mesh.heal_way(from, to).unwrap();
        let begin = Instant::now();
        for node in [a, b] {
            node.until("the link", |status| {
                direct_links(status) == 2 && status["disagreements"] == json!([])
            });
        }
        println!("the link is back after {:?}", begin.elapsed());
        at_b.watch(&mut ada, 10 + round).await;
        at_a.watch(&mut bob, 10 + round).await;
    }
    assert_eq!(home(&c.status()), before);
}

/// What the links lose is asked for again, so viewers get every picture.
#[tokio::test(flavor = "multi_thread")]
async fn links_with_a_delay_and_loss_cost_no_picture() {
    let Some((site, mesh)) = Site::impaired(&["a", "b", "c"]) else {
        return;
    };
    mesh.change_all(|quality| {
        quality.delay = Duration::from_millis(50);
        quality.loss = PartsPerMillion::of_percent(5.0);
    })
    .unwrap();
    let [a, b, c] = [0, 1, 2].map(|index| site.nodes[index].api().to_owned());
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    let mut viewers = Vec::new();
    for api in [&b, &c] {
        let mut viewer = Guest::viewer_soon(api, ROOM, 11).await;
        viewer.watch(&mut ada, 251).await;
        viewers.push(viewer);
    }
    // Those of the last round only tell that those before them are lost.
    const ROUNDS: usize = 9;
    let (mut mark, mut counted) = (1, 1);
    for round in 1..=ROUNDS {
        if round == ROUNDS {
            counted = mark;
        }
        for viewer in &mut viewers {
            mark = viewer
                .flow(&mut ada, mark, Duration::from_millis(250))
                .await;
        }
    }
    // One takes 20 ms or more, so that no mark is repeated.
    assert!(counted > 20, "{counted} pictures");
    // Pictures that were asked for again come last.
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        for guest in viewers.iter_mut().chain([&mut ada]) {
            guest.peer.run_for(Duration::from_millis(10)).await;
        }
    }
    for viewer in &viewers {
        let marks: HashSet<u8> = viewer.marks().into_iter().collect();
        let lost: Vec<u8> = (1..counted).filter(|mark| !marks.contains(mark)).collect();
        assert!(lost.is_empty(), "of {counted} pictures: {lost:?}");
    }
    for node in &site.nodes {
        let status = node.status();
        assert_eq!(links_up(&status), 2, "{status:#}");
        assert_eq!(status["disagreements"], json!([]), "{status:#}");
        let link = &status["links"][0];
        let round_trip = link["media"]["round_trip_us"].as_u64();
        assert!(round_trip.is_none_or(|us| us >= 99_000), "{link}");
    }
}
