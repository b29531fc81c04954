//! Users of the video call at different nodes call each other: processes, a real nats-server, and
//! clients with real media. Skipped with a message where no nats-server of 2.11 or newer is
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

use nodes::Site;
use nodes::callers::Caller;
use serde_json::json;
use server::PATIENCE;

/// Waits until a user sees exactly these names.
fn until_listed(caller: &mut Caller, names: &[&str]) {
    let begin = Instant::now();
    loop {
        let listed = caller.list();
        if listed == names {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{listed:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_at_two_nodes_call_each_other() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let mut ada = Caller::registered(a, "ada");
    let mut bob = Caller::registered(b, "bob");
    until_listed(&mut ada, &["ada", "bob"]);
    until_listed(&mut bob, &["ada", "bob"]);
    // A name is there once.
    let mut eve = Caller::new(b);
    assert_eq!(eve.register("ada")["error_code"], 476);
    assert_eq!(eve.register("bob")["error_code"], 476);
    assert_eq!(eve.register("eve")["result"]["event"], "registered");
    until_listed(&mut ada, &["ada", "bob", "eve"]);
    let nobody = ada.call("cy").await;
    assert_eq!(nobody["error_code"], 478, "{nobody}");

    let begin = Instant::now();
    let calling = ada.call("bob").await;
    assert_eq!(calling["result"]["event"], "calling", "{calling}");
    bob.accept("ada").await;
    ada.accepted().await;
    bob.watch(&mut ada, 1).await;
    ada.watch(&mut bob, 2).await;
    println!(
        "a call between nodes has pictures on both sides after {:?}",
        begin.elapsed()
    );
    bob.read(&mut ada, "from ada").await;
    ada.read(&mut bob, "from bob").await;
    // Who has a call is busy for all nodes.
    let busy = eve.call("ada").await;
    assert_eq!(busy["result"]["reason"], "User busy", "{busy}");

    // A muted side sends nothing.
    let set = ada.ask(json!({ "request": "set", "video": false }), None);
    assert_eq!(set["result"]["event"], "set", "{set}");
    let set = ada.ask(json!({ "request": "set", "video": true }), None);
    assert_eq!(set["result"]["event"], "set", "{set}");
    bob.watch(&mut ada, 3).await;

    let ended = bob.ask(json!({ "request": "hangup", "reason": "bye" }), None);
    assert_eq!(ended["result"]["event"], "hangup", "{ended}");
    let hangup = ada.until("hangup");
    assert_eq!(hangup["plugindata"]["data"]["result"]["reason"], "bye");
    // A call can be declined, and the other way round.
    let calling = bob.call_again("ada").await;
    assert_eq!(calling["result"]["event"], "calling", "{calling}");
    ada.until("incomingcall");
    ada.ask(json!({ "request": "hangup" }), None);
    bob.until("hangup");
    // Who is gone is free, and its name too.
    server::post(
        &eve.handle,
        &json!({ "janus": "detach", "transaction": "d" }),
    );
    until_listed(&mut ada, &["ada", "bob"]);
    let mut eve = Caller::new(a);
    let begin = Instant::now();
    while eve.register("eve")["result"]["event"] != "registered" {
        assert!(begin.elapsed() < PATIENCE, "the name stays taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_when_the_node_of_a_side_dies() {
    let Some(mut site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api().to_owned());
    let mut ada = Caller::registered(&a, "ada");
    let mut bob = Caller::registered(&b, "bob");
    until_listed(&mut ada, &["ada", "bob"]);
    let calling = bob.call("ada").await;
    assert_eq!(calling["result"]["event"], "calling", "{calling}");
    ada.accept("bob").await;
    bob.accepted().await;
    ada.watch(&mut bob, 1).await;
    let begin = Instant::now();
    site.nodes[1].running = None;
    ada.until("hangup");
    let took = begin.elapsed();
    println!("a call with a dead node has ended after {took:?}");
    assert!(took < Duration::from_secs(10));
    until_listed(&mut ada, &["ada"]);
    // The name is free once the bus has forgotten the node.
    let mut bob = Caller::new(&a);
    while bob.register("bob")["result"]["event"] != "registered" {
        assert!(begin.elapsed() < PATIENCE, "the name stays taken");
        std::thread::sleep(Duration::from_millis(200));
    }
    let took = begin.elapsed();
    println!("its name is free after {took:?}");
    assert!(took < Duration::from_secs(30));
}
