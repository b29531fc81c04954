//! What a tick of a room costs: 20 ms of sound.
#![allow(clippy::expect_used, missing_docs)]

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use portunus_dsp::{
    AnnouncementId, AnnouncementState, Content, Encoding, FRAME, IncomingPacket, MixId, Output,
    ParticipantId, ParticipantOptions, Room, RoomOptions, level,
};
use rig::{ENCODING, MONO_16, encoder, participant, speech};

/// How many frames the senders repeat.
const LOOP: u64 = 500;

/// Takes everything, keeps nothing.
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

/// Speech, encoded once, that all senders send.
struct Speech(Vec<(Vec<u8>, u8)>);

impl Speech {
    fn new() -> Self {
        let mut encoder = encoder(MONO_16);
        encoder
            .set_bitrate(opusic_c::Bitrate::Value(32_000))
            .expect("a bitrate");
        Speech(
            (0..LOOP)
                .map(|frame| {
                    let sound = speech(MONO_16, 1, 0.7, frame);
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

/// A room of which some talk, some send silence, and the rest listens.
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

    fn tick(&mut self, speech: &Speech, silence: &[u8], out: &mut Nowhere) {
        for id in 0..self.senders {
            let at = (self.frame + id * 37) % LOOP;
            let Some((sound, loud)) = speech.0.get(at as usize) else {
                continue;
            };
            let talks = id < self.talkers;
            self.room.push(
                ParticipantId(id),
                &IncomingPacket {
                    seq: self.frame,
                    timestamp: self.frame as u32 * 960,
                    payload: if talks { sound } else { silence },
                    content: Content::Codec,
                    level: Some(if talks { *loud } else { 127 }),
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
    let speech = Speech::new();
    let mut silence = vec![0; 1_276];
    let length = encoder(MONO_16)
        .encode_float_to_slice(&[0.0; 320], &mut silence)
        .expect("a packet");
    silence.truncate(length);
    let mut out = Nowhere::default();
    let mut group = criterion.benchmark_group("room");
    group.sample_size(50);
    for (name, rooms, participants, talkers, senders, loudest) in [
        ("200, 3 talk, 197 send silence", 1, 200, 3, 200, 8),
        ("200, 3 talk, 197 listen", 1, 200, 3, 3, 8),
        ("200, all talk, loudest 8", 1, 200, 200, 200, 8),
        ("200, all talk, all mixed", 1, 200, 200, 200, 0),
        ("5000, 3 talk, the others listen", 1, 5_000, 3, 3, 8),
        ("5000, nobody talks", 1, 5_000, 0, 0, 8),
        ("500 rooms of 4, 1 talks", 500, 4, 1, 4, 8),
    ] {
        let mut loads: Vec<_> = (0..rooms)
            .map(|_| Load::new(participants, talkers, senders, loudest))
            .collect();
        for _ in 0..100 {
            for load in &mut loads {
                load.tick(&speech, &silence, &mut out);
            }
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for load in &mut loads {
                    load.tick(&speech, &silence, &mut out);
                }
            });
        });
        let ticks: u64 = loads.iter().map(|load| load.room.stats().ticks).sum();
        let stats = loads.iter().fold((0, 0, 0), |sum, load| {
            let stats = load.room.stats();
            (
                sum.0 + stats.decoded,
                sum.1 + stats.encoded,
                sum.2 + stats.skipped,
            )
        });
        let each = |count: u64| count as f64 / ticks as f64;
        eprintln!(
            "{name}: of a room and tick {:.2} decoded, {:.2} encoded, {:.2} skipped",
            each(stats.0),
            each(stats.1),
            each(stats.2)
        );
    }
    group.finish();
}

criterion_group!(benches, rooms);
criterion_main!(benches);
