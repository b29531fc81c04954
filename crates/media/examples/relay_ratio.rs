//! The cost of a source that crosses to another node compared with that of one more viewer, in one
//! run: `cargo run --release -p portunus-media --features testing --example relay_ratio -- 400`.
//!
//! One source to 400 viewers, and one source to another node 400 times, or as many as the argument
//! says, with 7 packets of 1,200 bytes a frame and without system calls. Rounds of both kinds
//! alternate, and the best of each counts, as it is the least disturbed.
#![allow(missing_docs, clippy::indexing_slicing, reason = "a benchmark")]

use std::time::{Duration, Instant};

use portunus_media::testing::FanOut;

const PACKETS: usize = 7;
const BYTES: usize = 1_200;
/// The number of rounds of each kind, with 400 sinks.
const ROUNDS: usize = 600;
const DEFAULT_SINKS: usize = 400;

fn main() {
    let sinks = std::env::args().nth(1).and_then(|sinks| sinks.parse().ok());
    let sinks = sinks.unwrap_or(DEFAULT_SINKS).clamp(1, 40_000);
    let rounds = (ROUNDS * DEFAULT_SINKS / sinks).clamp(10, ROUNDS);
    let mut viewers = FanOut::new(sinks);
    let mut nodes = FanOut::new(0);
    nodes.relay_to_node(sinks);
    let rigs = [&mut viewers, &mut nodes];
    let mut times = [Vec::new(), Vec::new()];
    let round = |rigs: &mut [&mut FanOut; 2], times: &mut [Vec<Duration>; 2]| {
        for (rig, times) in rigs.iter_mut().zip(times) {
            let mut frame = rig.frame(PACKETS, BYTES);
            let start = Instant::now();
            rig.relay(&mut frame);
            times.push(start.elapsed());
        }
    };
    let mut rigs = rigs;
    for _ in 0..100 {
        round(&mut rigs, &mut times);
    }
    times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        round(&mut rigs, &mut times);
    }
    let sent = (100 + rounds) * sinks * PACKETS;
    println!("{} of {sent} packets crossed", rigs[1].sent_to_nodes());
    for times in &mut times {
        times.sort_unstable();
    }
    let each = |times: &[Duration], at: usize| {
        let time = times.get(at).copied().unwrap_or_default();
        time.as_nanos() as f64 / (sinks * PACKETS) as f64
    };
    let [viewers, nodes] = &times;
    for (name, at) in [("best", 0), ("median", rounds / 2)] {
        let (viewer, node) = (each(viewers, at), each(nodes, at));
        let ratio = node / viewer;
        println!("{name}: viewer {viewer:.0} ns, node {node:.0} ns a packet: {ratio:.2}x");
    }
}
