//! SIGTERM during calls: they continue, new clients are refused, and all clients are notified at
//! the end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod calls;
mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use calls::{Call, call_many, run_all};
use server::{PATIENCE, Process, metric, post, signal};

fn start(folder: &Path, drain_timeout: u32) -> (Process, String) {
    let more = format!("[server]\ndrain_timeout = {drain_timeout}\n");
    server::start(folder, &more)
}

fn create(api: &str) -> serde_json::Value {
    post(api, &json!({ "janus": "create", "transaction": "t" }))
}

/// Waits for the end of a process that ends by itself.
fn end(mut server: Process) -> Option<i32> {
    let begin = Instant::now();
    loop {
        if let Some(status) = server.0.try_wait().unwrap() {
            return status.code();
        }
        assert!(begin.elapsed() < PATIENCE, "the server does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_calls_go_on_until_the_deadline_and_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, api) = start(folder.path(), 5);
    let mut calls = call_many(&api, 100).await;
    run_all(&mut calls).await;
    for what in ["ice", "dtls", "first_media"] {
        let name = format!("portunus_{what}_seconds_count");
        assert_eq!(metric(&api, &name), 100, "{name}");
    }
    signal(&server, "-TERM");
    let begin = Instant::now();
    // The signal has been taken once nobody new is.
    while create(&api)["error"]["code"] != 472 {
        assert!(begin.elapsed() < PATIENCE, "new sessions are taken");
    }
    // A round of media needs far less than the deadline.
    run_all(&mut calls).await;
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "too slow a machine"
    );
    let told: Vec<_> = calls.iter().map(Call::last_events).collect();
    for events in told {
        assert_eq!(events.await.unwrap(), ["hangup", "detached", "timeout"]);
    }
    assert!(begin.elapsed() >= Duration::from_secs(5));
    assert_eq!(end(server), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_calls_at_once_and_so_does_the_interrupt_of_a_terminal() {
    for signals in [&["-TERM", "-TERM"][..], &["-TERM", "-INT"], &["-INT"]] {
        let folder = tempfile::tempdir().unwrap();
        let (server, api) = start(folder.path(), 600);
        let calls = call_many(&api, 1).await;
        let told = calls[0].last_events();
        for (place, name) in signals.iter().enumerate() {
            signal(&server, name);
            let is_last = place + 1 == signals.len();
            while !is_last && create(&api)["error"]["code"] != 472 {}
        }
        assert_eq!(told.await.unwrap(), ["hangup", "detached", "timeout"]);
        assert_eq!(end(server), Some(0), "{signals:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_last_call_ends_does_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let (server, api) = start(folder.path(), 600);
    let calls = call_many(&api, 1).await;
    signal(&server, "-TERM");
    while create(&api)["error"]["code"] != 472 {}
    calls[0].hang_up();
    assert_eq!(end(server), Some(0));
}
