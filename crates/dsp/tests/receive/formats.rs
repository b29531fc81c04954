//! All codecs, packet lengths, rates and numbers of channels.

use std::f32::consts::TAU;

use opusic_c::{Application, Encoder};
use portunus_dsp::{AudioCodec, Channels, Content, Format, Played, SampleRate, level};

use crate::call::{Call, Opus, PLAIN, Sent, opus, pcmu};
use crate::speech::speech;

const RATES: [SampleRate; 5] = [
    SampleRate::Hz8000,
    SampleRate::Hz12000,
    SampleRate::Hz16000,
    SampleRate::Hz24000,
    SampleRate::Hz48000,
];

fn formats() -> impl Iterator<Item = Format> {
    RATES.into_iter().flat_map(|rate| {
        [Channels::Mono, Channels::Stereo].map(|channels| Format { rate, channels })
    })
}

#[test]
fn opus_packets_of_all_lengths_are_heard_whole() {
    let said = speech(4.0);
    for units in [1, 2, 4, 8, 16, 24, 32, 40, 48] {
        let sent = opus(&said, Opus { units, ..PLAIN });
        let heard = Call::new(
            AudioCodec::Opus,
            Format {
                rate: SampleRate::Hz16000,
                channels: Channels::Mono,
            },
        )
        .play(sent);
        let ms = units * 5 / 2;
        let gaps = heard.played[10..185]
            .iter()
            .filter(|played| **played != Played::Sound { concealed: false })
            .count();
        assert_eq!(gaps, 0, "packets of {ms} ms");
        // The audio of a long packet waits for its turn, which is no delay of the receiver.
        assert!(
            heard.median_delay() as usize <= 45,
            "packets of {ms} ms: {} ms",
            heard.median_delay()
        );
    }
}

#[test]
fn g711_of_all_lengths_is_heard_in_all_rooms() {
    let tone: Vec<f32> = (0..16_000)
        .map(|index| 0.5 * (index as f32 * 440.0 * TAU / 8_000.0).sin())
        .collect();
    for format in formats() {
        for ms in [10, 15, 20, 30, 40, 60] {
            let heard = Call::new(AudioCodec::Pcmu, format).play(pcmu(&tone, ms));
            let gaps = heard.played[10..90]
                .iter()
                .filter(|played| **played != Played::Sound { concealed: false })
                .count();
            assert_eq!(gaps, 0, "{format:?}, {ms} ms");
            let len = format.frame_len();
            let during = &heard.samples[10 * len..90 * len];
            assert_eq!(level::level(during), 9, "{format:?}, {ms} ms");
            let channels = format.channels.count();
            let frequency = crossings(during, channels) as f32 / 2.0 / (80.0 / 50.0);
            assert!(
                (435.0..445.0).contains(&frequency),
                "{format:?}, {ms} ms: {frequency} Hz"
            );
            if channels == 2 {
                assert!(
                    during.chunks_exact(2).all(|pair| pair[0] == pair[1]),
                    "the same on both sides"
                );
            }
        }
    }
}

fn crossings(samples: &[f32], channels: usize) -> usize {
    let left: Vec<f32> = samples
        .chunks_exact(channels)
        .map(|frame| frame[0])
        .collect();
    left.windows(2)
        .filter(|pair| (pair[0] < 0.0) != (pair[1] < 0.0))
        .count()
}

/// Stereo like browsers send music: stereo rooms hear both sides, and mono rooms their mean.
#[test]
fn stereo_packets_are_heard_in_all_rooms() {
    let mut encoder = Encoder::new(
        opusic_c::Channels::Stereo,
        opusic_c::SampleRate::Hz48000,
        Application::Audio,
    )
    .unwrap();
    let sent: Vec<Sent> = (0..100)
        .map(|packet| {
            let samples: Vec<f32> = (0..960)
                .flat_map(|index| {
                    let time = (packet * 960 + index) as f32 / 48_000.0;
                    [0.4 * (time * 500.0 * TAU).sin(), 0.0]
                })
                .collect();
            let mut bytes = [0; 1_500];
            let len = encoder.encode_float_to_slice(&samples, &mut bytes).unwrap();
            Sent {
                seq: packet,
                timestamp: packet as u32 * 960,
                payload: bytes[..len].to_vec(),
                content: Content::Codec,
                arrival: packet * 20_000,
            }
        })
        .collect();
    for format in formats() {
        let heard = Call::new(AudioCodec::Opus, format).play(sent.clone());
        let len = format.frame_len();
        let during = &heard.samples[20 * len..90 * len];
        let channels = format.channels.count();
        let left: Vec<f32> = during
            .chunks_exact(channels)
            .map(|frame| frame[0])
            .collect();
        let right: Vec<f32> = during
            .chunks_exact(channels)
            .map(|frame| frame[channels - 1])
            .collect();
        let expected = if channels == 2 { 11 } else { 17 };
        assert!(
            level::level(&left).abs_diff(expected) <= 1,
            "{format:?}: {}",
            level::level(&left)
        );
        assert!(
            channels == 1 || level::level(&right) > 35,
            "{format:?}: {}",
            level::level(&right)
        );
    }
}
