//! Clocks that jump by an hour while nodes of a cluster run: processes, a real nats-server, and clients
//! with real media. Skipped with a message where no nats-server of 2.11 or newer or no C compiler is
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
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use nodes::guests::Guest;
use nodes::{Node, Site, home_of, links_up};
use serde_json::{Value, json};
use server::{PATIENCE, response};

const ROOM: u64 = 1234;

/// A node's entry on the bus expires after 15 s, so all is renewed once with the other clock.
const JUMPED: Duration = Duration::from_secs(17);

/// Compiles the library of clocks that jump. Returns `None` with a message without a compiler.
fn clock_library(folder: &Path) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nodes/clock.c");
    let library = folder.join("clock.so");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .arg(&library)
        .arg(source)
        .status();
    match compiled {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            println!("skipped: there is no C compiler: {error}");
            return None;
        }
    }
    Some(library)
}

/// Lets a node have such a clock, once it is started. Its monotonic clock stays.
fn fake(node: &mut Node, library: &Path) {
    set(node, 0);
    node.environment = vec![
        ("LD_PRELOAD", library.to_owned()),
        ("CLOCK_OFFSET", node.config.with_file_name("clock")),
    ];
}

/// Sets by how many hours the clock of a node is ahead.
fn set(node: &Node, hours: i64) {
    let path = node.config.with_file_name("clock");
    let mut options = fs::File::options();
    // The server has it mapped, so it is not made anew.
    let file = options.write(true).create(true).truncate(false).open(path);
    file.unwrap()
        .write_all(&(hours * 3_600).to_ne_bytes())
        .unwrap();
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

/// Lets a node's clock jump to so many hours from the right time. The date in answers never goes back,
/// so only a clock that is ahead can be seen.
fn jump(node: &Node, to: i64) {
    set(node, to);
    let begin = Instant::now();
    while to > 0 && hours(node) != to {
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
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = clock_library(folder.path()) else {
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
    let late = site.nodes.last().unwrap();
    set(late, -1);
    site.invite(&site.nodes[3]);
    site.nodes[3].start();
    site.until_linked();
    assert_eq!(hours(&site.nodes[3]), -1);
}
