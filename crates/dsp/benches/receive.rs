//! The cost of a participant's input per frame: played, lost, and skipped.
#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use opusic_c::{Application, Bitrate, Encoder};
use portunus_dsp::{
    AudioCodec, Channels, Content, Format, IncomingPacket, Receiver, ReceiverOptions, SampleRate,
};

const FORMATS: [(&str, Format); 2] = [
    (
        "16 kHz",
        Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        },
    ),
    (
        "48 kHz stereo",
        Format {
            rate: SampleRate::Hz48000,
            channels: Channels::Stereo,
        },
    ),
];

/// The packets of a second of a buzz.
fn packets() -> Vec<Vec<u8>> {
    let Ok(mut encoder) = Encoder::new(
        opusic_c::Channels::Mono,
        opusic_c::SampleRate::Hz16000,
        Application::Voip,
    ) else {
        return Vec::new();
    };
    let _ = encoder.set_bitrate(Bitrate::Value(28_000));
    (0..50)
        .filter_map(|packet| {
            let samples: Vec<f32> = (0..320)
                .map(|index| {
                    let time = (packet * 320 + index) as f32 / 16_000.0;
                    (1..12)
                        .map(|harmonic| 0.05 * (time * 880.0 * harmonic as f32).sin())
                        .sum()
                })
                .collect();
            let mut bytes = [0; 1_500];
            let len = encoder.encode_float_to_slice(&samples, &mut bytes).ok()?;
            bytes.get(..len).map(<[u8]>::to_vec)
        })
        .collect()
}

/// A receiver in a running call.
struct Call {
    receiver: Receiver,
    packets: Vec<Vec<u8>>,
    start: Instant,
    tick: u64,
    frame: Vec<f32>,
}

impl Call {
    fn new(format: Format) -> Self {
        let receiver = Receiver::new(ReceiverOptions {
            codec: AudioCodec::Opus,
            format,
        });
        Self {
            receiver,
            packets: packets(),
            start: Instant::now(),
            tick: 0,
            frame: vec![0.0; format.frame_len()],
        }
    }

    /// Runs the next tick: a packet comes, or is lost.
    fn tick(&mut self, lost: bool) -> Instant {
        self.tick += 1;
        let now = self.start + Duration::from_millis(20 * self.tick);
        if let (false, Some(payload)) = (
            lost,
            self.packets
                .get(self.tick as usize % self.packets.len().max(1)),
        ) {
            self.receiver.push(&IncomingPacket {
                seq: self.tick,
                timestamp: (self.tick as u32).wrapping_mul(960),
                payload,
                content: Content::Codec,
                level: Some(30),
                arrival: now,
            });
        }
        now
    }

    fn play(&mut self, lost: bool) {
        let now = self.tick(lost);
        self.receiver.play(now, black_box(&mut self.frame));
    }

    fn skip(&mut self) {
        let now = self.tick(false);
        black_box(self.receiver.due_level(now));
        self.receiver.skip(now);
    }
}

fn frames(criterion: &mut Criterion) {
    for (name, format) in FORMATS {
        let mut group = criterion.benchmark_group(name);
        let mut call = Call::new(format);
        group.bench_function("play", |bencher| bencher.iter(|| call.play(false)));
        let mut call = Call::new(format);
        let mut packet = 0_u64;
        group.bench_function("play, one of five lost", |bencher| {
            bencher.iter(|| {
                packet += 1;
                call.play(packet.is_multiple_of(5));
            });
        });
        let mut call = Call::new(format);
        group.bench_function("skip", |bencher| bencher.iter(|| call.skip()));
        group.finish();
    }
}

/// The time that libopus takes to conceal a frame, plainly and with its vocoder, each after nine
/// decoded frames.
fn concealment(criterion: &mut Criterion) {
    let packets = packets();
    let mut group = criterion.benchmark_group("ten packets of libopus, 16 kHz");
    for (name, complexity, lost) in [
        ("plain", 0, false),
        ("plain, one lost", 0, true),
        ("deep", 5, false),
        ("deep, one lost", 5, true),
    ] {
        let Ok(mut decoder) =
            opusic_c::Decoder::new(opusic_c::Channels::Mono, opusic_c::SampleRate::Hz16000)
        else {
            return;
        };
        let _ = decoder.set_complexity(complexity);
        let mut frame = [0.0; 320];
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for (index, packet) in packets.iter().take(10).enumerate() {
                    let payload: &[u8] = if lost && index == 9 { &[] } else { packet };
                    let _ = decoder.decode_float_to_slice(payload, black_box(&mut frame), false);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, frames, concealment);
criterion_main!(benches);
