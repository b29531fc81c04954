//! A partition: the home of a room can reach neither the other nodes nor the bus. Processes in network
//! namespaces, a real nats-server, and clients with real media. Skipped with a message where no
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
use nodes::{Site, home, home_of, links_up};
use portunus_hammer::machine::Station;
use serde_json::json;
use server::get;

const ROOM: u64 = 1234;
/// The limit for another home.
const TAKEN: Duration = Duration::from_secs(16);

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_is_alone_serves_its_own_clients_and_meets_the_others_again() {
    let Some((site, mesh)) = Site::apart(&["a", "b", "c"]) else {
        return;
    };
    let [a, b, c] = [0, 1, 2].map(|index| site.nodes[index].api().to_owned());
    // Node a is the home, and has a publisher and a viewer.
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    site.nodes[0].until("a home", |status| {
        home_of(status, "1234").is_some_and(|home| home["node"] == "a")
    });
    let mut bob = Guest::publisher(&b, ROOM, 22).await;
    let (mut cleo, _) = Guest::listener(&c, ROOM, 33).await;
    for guest in [&mut ada, &mut bob, &mut cleo] {
        guest.until_there_are(ROOM, 3).await;
    }
    let mut at_a = Guest::viewer(&a, ROOM, 11).await;
    let mut at_c = Guest::viewer(&c, ROOM, 22).await;
    at_a.watch(&mut ada, 0).await;
    at_c.watch(&mut bob, 0).await;
    let before = home(&site.nodes[1].status());
    for guest in [&mut ada, &mut bob, &mut cleo] {
        guest.untold();
    }

    for other in [Station::Node(1), Station::Node(2), Station::Bus] {
        mesh.cut(Station::Node(0), other).unwrap();
    }
    let begin = Instant::now();
    for guest in [&mut bob, &mut cleo] {
        guest.until(|data| data["leaving"] == 11);
    }
    ada.until(|data| data["leaving"] == 22);
    println!("both sides know after {:?}", begin.elapsed());
    // On each side pictures flow, and the larger one has another home in time.
    let (mut mark, mut taken) = (1, None);
    while taken.is_none() {
        at_a.flow(&mut ada, mark, Duration::from_millis(250)).await;
        mark = at_c.flow(&mut bob, mark, Duration::from_millis(250)).await;
        let now = home(&site.nodes[1].status());
        taken = (now != before).then_some(now);
        assert!(begin.elapsed() < TAKEN, "there is no other home");
    }
    let taken = taken.unwrap();
    println!("{} takes the home after {:?}", taken.0, begin.elapsed());
    assert_ne!(taken.0, "a");
    let ready = nodes::path_of(&a, "/readyz");
    assert!(get(&ready).starts_with("ok\ndegraded: cluster: "));
    // Both sides take new clients meanwhile.
    let (mut dan, joined) = Guest::listener(&a, ROOM, 44).await;
    assert_eq!(joined["publishers"][0]["id"], 11, "{joined}");
    let (mut eve, joined) = Guest::listener(&b, ROOM, 55).await;
    assert_eq!(joined["publishers"][0]["id"], 22, "{joined}");
    at_a.watch(&mut ada, 250).await;
    at_c.watch(&mut bob, 250).await;

    for other in [Station::Node(1), Station::Node(2), Station::Bus] {
        mesh.heal(Station::Node(0), other).unwrap();
    }
    let begin = Instant::now();
    for node in &site.nodes {
        node.until("one home", |status| {
            links_up(status) == 2 && home(status) == taken && status["disagreements"] == json!([])
        });
    }
    for guest in [&mut ada, &mut bob, &mut cleo, &mut dan, &mut eve] {
        guest.until_there_are(ROOM, 5).await;
    }
    println!("all are in one room again after {:?}", begin.elapsed());
    let mut from_b = Guest::viewer_soon(&a, ROOM, 22).await;
    from_b.watch(&mut bob, 251).await;
    let mut from_a = Guest::viewer_soon(&c, ROOM, 11).await;
    from_a.watch(&mut ada, 252).await;
}
