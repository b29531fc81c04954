//! One source to 400 sinks without system calls, compared with sealing alone.
//!
//! A frame is 7 packets of 1,200 bytes payload; both sides seal 2,800 packets.
#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "a benchmark that cannot be set up has failed"
)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use portunus_media::testing::FanOut;
use portunus_rtp::SeqNo;
use portunus_srtp::{Profile, Sealer};

const SINKS: usize = 400;
const PACKETS: usize = 7;
const BYTES: usize = 1_200;
/// A fixed header, and the extensions that sinks write.
const HEADER: usize = 32;

fn fan_out(c: &mut Criterion) {
    let mut group = c.benchmark_group("fan_out_400");
    group.throughput(Throughput::Elements((SINKS * PACKETS) as u64));

    let sealers: Vec<Sealer> = (0..SINKS)
        .map(|n| {
            let key = [n as u8; 16];
            Sealer::new(Profile::AeadAes128Gcm, &key, &[1; 12]).expect("a sealer")
        })
        .collect();
    // As large as the worker's arena, and used in the same way.
    let mut arena = vec![0u8; FanOut::ARENA_BYTES];
    let mut index = 0u64;
    group.bench_function("seals_alone", |b| {
        b.iter(|| {
            index += 1;
            let mut at = 0;
            for sealer in &sealers {
                for packet in 0..PACKETS as u64 {
                    if at + 2_048 > arena.len() {
                        at = 0;
                    }
                    let room = arena.get_mut(at..).expect("room");
                    let seq = SeqNo(index * PACKETS as u64 + packet);
                    at += sealer
                        .seal_rtp(seq, HEADER, HEADER + BYTES, room)
                        .expect("room");
                }
            }
        });
    });

    let mut rig = FanOut::new(SINKS);
    for _ in 0..100 {
        let mut frame = rig.frame(PACKETS, BYTES);
        rig.relay(&mut frame);
    }
    let before = rig.sent();
    let mut frame = rig.frame(PACKETS, BYTES);
    rig.relay(&mut frame);
    assert_eq!(
        rig.sent() - before,
        (SINKS * PACKETS) as u64,
        "every sink gets every packet"
    );
    let rig = std::cell::RefCell::new(rig);
    group.bench_function("relay", |b| {
        b.iter_batched_ref(
            || rig.borrow_mut().frame(PACKETS, BYTES),
            |frame| rig.borrow_mut().relay(frame),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, fan_out);
criterion_main!(benches);
