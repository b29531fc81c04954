//! A worker with busy polling stays awake while packets arrive, and sleeps after that.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use portunus_media::{MediaConfig, MediaPlane};

/// The number of datagrams, and the time between two.
const DATAGRAMS: usize = 200;
const PERIOD: Duration = Duration::from_millis(2);

/// The kernel's statistics of the worker's thread.
fn status(key: &str) -> Option<String> {
    fs::read_dir("/proc/self/task").unwrap().find_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.map(|value| value.trim().to_owned())
        };
        value("Name:").filter(|name| name.starts_with("media"))?;
        value(key)
    })
}

fn wait_until_asleep() {
    let start = Instant::now();
    while !status("State:").is_some_and(|state| state.starts_with('S')) {
        assert!(start.elapsed() < Duration::from_secs(20), "never asleep");
        sleep(Duration::from_millis(5));
    }
}

/// How often the worker falls asleep while it gets datagrams.
fn sleeps(busy_poll_us: u32) -> u64 {
    let config = MediaConfig {
        workers: 1,
        pin: false,
        port: 0,
        busy_poll_us,
        ..MediaConfig::default()
    };
    let (media, _events) = MediaPlane::start(config).unwrap();
    let port = media.sockets().next().unwrap().port();
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    wait_until_asleep();
    let count = || -> u64 {
        let count = status("voluntary_ctxt_switches:");
        count.unwrap().parse().unwrap()
    };
    let before = count();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..DATAGRAMS {
        socket.send_to(b"nobody's", to).unwrap();
        sleep(PERIOD);
    }
    let sleeps = count() - before;
    wait_until_asleep();
    media.shutdown();
    let start = Instant::now();
    while status("State:").is_some() {
        assert!(start.elapsed() < Duration::from_secs(20), "still there");
        sleep(Duration::from_millis(5));
    }
    sleeps
}

#[test]
fn a_worker_stays_awake_between_packets_and_sleeps_after_them() {
    let usual = sleeps(0);
    assert!(usual > DATAGRAMS as u64 / 2, "{usual}");
    // A delay of the machine longer than that costs one sleep.
    let awake = sleeps(100_000);
    assert!(awake < DATAGRAMS as u64 / 10, "{awake}");
}
