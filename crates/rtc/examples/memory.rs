//! The memory of an idle connected transport: makes 1,000 connected pairs and divides the growth of
//! the process by their number. Linux only.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a tool for developers"
)]

use std::time::Duration;

use portunus_rtc::data::DataConfig;
use portunus_rtc::testing::{Link, Pair};

const PAIRS: usize = 1_000;

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("VmRSS");
    let kib: usize = line
        .split_whitespace()
        .nth(1)
        .expect("a value")
        .parse()
        .expect("a number");
    kib * 1024
}

fn measure(what: &str, data: bool) -> impl Sized {
    let connected = |seed| {
        let mut pair = Pair::new(seed, Link::GOOD);
        if data {
            let config = DataConfig {
                remote_port: 5_000,
                max_message_size: 262_144,
            };
            pair.left.transport.negotiate_data(config, pair.now);
            pair.right.transport.negotiate_data(config, pair.now);
        }
        assert!(pair.connect());
        pair.run(Duration::from_secs(60));
        [pair.left.transport, pair.right.transport]
    };
    // Warms up one-time allocations and the pages that the allocator keeps, so that they do not
    // count.
    let warm: Vec<_> = (0..20).map(connected).collect();
    let before = resident();
    let transports: Vec<_> = (0..PAIRS as u64).map(connected).collect();
    let each = (resident() - before) / (2 * transports.len());
    println!("{what}: {:.1} KiB for each transport", each as f64 / 1024.0);
    (warm, transports)
}

fn main() {
    println!(
        "the struct itself: {} bytes",
        size_of::<portunus_rtc::Transport>()
    );
    // Kept alive, so that the second measurement does not reuse the memory of the first.
    let _first = measure("idle, no data channels", false);
    let _second = measure("idle, with an SCTP association", true);
}
