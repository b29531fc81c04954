//! Events in a file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use portunus_core::events::EventBus;
use portunus_events::File;
use serde_json::{Value, json};

use crate::lifecycle::{Running, read, start};

async fn to(path: &Path, keys: &str) -> Running {
    start::<File>(&format!("path = \"{}\"\n{keys}", path.display())).await
}

fn lines(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    let number = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["event"]["n"].as_u64()
    };
    text.lines().filter_map(number).collect()
}

#[tokio::test]
async fn each_event_is_a_line_and_a_new_start_adds_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let first = to(&path, "").await;
    first.publish(0..150);
    first.until("sent", 150).await;
    first.bus.end().await;
    let second = to(&path, "").await;
    second.publish([150]);
    second.until("sent", 1).await;
    assert_eq!(lines(&path), Vec::from_iter(0..151));
}

#[tokio::test]
async fn a_large_file_is_moved_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let handler = to(&path, "rotate_mb = 1\nkeep = 1\nbatch_pause_ms = 0\n").await;
    let large = "x".repeat(600 << 10);
    for n in 0..3 {
        handler.publish_body(json!({ "n": n, "large": large }));
        handler.until("sent", n + 1).await;
    }
    assert_eq!(lines(&path), [2]);
    assert_eq!(lines(&folder.path().join("events.jsonl.1")), [1]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn logrotate_may_move_the_file_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let moved = folder.path().join("moved");
    let handler = to(&path, "").await;
    handler.publish([0]);
    handler.until("sent", 1).await;
    fs::rename(&path, &moved).unwrap();
    handler.publish([1]);
    handler.until("sent", 2).await;
    assert_eq!((lines(&moved), lines(&path)), (vec![0], vec![1]));
}

#[tokio::test]
async fn a_file_that_cannot_be_is_said_at_the_start() {
    let keys = "path = \"/nowhere/events.jsonl\"\n";
    let started = read::<File>(keys)
        .unwrap()
        .start(&EventBus::default())
        .await;
    let error = started.unwrap_err().to_string();
    assert!(error.contains("/nowhere/events.jsonl"), "{error}");
}

#[tokio::test]
async fn a_file_that_cannot_be_moved_away_grows_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    fs::create_dir(folder.path().join("events.jsonl.1")).unwrap();
    let handler = to(&path, "rotate_mb = 1\nkeep = 1\nbatch_pause_ms = 0\n").await;
    let large = "x".repeat(600 << 10);
    for n in 0..3 {
        handler.publish_body(json!({ "n": n, "large": large }));
        handler.until("sent", n + 1).await;
    }
    handler.until("failed", 2).await;
    assert_eq!(lines(&path), [0, 1, 2]);
    assert_eq!(handler.counter("lost"), 0);
    let told = handler.last_error();
    assert!(told.contains("cannot be moved away"), "{told}");
}

#[tokio::test]
async fn a_pipe_without_a_reader_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let handler = to(&path, "batch_pause_ms = 0\n").await;
    handler.publish([0]);
    handler.until("lost", 1).await;
    // Opened in both directions, because opening it for reading alone would wait for the handler.
    let reader = fs::File::options().read(true).write(true).open(&path);
    let mut reader = BufReader::new(reader.unwrap());
    handler.publish([1]);
    handler.until("sent", 1).await;
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["event"]["n"], 1);
}

#[tokio::test]
async fn a_reader_that_is_too_slow_for_a_pipe_finds_whole_lines_again_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let reader = fs::File::options().read(true).write(true).open(&path);
    let mut reader = BufReader::new(reader.unwrap());
    let handler = to(&path, "batch_pause_ms = 0\n").await;
    handler.publish_body(json!({ "n": 0, "large": "x".repeat(200 << 10) }));
    handler.until("lost", 1).await;
    let reading = tokio::task::spawn_blocking(move || {
        let mut lines = [String::new(), String::new()];
        for line in &mut lines {
            reader.read_line(line).unwrap();
        }
        lines
    });
    handler.publish([1]);
    handler.until("sent", 1).await;
    let [torn, whole] = reading.await.unwrap();
    assert!(serde_json::from_str::<Value>(&torn).is_err());
    let event: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(event["event"]["n"], 1);
}

/// A small file system, which is removed with the test.
struct Small(tempfile::TempDir);

impl Small {
    /// None where file systems may not be mounted.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(folder.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Small(folder))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_loses_events_and_counts_them_until_there_is_room() {
    let Some(disk) = Small::new() else {
        eprintln!("skipped: file systems may not be mounted here");
        return;
    };
    let path = disk.0.path().join("events.jsonl");
    let filling = disk.0.path().join("filling");
    let handler = to(&path, "batch_pause_ms = 0\n").await;
    handler.publish([0]);
    handler.until("sent", 1).await;
    fs::write(&filling, [0; 52 << 10]).unwrap();
    let large = "x".repeat(20 << 10);
    handler.publish_body(json!({ "n": 1, "large": large }));
    handler.until("lost", 1).await;
    assert!(
        handler.last_error().contains("No space left"),
        "{}",
        handler.last_error()
    );
    fs::remove_file(&filling).unwrap();
    handler.publish_body(json!({ "n": 2, "large": large }));
    handler.until("sent", 2).await;
    assert_eq!(lines(&path), [0, 2]);
    assert_eq!(handler.counter("failed"), 1);
    // The file has to be closed before its file system is removed.
    handler.bus.end().await;
}

#[tokio::test]
async fn its_kinds_can_be_tweaked_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let handler = to(&path, "").await;
    assert_eq!(handler.tweak(json!({ "events": false })), Err(413));
    assert_eq!(handler.tweak(json!({ "events": "media,dance" })), Ok(()));
    handler.publish([1]);
    assert_eq!(handler.tweak(json!({ "events": "all" })), Ok(()));
    handler.publish([2]);
    handler.until("sent", 1).await;
    assert_eq!(lines(&path), [2]);
}
