//! A participant that starts or stops talking gets another mix, without audible difference.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod rig;

use portunus_dsp::{
    AudioCodec, Channels, Encoding, Format, ParticipantId, ParticipantOptions, RoomOptions,
    SampleRate,
};
use rig::{ENCODING, MONO_16, Rig, Way, caller, participant};

/// The compared length: 100 ms, of which 20 ms are before the switch.
const WINDOW: usize = 5;

const FRAMES: usize = 300;

fn room(format: Format, encoding: Encoding) -> Rig {
    let mut rig = Rig::new(RoomOptions {
        format,
        loudest: 8,
        groups: 0,
    });
    for id in 1..=3 {
        rig.join(
            id,
            ParticipantOptions {
                encoding,
                ..participant()
            },
        );
    }
    rig
}

/// Returns what 2 hears while 1 speaks all the time, and when it was moved to another mix. If 2
/// `speaks`, it does so twice.
fn heard(format: Format, encoding: Encoding, speaks: bool) -> (Vec<f32>, Vec<usize>) {
    let mut rig = room(format, encoding);
    // All of it is mixed.
    rig.room.listen(None, true).expect("all are heard");
    let mut switches = Vec::new();
    let mut mix = None;
    for frame in 0..FRAMES {
        rig.send_speech(1, 0.7);
        if speaks && frame % 130 >= 80 {
            rig.send_speech(2, 0.7);
        }
        rig.tick();
        if rig.mix_of(2) != mix {
            mix = rig.mix_of(2);
            switches.push(frame);
        }
    }
    (rig.last(2, FRAMES).to_vec(), switches)
}

fn energy(sound: &[f32]) -> f32 {
    sound.iter().map(|sample| sample * sample).sum::<f32>() / sound.len() as f32
}

fn largest_jump(sound: &[f32]) -> f32 {
    sound
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .fold(0.0, f32::max)
}

/// Returns the channels of the audio around a frame.
fn about(sound: &[f32], format: Format, frame: usize) -> Vec<Vec<f32>> {
    let channels = format.channels.count();
    let length = format.rate.frame_len();
    (0..channels)
        .map(|channel| {
            let samples = sound.iter().skip(channel).step_by(channels);
            let window = samples.skip((frame - 1) * length).take(WINDOW * length);
            window.copied().collect()
        })
        .collect()
}

fn assert_alike(format: Format, continuous: &[f32], switched: &[f32], frame: usize, what: &str) {
    let pairs = about(continuous, format, frame)
        .into_iter()
        .zip(about(switched, format, frame));
    for (continuous, switched) in pairs {
        // Below -60 dBFS, between two words, there is only noise to compare.
        if energy(&continuous) < 1e-6 {
            assert!(energy(&switched) < 2e-6, "{what}, frame {frame}");
            continue;
        }
        let decibels = 10.0 * (energy(&switched) / energy(&continuous)).log10();
        assert!(
            decibels.abs() <= 1.0,
            "{what}, frame {frame}: {decibels} dB"
        );
        // Two encoders quantise differently: a sample may differ without a click.
        let jump = largest_jump(&switched) / largest_jump(&continuous);
        assert!(jump <= 1.15, "{what}, frame {frame}: {jump} times the jump");
    }
}

#[test]
fn a_switch_of_encoders_is_not_heard() {
    let formats = [
        (SampleRate::Hz8000, Channels::Mono),
        (SampleRate::Hz16000, Channels::Mono),
        (SampleRate::Hz48000, Channels::Mono),
        (SampleRate::Hz48000, Channels::Stereo),
    ];
    for (rate, channels) in formats {
        for bitrate in [None, Some(24_000), Some(64_000)] {
            let format = Format { rate, channels };
            let encoding = Encoding {
                bitrate,
                ..ENCODING
            };
            let (continuous, before) = heard(format, encoding, false);
            assert_eq!(before.len(), 1);
            let (switched, switches) = heard(format, encoding, true);
            assert!(switches.len() >= 5, "{switches:?}");
            for switch in &switches[1..] {
                let what = format!("{format:?} at {bitrate:?}");
                assert_alike(format, &continuous, &switched, *switch, &what);
            }
        }
    }
}

#[test]
fn a_change_of_the_encoding_is_not_heard() {
    let changed = Encoding {
        bitrate: Some(40_000),
        complexity: 9,
        fec: true,
        expected_loss: 10,
        ..ENCODING
    };
    let sounds: Vec<_> = [false, true]
        .into_iter()
        .map(|changes| {
            let mut rig = room(MONO_16, ENCODING);
            for frame in 0..200 {
                if changes && frame == 120 {
                    for id in 1..=2 {
                        let options = ParticipantOptions {
                            encoding: changed,
                            ..participant()
                        };
                        rig.room
                            .set(ParticipantId(id), options)
                            .expect("in the room");
                    }
                }
                rig.send_speech(1, 0.5);
                rig.send_speech(3, 0.5);
                rig.tick();
            }
            rig
        })
        .collect();
    // One talks, and its own encoder is changed. The other gets another mix.
    for id in [1, 2] {
        let [continuous, changed] = [&sounds[0], &sounds[1]].map(|rig| rig.last(id, 200));
        assert_alike(MONO_16, continuous, changed, 120, "another encoding");
    }
    assert_ne!(sounds[1].mix_of(2), sounds[0].mix_of(2));
}

#[test]
fn pauses_between_words_move_nobody() {
    let mut rig = room(MONO_16, ENCODING);
    for frame in 0..300 {
        rig.send_tone(1, 400.0, 0.3);
        // Words of 400 ms, and pauses of 200 ms.
        if frame % 30 < 20 {
            rig.send_tone(2, 700.0, 0.3);
        } else {
            rig.send_tone(2, 700.0, 0.0);
        }
        rig.tick();
    }
    // Each was moved when it joined, and talkers when they started, unless both happened at once.
    let switches = rig.log.switches;
    assert!((3..=5).contains(&switches), "{switches}");
}

#[test]
fn who_is_silent_shares_a_mix_again() {
    let mut rig = room(MONO_16, ENCODING);
    for _ in 0..50 {
        rig.send_tone(1, 400.0, 0.3);
        rig.send_tone(2, 700.0, 0.3);
        rig.tick();
    }
    assert_ne!(rig.mix_of(1), rig.mix_of(2));
    assert_ne!(rig.mix_of(1), rig.mix_of(3));
    for _ in 0..60 {
        rig.tick();
    }
    assert_eq!(rig.mix_of(1), rig.mix_of(2));
    assert_eq!(rig.mix_of(1), rig.mix_of(3));
    // Encoders for single participants are kept for a while, then released.
    assert_eq!(rig.log.open.len(), 3);
    for _ in 0..600 {
        rig.tick();
    }
    assert_eq!(rig.log.open.len(), 1);
}

#[test]
fn g711_is_switched_too() {
    let encoding = Encoding {
        codec: AudioCodec::Pcma,
        ..ENCODING
    };
    let format = Format {
        rate: SampleRate::Hz8000,
        channels: Channels::Mono,
    };
    let (continuous, _) = heard(format, encoding, false);
    let (switched, switches) = heard(format, encoding, true);
    for switch in &switches[1..] {
        assert_alike(format, &continuous, &switched, *switch, "G.711");
    }
}

/// Returns what 2 hears while 1 speaks all the time, and the frames at which relaying started or
/// ended.
fn relayed(
    rate: SampleRate,
    bitrate: Option<u32>,
    speaks: bool,
    relays: bool,
) -> (Vec<f32>, Vec<usize>) {
    let format = Format {
        rate,
        channels: Channels::Mono,
    };
    let encoding = Encoding {
        bitrate,
        ..ENCODING
    };
    let mut rig = room(format, encoding);
    if !relays {
        rig.room.listen(None, true).expect("all are heard");
    }
    rig.sends_by(1, Way::Opus(caller(format, bitrate.unwrap_or(24_000))));
    let (mut switches, mut before, mut was) = (Vec::new(), 0, false);
    for frame in 0..4 * FRAMES {
        rig.send_speech(1, 0.7);
        if speaks && frame % 101 >= 80 {
            rig.send_tone(2, 400.0, 0.2);
        }
        rig.tick();
        let relayed = rig.room.stats().relayed;
        if (relayed > before) != was {
            was = !was;
            switches.push(frame);
        }
        before = relayed;
    }
    (rig.last(2, 4 * FRAMES).to_vec(), switches)
}

#[test]
fn a_switch_to_packets_as_they_are_and_back_is_not_heard() {
    let rates = [
        (SampleRate::Hz8000, 12_000),
        (SampleRate::Hz12000, 12_000),
        (SampleRate::Hz16000, 16_000),
        (SampleRate::Hz24000, 20_000),
        (SampleRate::Hz48000, 20_000),
    ];
    for (rate, least) in rates {
        for bitrate in [Some(least), None] {
            let (relayed_only, begun) = relayed(rate, bitrate, false, true);
            let (mixed_only, none) = relayed(rate, bitrate, false, false);
            assert_eq!((begun.len(), none.len()), (1, 0), "{rate:?} {bitrate:?}");
            let (switched, switches) = relayed(rate, bitrate, true, true);
            assert!(switches.len() >= 5, "{switches:?}");
            let format = Format {
                rate,
                channels: Channels::Mono,
            };
            for switch in &switches[1..] {
                let [relayed, mixed, switched] = [&relayed_only, &mixed_only, &switched]
                    .map(|sound| about(sound, format, *switch).remove(0));
                let what = format!("{rate:?} at {bitrate:?}, frame {switch}");
                // The mix is some ms later than relayed audio, so the switch is between the two.
                // Below -60 dBFS there is noise.
                let [a, b, loud] = [&relayed, &mixed, &switched]
                    .map(|sound| 10.0 * energy(sound).max(1e-6).log10());
                let off = (loud - a.max(b)).max(a.min(b) - loud);
                if a.max(b) <= -60.0 {
                    assert!(off <= 3.0, "{what}: {off} dB");
                    continue;
                }
                assert!(off <= 1.0, "{what}: {off} dB");
                let largest = largest_jump(&relayed).max(largest_jump(&mixed));
                let jump = largest_jump(&switched) / largest;
                assert!(jump <= 1.15, "{what}: {jump} times the jump");
            }
        }
    }
}
