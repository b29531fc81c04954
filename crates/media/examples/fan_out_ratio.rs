//! The cost of relaying compared with sealing alone, in one run: `cargo run --release -p
//! portunus-media --features testing --example fan_out_ratio -- 400`.
//!
//! One source to 400 sinks, or as many as the argument says, with 7 packets of 1,200 bytes a frame
//! and without system calls. Rounds of both kinds alternate, and the best of each counts, as it is
//! the least disturbed.
#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "a benchmark that cannot be set up has failed"
)]

use std::time::{Duration, Instant};

use portunus_media::testing::FanOut;
use portunus_rtp::SeqNo;
use portunus_srtp::{Profile, Sealer};

const PACKETS: usize = 7;
const BYTES: usize = 1_200;
/// A fixed header, and the extensions that sinks write.
const HEADER: usize = 32;
/// The number of rounds of each kind, with 400 sinks.
const ROUNDS: usize = 600;
const DEFAULT_SINKS: usize = 400;

fn main() {
    let sinks = std::env::args().nth(1).and_then(|sinks| sinks.parse().ok());
    let sinks = sinks.unwrap_or(DEFAULT_SINKS).clamp(1, 40_000);
    let rounds = (ROUNDS * DEFAULT_SINKS / sinks).clamp(10, ROUNDS);
    let sealer =
        |n: usize| Sealer::new(Profile::AeadAes128Gcm, &[n as u8; 16], &[1; 12]).expect("a sealer");
    let sealers: Vec<Sealer> = (0..sinks).map(sealer).collect();
    let mut arena = vec![0u8; FanOut::ARENA_BYTES];
    let mut rig = FanOut::new(sinks);
    for _ in 0..100 {
        let mut frame = rig.frame(PACKETS, BYTES);
        rig.relay(&mut frame);
    }
    let (mut seals, mut relays) = (Vec::new(), Vec::new());
    for round in 1..=rounds as u64 {
        let start = Instant::now();
        seal_all(&sealers, &mut arena, round);
        seals.push(start.elapsed());
        let mut frame = rig.frame(PACKETS, BYTES);
        let start = Instant::now();
        rig.relay(&mut frame);
        relays.push(start.elapsed());
    }
    let each = |durations: &mut Vec<Duration>, at: usize| {
        durations.sort_unstable();
        let duration = durations.get(at).copied().unwrap_or_default();
        duration.as_nanos() as f64 / (sinks * PACKETS) as f64
    };
    for (name, at) in [("best", 0), ("median", rounds / 2)] {
        let (seal, relay) = (each(&mut seals, at), each(&mut relays, at));
        println!(
            "{name}: seal {seal:.0} ns, relay {relay:.0} ns a packet and sink: {:.2}x",
            relay / seal
        );
    }
}

fn seal_all(sealers: &[Sealer], arena: &mut [u8], round: u64) {
    let mut at = 0;
    for sealer in sealers {
        for packet in 0..PACKETS as u64 {
            if at + 2_048 > arena.len() {
                at = 0;
            }
            let room = arena.get_mut(at..).expect("room");
            let seq = SeqNo(round * PACKETS as u64 + packet);
            at += sealer
                .seal_rtp(seq, HEADER, HEADER + BYTES, room)
                .expect("room");
        }
    }
}
