//! A node of a cluster is drained: its clients learn where to go. Two processes with a real
//! nats-server. Skipped with a message where none of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::time::Instant;

use serde_json::{Value, json};

use nodes::{Node, Site};
use server::{PATIENCE, attach_to, get, post, response};

/// Returns the next event of the session of a handle.
fn next_event(handle: &str) -> Value {
    let session = handle.rsplit_once('/').unwrap().0;
    let begin = Instant::now();
    loop {
        let event: Value = serde_json::from_str(&get(session)).unwrap();
        if event["janus"] != "keepalive" {
            return event;
        }
        assert!(begin.elapsed() < PATIENCE, "no event");
    }
}

fn create(node: &Node) -> Value {
    post(
        node.api(),
        &json!({ "janus": "create", "transaction": "t" }),
    )
}

fn watch(node: &Node) -> String {
    response("POST", &format!("{}whep/streaming/1?pin=x", node.url()), "")
}

#[test]
fn clients_of_a_drained_node_are_told_another_one_until_that_is_undone() {
    let websocket = "websocket_url = \"ws://{name}.example.org\"\n";
    let Some(site) = Site::with(&[("a", ""), ("b", websocket)]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    let handle = attach_to(a.api(), "janus.plugin.echotest");

    // The node knows the other one a moment after their link is up.
    let begin = Instant::now();
    let event = loop {
        let drained = a.admin(&json!({ "janus": "drain", "transaction": "t", "deadline": 600 }));
        assert_eq!(drained["draining"], true, "{drained}");
        let event = next_event(&handle);
        assert_eq!(event["janus"], "drain", "{event}");
        if event["node"].is_string() {
            break event;
        }
        assert!(begin.elapsed() < PATIENCE, "no other node is named");
    };
    assert_eq!(
        (&event["draining"], &event["node"], &event["url"]),
        (&json!(true), &json!("b"), &json!(b.url()))
    );
    assert_eq!(event["websocket_url"], "ws://b.example.org");
    let left = event["deadline"].as_f64().unwrap();
    assert!((590.0..=600.0).contains(&left), "{event}");

    // New clients are sent to the other node.
    let refused = create(a);
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["node"]), (&json!(472), &json!("b")));
    assert_eq!(error["url"], b.url());
    let redirected = watch(a);
    assert!(redirected.starts_with("HTTP/1.1 307 "), "{redirected}");
    let place = format!("location: {}whep/streaming/1?pin=x\r\n", b.url());
    assert!(redirected.contains(&place), "{redirected}");
    // The cluster learns of the drain a moment later.
    let begin = Instant::now();
    let place = format!("location: {}\r\n", b.url());
    while !response("GET", &format!("{}where", a.url()), "").contains(&place) {
        assert!(begin.elapsed() < PATIENCE, "the drained node is named");
    }

    // Without a node that takes clients they may come again later.
    b.admin(&json!({ "janus": "drain", "transaction": "t" }));
    let begin = Instant::now();
    while create(a)["error"]["url"].is_string() {
        assert!(begin.elapsed() < PATIENCE, "a drained node is named");
    }
    assert!(watch(a).starts_with("HTTP/1.1 503 "));

    let undone = a.admin(&json!({ "janus": "undrain", "transaction": "t" }));
    assert_eq!(undone["draining"], false, "{undone}");
    let event = next_event(&handle);
    assert_eq!(
        (&event["janus"], &event["draining"]),
        (&json!("drain"), &json!(false))
    );
    assert_eq!(create(a)["janus"], "success");
}
