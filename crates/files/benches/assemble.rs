//! The cost of a packet in the assembly of a file.
#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use portunus_files::Codec;
use portunus_files::assembly::{
    Arrived, Assembler, Coded, Plan, PlannedTrack, Report, Step, StreamKey,
};
use portunus_rtp::SeqNo;
use portunus_rtp::packetize::{Packetizer, PayloadFormat};

/// A packet of a call: its track and its payload.
struct Packet {
    track: usize,
    at: Duration,
    seq: u64,
    timestamp: u32,
    marker: bool,
    payload: Vec<u8>,
}

/// A minute of VP8 at 1 Mbit/s with 30 frames per second, and 50 packets of Opus per second.
fn call() -> Vec<Packet> {
    let mut packets = Vec::new();
    let mut packetizer = Packetizer::new(PayloadFormat::Vp8);
    let mut seq = 0;
    for n in 0..1_800_u64 {
        let mut frame = vec![7; 4_000];
        let keyframe = n.is_multiple_of(300);
        let head = [u8::from(!keyframe), 0, 0, 0x9d, 1, 0x2a, 0x80, 2, 0xe0, 1];
        frame.splice(..head.len(), head);
        let at = Duration::from_nanos(n * 33_333_333);
        let _ = packetizer.packetize(&frame, keyframe, |payload, marker| {
            packets.push(Packet {
                track: 1,
                at,
                seq,
                timestamp: n as u32 * 3_000,
                marker,
                payload: payload.to_vec(),
            });
            seq += 1;
        });
    }
    packets.extend((0..3_000_u64).map(|n| Packet {
        track: 0,
        at: Duration::from_millis(n * 20),
        seq: n,
        timestamp: n as u32 * 960,
        marker: false,
        payload: vec![0xfc; 80],
    }));
    packets.sort_by_key(|packet| packet.at);
    packets
}

/// Assembles the file, and returns the number of packets.
fn assemble(packets: &[Packet], lost_each: usize) -> u64 {
    let planned = |codec| PlannedTrack {
        codec,
        fmtp: None,
        open: true,
    };
    let mut assembler = Assembler::new(Plan {
        tracks: vec![planned(Codec::Opus), planned(Codec::Vp8)],
        ..Plan::default()
    });
    let mut pushed = 0;
    for (n, packet) in packets.iter().enumerate() {
        if n.is_multiple_of(1_000) {
            let ntp = (packet.at.as_nanos() << 32) / 1_000_000_000;
            assembler.report(
                packet.track,
                &Report {
                    at: packet.at,
                    stream: StreamKey(0),
                    ntp: ntp as u64,
                    timestamp: packet.timestamp,
                    rtt: None,
                },
            );
        }
        // Audio packets: a lost picture would end everything up to the next keyframe.
        if lost_each > 0 && packet.track == 0 && n.is_multiple_of(lost_each) {
            continue;
        }
        pushed += 1;
        let arrived = Arrived {
            at: packet.at,
            stream: StreamKey(0),
            seq: SeqNo(packet.seq),
            timestamp: packet.timestamp,
            marker: packet.marker,
            encoding: 0,
            codec: Coded::Codec(if packet.track == 0 {
                Codec::Opus
            } else {
                Codec::Vp8
            }),
            payload: &packet.payload,
            level: None,
            rotation: None,
            capture: None,
        };
        assembler.push(packet.track, &arrived);
        while let Some(step) = assembler.step() {
            if let Step::Frame(frame) = step {
                black_box(frame.data);
            }
        }
    }
    pushed
}

fn benches(criterion: &mut Criterion) {
    let packets = call();
    let mut group = criterion.benchmark_group("a packet of a call of 1 Mbit/s");
    for (name, lost_each) in [("in order", 0), ("one of fifty of sound lost", 50)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let (mut spent, mut done) = (Duration::ZERO, 0);
                while done < rounds {
                    let begun = Instant::now();
                    done += black_box(assemble(&packets, lost_each));
                    spent += begun.elapsed();
                }
                spent.mul_f64(rounds as f64 / done as f64)
            });
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
