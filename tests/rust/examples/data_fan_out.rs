//! The cost of messages in a video room: one publisher, many viewers, everything in this process.
//!
//! `cargo run -p portunus-tests --example data_fan_out [VIEWERS [MESSAGES_A_SECOND [SECONDS]]]`
//! prints the CPU time of the media worker, and that of everything else: the control plane and the
//! viewers themselves, whose share does not depend on how the server relays.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "an example that cannot be set up has failed"
)]

use std::time::{Duration, Instant};

use serde_json::json;

#[path = "../tests/room/world.rs"]
mod world;

fn argument(n: usize, default: u64) -> u64 {
    let given = std::env::args().nth(n);
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// Returns the CPU time in seconds so far: of media workers, and of all other threads.
fn cpu() -> (f64, f64) {
    let (mut media, mut rest) = (0.0, 0.0);
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let Ok(stat) = std::fs::read_to_string(task.unwrap().path().join("stat")) else {
            continue;
        };
        let (name, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<f64> = fields
            .split_whitespace()
            .filter_map(|field| field.parse().ok())
            .collect();
        // Without the state, a letter, these are utime and stime, in ticks of 10 ms.
        let seconds = (fields[10] + fields[11]) / 100.0;
        match name.contains("media") {
            true => media += seconds,
            false => rest += seconds,
        }
    }
    (media, rest)
}

#[tokio::main]
async fn main() {
    let (viewers, rate, seconds) = (argument(1, 200), argument(2, 100), argument(3, 10));
    let messages = usize::try_from(rate * seconds).unwrap();
    let server = world::server(1).await;
    let mut publisher = world::publisher(&server, 1).await;
    let mut watching = Vec::new();
    for _ in 0..viewers {
        // Its consent must not expire.
        publisher.turn().await;
        let mut viewer = world::viewer(&server, json!([{ "feed": 1, "mid": "2" }])).await;
        watching.push(tokio::spawn(async move {
            let deadline = Instant::now() + Duration::from_secs(seconds + 60);
            while viewer.peer.texts("1").len() < messages && Instant::now() < deadline {
                viewer.peer.run_for(Duration::from_millis(500)).await;
            }
            viewer.peer.texts("1").len()
        }));
    }
    let before = cpu();
    let start = Instant::now();
    for n in 0..messages {
        publisher
            .peer
            .send_text("chat", &format!("message {n:>90}"));
        let due = start
            + Duration::from_secs(1) * u32::try_from(n + 1).unwrap() / u32::try_from(rate).unwrap();
        publisher.peer.run_until(|_| Instant::now() >= due).await;
    }
    let mut delivered = 0;
    for viewer in watching {
        while !viewer.is_finished() {
            publisher.turn().await;
        }
        delivered += viewer.await.unwrap();
    }
    let after = cpu();
    println!(
        "{viewers} viewers, {rate} messages a second for {seconds} s: {delivered} of {} delivered; \
         CPU: {:.2} s of the media worker, {:.2} s of all else",
        messages * usize::try_from(viewers).unwrap(),
        after.0 - before.0,
        after.1 - before.1,
    );
}
