//! The memory of one idle connected viewer: `cargo run --release -p portunus-media --features
//! testing --example idle`.
//!
//! Viewers connect to a worker (ICE, DTLS, SRTP; their clients are dropped), and the growth of the
//! resident set is divided by their number.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up has failed"
)]

use portunus_media::testing::FanOut;

fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("VmRSS");
    let words: Vec<&str> = line.split_whitespace().collect();
    words[1].parse().expect("a number")
}

fn main() {
    // The first viewers load what is shared: libraries, tables, arenas.
    let _warm = FanOut::new(50);
    let before = resident_kib();
    let viewers = 2_000;
    let _rig = FanOut::new(viewers);
    let each = (resident_kib() - before) / viewers as f64;
    println!(
        "{viewers} idle viewers: {each:.1} KiB resident each (the rig's own buffers included)"
    );
}
