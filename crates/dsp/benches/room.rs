//! The cost of a room's tick: 20 ms of audio.
#![allow(clippy::expect_used, missing_docs, reason = "a test fails by a panic")]

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use portunus_dsp::{
    AnnouncementId, AnnouncementState, Content, Encoding, FRAME, IncomingPacket, MixId, Output,
    ParticipantId, ParticipantOptions, Room, RoomOptions, level,
};
use rig::{ENCODING, MONO_16, caller, noise, participant, speech};

/// The number of frames that senders repeat.
const LOOP: u64 = 500;

/// Receives everything, and keeps nothing.
#[derive(Default)]
struct Nowhere {
    packets: u64,
}

impl Output for Nowhere {
    fn opened(&mut self, _: MixId, _: Encoding) {}
    fn closed(&mut self, _: MixId) {}
    fn hears(&mut self, _: ParticipantId, _: Option<MixId>) {}
    fn packet(&mut self, _: MixId, _: u32, _: bool, _: &[u8]) {
        self.packets += 1;
    }
    fn talking(&mut self, _: ParticipantId, _: bool) {}
    fn sound(&mut self, _: Option<usize>, _: &[f32]) {}
    fn announcement(&mut self, _: AnnouncementId, _: AnnouncementState) {}
}

/// The encoded packets with their levels that all senders send.
struct Track(Vec<(Vec<u8>, u8)>);

impl Track {
    fn new(sound: impl Fn(u64) -> Vec<f32>) -> Self {
        let mut encoder = caller(MONO_16, 32_000);
        Track(
            (0..LOOP)
                .map(|frame| {
                    let sound = sound(frame);
                    let mut packet = vec![0; 1_276];
                    let length = encoder
                        .encode_float_to_slice(&sound, &mut packet)
                        .expect("a packet");
                    packet.truncate(length);
                    (packet, level::level(&sound))
                })
                .collect(),
        )
    }
}

/// A room in which some talk, some have open or silent microphones, and the rest listens.
struct Load {
    room: Room,
    talkers: u64,
    senders: u64,
    frame: u64,
    now: Instant,
}

impl Load {
    fn new(participants: u64, talkers: u64, senders: u64, loudest: usize) -> Self {
        let mut room = Room::new(RoomOptions {
            format: MONO_16,
            loudest,
            groups: 0,
        });
        for id in 0..participants {
            let options = ParticipantOptions {
                encoding: Encoding {
                    bitrate: None,
                    ..ENCODING
                },
                ..participant()
            };
            room.join(ParticipantId(id), options).expect("a place");
            room.connect(ParticipantId(id), true);
        }
        Load {
            room,
            talkers,
            senders,
            frame: 0,
            now: Instant::now(),
        }
    }

    fn tick(&mut self, speech: &Track, others: &Track, out: &mut Nowhere) {
        for id in 0..self.senders {
            let at = (self.frame + id * 37) % LOOP;
            let track = if id < self.talkers { speech } else { others };
            let Some((payload, level)) = track.0.get(at as usize) else {
                continue;
            };
            self.room.push(
                ParticipantId(id),
                &IncomingPacket {
                    seq: self.frame,
                    timestamp: self.frame as u32 * 960,
                    payload,
                    content: Content::Codec,
                    level: Some(*level),
                    arrival: self.now,
                },
            );
        }
        self.frame += 1;
        self.now += FRAME;
        self.room.tick(self.now, out);
    }
}

fn rooms(criterion: &mut Criterion) {
    let speech = Track::new(|frame| speech(MONO_16, 1, 0.7, frame));
    let silence = Track::new(|_| vec![0.0; 320]);
    let open = Track::new(|frame| noise(MONO_16, 62.0, frame));
    let mut out = Nowhere::default();
    let mut group = criterion.benchmark_group("room");
    group.sample_size(50);
    for (name, rooms, participants, talkers, (senders, others), loudest) in [
        (
            "200, 3 talk, 197 send silence",
            1,
            200,
            3,
            (200, &silence),
            8,
        ),
        ("200, 3 talk, 197 open", 1, 200, 3, (200, &open), 8),
        ("200, 3 talk, 197 listen", 1, 200, 3, (3, &silence), 8),
        ("200, all talk, loudest 8", 1, 200, 200, (200, &silence), 8),
        ("200, all talk, all mixed", 1, 200, 200, (200, &silence), 0),
        (
            "5000, 3 talk, the others listen",
            1,
            5_000,
            3,
            (3, &silence),
            8,
        ),
        ("5000, nobody talks", 1, 5_000, 0, (0, &silence), 8),
        ("500 rooms of 4, 1 talks", 500, 4, 1, (4, &silence), 8),
        ("500 rooms of 4, 1 talks, 3 open", 500, 4, 1, (4, &open), 8),
    ] {
        let mut loads: Vec<_> = (0..rooms)
            .map(|_| Load::new(participants, talkers, senders, loudest))
            .collect();
        for _ in 0..100 {
            for load in &mut loads {
                load.tick(&speech, others, &mut out);
            }
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for load in &mut loads {
                    load.tick(&speech, others, &mut out);
                }
            });
        });
        let ticks: u64 = loads.iter().map(|load| load.room.stats().ticks).sum();
        let stats = loads.iter().fold((0, 0, 0, 0), |sum, load| {
            let stats = load.room.stats();
            (
                sum.0 + stats.decoded,
                sum.1 + stats.encoded,
                sum.2 + stats.relayed,
                sum.3 + stats.skipped,
            )
        });
        let each = |count: u64| count as f64 / ticks as f64;
        eprintln!(
            "{name}: of a room and tick {:.2} decoded, {:.2} encoded, {:.2} relayed, {:.2} skipped",
            each(stats.0),
            each(stats.1),
            each(stats.2),
            each(stats.3)
        );
    }
    group.finish();
}

criterion_group!(benches, rooms);
criterion_main!(benches);
