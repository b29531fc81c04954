//! How many joins a second a node answers that is not the home of the rooms. It is a measurement, so it
//! runs only if it is asked for:
//! `cargo test --release -p portunus --test cluster_join_rate -- --ignored --nocapture`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use nodes::Site;
use serde_json::{Value, json};
use server::{ask, attach_to, post};

const PACKAGE: &str = "janus.plugin.videoroom";
const ROOMS: usize = 100;
const JOINS: usize = 4_000;
/// The clients that wait for answers at the same time.
const CLIENTS: usize = 32;

/// Lets clients do something with each number below `count`. Returns how many did in a second.
fn rate(count: usize, work: impl Fn(usize) + Sync) -> f64 {
    let (next, begin) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    work(number);
                }
            });
        }
    });
    count as f64 / begin.elapsed().as_secs_f64()
}

/// Joins as many participants as there are handles, each in one of the rooms.
fn joins(handles: &[String], first_room: usize) -> f64 {
    rate(handles.len(), |number| {
        let body = json!({
            "request": "join", "ptype": "publisher", "room": first_room + number % ROOMS,
        });
        let message = json!({ "janus": "message", "transaction": "m", "body": body });
        let reply = post(&handles[number], &message);
        assert_eq!(reply["janus"], "ack", "{reply}");
    })
}

fn participants(handle: &str, first_room: usize) -> usize {
    let count = |room: usize| {
        let listed = ask(
            handle,
            json!({ "request": "listparticipants", "room": first_room + room }),
        );
        listed["participants"].as_array().map_or(0, Vec::len)
    };
    (0..ROOMS).map(count).sum()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is a measurement"]
async fn joins_a_second_at_the_home_and_at_another_node() {
    let limits = "\n[server]\nrequest_rate = 0\n[videoroom]\nmax_per_client = 1000\n";
    let Some(site) = Site::with(&[("a", limits), ("b", limits)]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let attach = |api: &str| {
        let handles: Vec<_> = (0..JOINS).map(|_| std::sync::Mutex::default()).collect();
        rate(JOINS, |number| {
            *handles[number].lock().unwrap() = attach_to(api, PACKAGE);
        });
        let handles = handles.into_iter().map(|it| it.into_inner().unwrap());
        handles.collect::<Vec<String>>()
    };
    let maker = attach_to(a, PACKAGE);
    let make = |first: usize| {
        for room in first..first + ROOMS {
            let made: Value = ask(&maker, json!({ "request": "create", "room": room }));
            assert_eq!(made["videoroom"], "created", "{made}");
        }
    };
    for (name, api, first) in [("the home", a, 10_000), ("the other node", b, 20_000)] {
        make(first);
        let handles = attach(api);
        let rate = joins(&handles, first);
        println!("{rate:.0} joins a second at {name}, {ROOMS} rooms, {CLIENTS} clients at a time");
        let begin = Instant::now();
        while participants(&maker, first) < JOINS {
            assert!(begin.elapsed() < server::PATIENCE);
        }
        println!("all are listed at the home {:?} later", begin.elapsed());
    }
}
