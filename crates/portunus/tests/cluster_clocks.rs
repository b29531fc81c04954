//! Clocks that jump by an hour while nodes of a cluster run: processes, a real nats-server, and clients
//! with real media. Skipped with a message where no nats-server of 2.11 or newer or no libfaketime is
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

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nodes::guests::Guest;
use nodes::{Node, Site, home_of, links_up};
use serde_json::{Value, json};
use server::{PATIENCE, response};

const ROOM: u64 = 1234;

/// A node's entry on the bus expires after 15 s, so all is renewed once with the other clock.
const JUMPED: Duration = Duration::from_secs(17);

fn libfaketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut paths = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        println!("skipped: there is no libfaketime (scripts/setup cluster)");
    }
    found
}

/// Has a node read its clock from a file, once it is started. The monotonic clock stays.
fn fake(node: &mut Node, library: &Path) {
    let clock = node.config.with_file_name("clock");
    fs::write(&clock, "+0\n").unwrap();
    node.environment = vec![
        ("LD_PRELOAD", library.to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", clock),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ("FAKETIME_CACHE_DURATION", "1".into()),
        ("FAKETIME_DISABLE_SHM", "1".into()),
    ];
}

/// Returns by how many hours a node's clock differs from this one.
fn hours(node: &Node) -> i64 {
    let answer = response("GET", &format!("{}livez", node.url()), "");
    let date = answer.lines().find_map(|line| line.strip_prefix("date: "));
    let date = httpdate::parse_http_date(date.expect("a date").trim()).unwrap();
    let seconds = match date.duration_since(SystemTime::now()) {
        Ok(ahead) => i64::try_from(ahead.as_secs()).unwrap(),
        Err(behind) => -i64::try_from(behind.duration().as_secs()).unwrap(),
    };
    (seconds + if seconds < 0 { -1_800 } else { 1_800 }) / 3_600
}

/// Lets a node's clock jump to so many hours from the right time.
fn jump(node: &Node, to: i64) {
    let clock = node.config.with_file_name("clock");
    fs::write(clock, format!("{to:+}h\n")).unwrap();
    let begin = Instant::now();
    while hours(node) != to {
        assert!(
            begin.elapsed() < PATIENCE,
            "{}: {} h",
            node.name,
            hours(node)
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_jump_by_an_hour_and_nobody_notices() {
    let Some(library) = libfaketime() else {
        return;
    };
    let names = ["a", "b", "c", "d"];
    let Some(mut site) = Site::prepared(&names, |node| fake(node, &library)) else {
        return;
    };
    // Node d has not joined yet.
    let late = site.nodes.pop().unwrap();
    let [a, b, c] = [0, 1, 2].map(|index| site.nodes[index].api().to_owned());
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    let (mut bob, _) = Guest::listener(&b, ROOM, 22).await;
    let mut viewer = Guest::viewer_soon(&b, ROOM, 11).await;
    viewer.watch(&mut ada, 0).await;
    let home = |node: &Node| home_of(&node.status(), "1234").cloned().unwrap_or_default();
    site.nodes[2].until("a home", |status| home_of(status, "1234").is_some());
    let before = home(&site.nodes[2])["revision"].clone();
    bob.untold();
    viewer.peer.packets.clear();
    let mut mark = 1;
    for (round, clocks, length) in [
        (0, [1, -1, 0], JUMPED),
        (1, [-1, 1, 1], Duration::from_secs(3)),
        (2, [0, 0, -1], Duration::from_secs(3)),
    ] {
        for (node, clock) in site.nodes.iter().zip(clocks) {
            jump(node, clock);
        }
        let begin = Instant::now();
        while begin.elapsed() < length {
            mark = viewer
                .flow(&mut ada, mark, Duration::from_millis(300))
                .await;
        }
        for node in &site.nodes {
            let status = node.status();
            assert_eq!(links_up(&status), 2, "{status:#}");
            assert_eq!(status["confirmed"], true, "{status:#}");
            assert_eq!(status["disagreements"], json!([]), "{status:#}");
        }
        let (_cleo, joined) = Guest::listener(&c, ROOM, 33 + round).await;
        assert_eq!(joined["publishers"][0]["id"], 11, "{joined}");
        assert_eq!(home(&site.nodes[2])["revision"], before);
    }
    viewer.peer.run_for(Duration::from_millis(300)).await;
    let marks = viewer.marks();
    let first = marks
        .iter()
        .position(|mark| *mark == 1)
        .expect("the first picture");
    let broken = marks[first..]
        .windows(2)
        .find(|pair| pair[1] != (pair[0] + 1) % 250);
    assert_eq!(broken, None, "{marks:?}");
    let told = bob.untold();
    let left = |data: &&Value| data.get("leaving").is_some();
    assert_eq!(told.iter().find(left), None);

    // A certificate is valid from a day before its issue on: a node whose clock is two hours behind
    // joins, and its links come up.
    jump(&site.nodes[0], 1);
    site.nodes.push(late);
    let late = site.nodes.last_mut().unwrap();
    fs::write(late.config.with_file_name("clock"), "-1h\n").unwrap();
    site.invite(&site.nodes[3]);
    site.nodes[3].start();
    site.until_linked();
    assert_eq!(hours(&site.nodes[3]), -1);
}
