//! Workers of the kernel's real-time class.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use portunus_media::{MediaConfig, MediaPlane};

/// The position of the scheduling class in /proc's `stat`, counted after the name.
const POLICY: usize = 38;
const ORDINARY: &str = "0";
const FIFO: &str = "1";

/// The scheduling class of the worker's thread, or `None` before it runs.
fn policy() -> Option<String> {
    fs::read_dir("/proc/self/task").unwrap().find_map(|task| {
        let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (name, rest) = stat.rsplit_once(')')?;
        let policy = rest.split_whitespace().nth(POLICY)?;
        name.contains("(media").then(|| policy.to_owned())
    })
}

fn is_within_time(condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > Duration::from_secs(20) {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

fn start(real_time: bool) -> MediaPlane {
    let config = MediaConfig {
        workers: 1,
        pin: false,
        port: 0,
        real_time,
        ..MediaConfig::default()
    };
    MediaPlane::start(config).unwrap().0
}

#[test]
fn a_worker_is_of_the_real_time_class_only_where_that_is_wished_and_allowed() {
    let media = start(false);
    assert!(is_within_time(|| policy().as_deref() == Some(ORDINARY)));
    media.shutdown();
    assert!(is_within_time(|| policy().is_none()));

    let allowed = std::thread::spawn(|| portunus_udp::run_first(1).is_ok());
    let expected = match allowed.join().unwrap() {
        true => FIFO,
        false => ORDINARY,
    };
    let media = start(true);
    assert!(is_within_time(|| policy().as_deref() == Some(expected)));
    media.shutdown();
}
