//! A node of a cluster that stands still for half a minute, and goes on: processes, a real nats-server,
//! and clients with real media. Skipped with a message where no nats-server of 2.11 or newer is
//! installed.
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
use nodes::{Site, home, home_of, links_up};
use serde_json::json;

const ROOM: u64 = 1234;
const PAUSE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_stood_still_yields_and_everybody_meets_again() {
    let Some(site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    let [a, b, c] = [0, 1, 2].map(|index| site.nodes[index].api().to_owned());
    // Node b is the home.
    let mut bob = Guest::publisher(&b, ROOM, 22).await;
    site.nodes[1].until("a home", |status| {
        home_of(status, "1234").is_some_and(|home| home["node"] == "b")
    });
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    let (mut cleo, _) = Guest::listener(&c, ROOM, 33).await;
    for guest in [&mut ada, &mut bob, &mut cleo] {
        guest.until_there_are(ROOM, 3).await;
    }
    let mut at_c = Guest::viewer(&c, ROOM, 11).await;
    at_c.watch(&mut ada, 0).await;
    let before = home(&site.nodes[0].status());
    for guest in [&mut ada, &mut bob, &mut cleo] {
        guest.untold();
    }

    site.nodes[1].signal("-STOP");
    let begin = Instant::now();
    for guest in [&mut ada, &mut cleo] {
        guest.until(|data| data["leaving"] == 22);
    }
    println!("bob is gone for the others after {:?}", begin.elapsed());
    let mut mark = 1;
    let mut taken = None;
    while begin.elapsed() < PAUSE {
        mark = at_c.flow(&mut ada, mark, Duration::from_millis(500)).await;
        let now = home(&site.nodes[0].status());
        if taken.is_none() && now != before {
            println!("{} takes the home after {:?}", now.0, begin.elapsed());
            taken = Some(now);
        }
    }
    let taken = taken.expect("another home");
    assert_ne!(taken.0, "b");

    site.nodes[1].signal("-CONT");
    let begin = Instant::now();
    for node in &site.nodes {
        node.until("one home", |status| {
            links_up(status) == 2 && home(status) == taken && status["disagreements"] == json!([])
        });
    }
    println!("all agree again after {:?}", begin.elapsed());
    for guest in [&mut ada, &mut cleo, &mut bob] {
        guest.until_there_are(ROOM, 3).await;
    }
    // Nobody has answered the checks of bob's connection for 30 s, so it is over. He is told, and
    // publishes again; here by another name.
    bob.hung_up();
    let mut dan = Guest::publisher(&b, ROOM, 44).await;
    for guest in [&mut ada, &mut cleo] {
        guest.until(|data| data["publishers"][0]["id"] == 44);
    }
    let mut at_b = Guest::viewer_soon(&b, ROOM, 11).await;
    at_b.watch(&mut ada, 251).await;
    let mut at_a = Guest::viewer_soon(&a, ROOM, 44).await;
    at_a.watch(&mut dan, 252).await;
    println!("pictures flow both ways after {:?}", begin.elapsed());
    let metric = |name: &str| server::metric(&b, name);
    assert!(metric("portunus_cluster_home_changes_total{change=\"yield\"}") >= 1);
}
