//! Forwarders and publishers of other servers, asked for at a node that is not the home of the video
//! room: processes, a real nats-server, and clients with real media. Skipped with a message where no
//! nats-server of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use nodes::Site;
use nodes::guests::Guest;
use serde_json::{Value, json};
use server::PATIENCE;

/// A room that only one node has.
const HALL: &str = "\n[[videoroom.room]]\nroom = 555\nsecret = \"s3cret\"\npublishers = 2\n";
const LOOPBACK: &str = "\n[server]\noutgoing_networks = [\"127.0.0.0/8\"]\n";

fn request(name: &str, secret: &str, more: Value) -> Value {
    let mut body = json!({ "request": name, "room": 555, "secret": secret });
    let members = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body
}

/// A publisher of another server with a stream.
fn remote(id: u64) -> Value {
    let streams = json!([{ "type": "video", "mid": "0", "mindex": 0, "codec": "vp8" }]);
    json!({ "id": id, "display": "elsewhere", "iface": "127.0.0.1", "streams": streams })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_home_checks_who_forwards_at_another_node() {
    let keys = format!("{HALL}{LOOPBACK}");
    let Some(site) = Site::with(&[("a", &keys), ("b", LOOPBACK)]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let mut ada = Guest::publisher(a, 555, 11).await;
    let eve = Guest::idle(b).await;
    // Node b has got the room by nobody's join.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let port = socket.local_addr().unwrap().port();
    let to = json!({
        "publisher_id": 11, "host": "127.0.0.1", "streams": [{ "mid": "1", "port": port }],
    });
    let refused = eve.ask(request("rtp_forward", "guess", to.clone()));
    assert_eq!(refused["error_code"], 433, "{refused}");
    let begin = Instant::now();
    let forwarded = loop {
        let forwarded = eve.ask(request("rtp_forward", "s3cret", to.clone()));
        if forwarded["videoroom"] == "rtp_forward" {
            break forwarded;
        }
        // Its streams may not be known there yet.
        assert!(begin.elapsed() < PATIENCE, "{forwarded}");
        ada.peer.run_for(Duration::from_millis(50)).await;
    };
    let stream = forwarded["forwarders"][0]["stream_id"].clone();
    let mut packet = [0; 1_500];
    let end = Instant::now() + PATIENCE;
    while socket.recv(&mut packet).is_err() {
        assert!(Instant::now() < end, "nothing is forwarded");
        ada.send_picture(1).await;
        ada.peer.run_for(Duration::from_millis(20)).await;
    }
    // A new secret counts at once, and the old one no longer.
    let edit = request("edit", "s3cret", json!({ "new_secret": "other" }));
    assert_eq!(ada.ask(edit)["videoroom"], "edited");
    let list = eve.ask(request("listforwarders", "s3cret", json!({})));
    assert_eq!(list["error_code"], 433, "{list}");
    let list = eve.ask(request("listforwarders", "other", json!({})));
    assert_eq!(list["publishers"][0]["publisher_id"], 11, "{list}");
    let stop = json!({ "publisher_id": 11, "stream_id": stream });
    let stopped = eve.ask(request("stop_rtp_forward", "s3cret", stop.clone()));
    assert_eq!(stopped["error_code"], 433, "{stopped}");
    let stopped = eve.ask(request("stop_rtp_forward", "other", stop));
    assert_eq!(stopped["videoroom"], "stop_rtp_forward", "{stopped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_of_another_server_has_an_id_and_a_place_of_the_home() {
    let Some(site) = Site::with(&[("a", HALL), ("b", "")]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let mut ada = Guest::publisher(a, 555, 11).await;
    let eve = Guest::idle(b).await;
    let add = |id: u64, secret: &str| request("add_remote_publisher", secret, remote(id));
    let refused = eve.ask(add(22, "guess"));
    assert_eq!(refused["error_code"], 433, "{refused}");
    let refused = eve.ask(add(11, "s3cret"));
    assert_eq!(refused["error_code"], 436, "the id is taken: {refused}");
    let added = eve.ask(add(22, "s3cret"));
    assert_eq!(
        (&added["videoroom"], &added["id"]),
        (&json!("success"), &json!(22)),
        "{added}"
    );
    ada.until(|data| data["publishers"][0]["id"] == 22);
    let refused = eve.ask(add(33, "s3cret"));
    assert_eq!(
        refused["error_code"], 432,
        "all places are taken: {refused}"
    );
    let remove = request("remove_remote_publisher", "s3cret", json!({ "id": 22 }));
    assert_eq!(eve.ask(remove)["videoroom"], "success");
    ada.until(|data| data["leaving"] == 22 || data["unpublished"] == 22);
}
