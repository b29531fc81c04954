//! The content of mixes: participants, loudness and position.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod rig;

use portunus_dsp::{
    AudioCodec, Channels, Content, Encoding, Format, IncomingPacket, Mixture, ParticipantId,
    ParticipantOptions, Played, Receiver, ReceiverOptions, RoomError, RoomOptions, SampleRate,
    g711::Law,
};
use rig::{ENCODING, MONO_16, Rig, Way, amount, encoder, participant, speech};

/// A sample at -1 dBFS.
const CEILING: f32 = 0.8913;

/// Whether a tone of this loudness is heard.
fn is_heard(amount: f32, loud: f32) -> bool {
    (0.8 * loud..1.2 * loud).contains(&amount)
}

#[test]
fn each_of_three_hears_the_other_two() {
    for rate in [
        SampleRate::Hz8000,
        SampleRate::Hz12000,
        SampleRate::Hz16000,
        SampleRate::Hz24000,
        SampleRate::Hz48000,
    ] {
        let format = Format {
            rate,
            channels: Channels::Mono,
        };
        let mut rig = Rig::new(RoomOptions {
            format,
            loudest: 0,
            groups: 0,
        });
        for id in 1..=4 {
            rig.join(id, participant());
        }
        for _ in 0..100 {
            rig.send_tone(1, 400.0, 0.2);
            rig.send_tone(2, 700.0, 0.2);
            rig.send_tone(3, 1_100.0, 0.2);
            rig.tick();
        }
        for (listener, tones) in [
            (1, [false, true, true]),
            (2, [true, false, true]),
            (3, [true, true, false]),
            (4, [true, true, true]),
        ] {
            for (hertz, heard) in [400.0, 700.0, 1_100.0].into_iter().zip(tones) {
                let amount = rig.hears(listener, hertz);
                assert_eq!(
                    is_heard(amount, 0.2),
                    heard,
                    "{rate:?} {listener}: {amount}"
                );
                assert!(heard || amount < 0.01, "{rate:?} {listener}: {amount}");
            }
        }
    }
}

#[test]
fn the_mix_is_the_sum_of_what_was_decoded() {
    let format = Format {
        rate: SampleRate::Hz24000,
        channels: Channels::Stereo,
    };
    let mut rig = Rig::new(RoomOptions {
        format,
        loudest: 0,
        groups: 0,
    });
    rig.room.listen(None, true).expect("all are heard");
    let parts = [(0.4, 0.0), (0.3, 0.5), (0.8, 0.9)];
    let mut receivers = Vec::new();
    for (id, (gain, position)) in parts.into_iter().enumerate() {
        rig.join(
            id as u64,
            ParticipantOptions {
                gain,
                position,
                ..participant()
            },
        );
        let codec = AudioCodec::Opus;
        let receiver = Receiver::new(ReceiverOptions { codec, format });
        receivers.push((receiver, encoder(format)));
    }
    let mut reference: Vec<f64> = Vec::new();
    for frame in 0..100 {
        let mut mixed = vec![0.0f64; format.frame_len()];
        rig.now += portunus_dsp::FRAME;
        for (id, ((receiver, encoder), (gain, position))) in
            receivers.iter_mut().zip(parts).enumerate()
        {
            let sound = speech(format, id as u64, 0.2, frame);
            let mut payload = vec![0; 1_276];
            let length = encoder
                .encode_float_to_slice(&sound, &mut payload)
                .expect("a packet");
            payload.truncate(length);
            let packet = IncomingPacket {
                seq: frame,
                timestamp: frame as u32 * 960,
                payload: &payload,
                content: Content::Codec,
                level: Some(20),
                arrival: rig.now,
            };
            rig.room.push(ParticipantId(id as u64), &packet);
            receiver.push(&packet);
            let mut decoded = vec![0.0; format.frame_len()];
            if receiver.play(rig.now, &mut decoded) == Played::Silence {
                continue;
            }
            for (mixed, pair) in mixed.chunks_exact_mut(2).zip(decoded.chunks_exact(2)) {
                mixed[0] += f64::from(pair[0]) * f64::from(gain) * (1.0 - f64::from(position));
                mixed[1] += f64::from(pair[1]) * f64::from(gain) * f64::from(position);
            }
        }
        reference.extend(mixed);
        rig.room.tick(rig.now, &mut rig.log);
    }
    // The limiter delays by 2.5 ms.
    let delay = 24_000 / 400 * 2;
    let mix: Vec<f32> = rig
        .log
        .sounds
        .iter()
        .flat_map(|(_, sound)| sound.clone())
        .collect();
    let loud = reference
        .iter()
        .fold(0.0f64, |most, sample| most.max(sample.abs()));
    assert!(loud > 0.05, "{loud}");
    for (at, sample) in mix.iter().enumerate().skip(10 * format.frame_len()) {
        let off = f64::from(*sample) - reference[at - delay];
        assert!(off.abs() < 1e-6, "sample {at} is {off} off");
    }
}

#[test]
fn telephones_take_part() {
    for (format, codec) in [
        (MONO_16, AudioCodec::Pcma),
        (MONO_16, AudioCodec::Pcmu),
        (rig::STEREO_48, AudioCodec::Pcma),
        (MONO_16, AudioCodec::G722),
        (rig::STEREO_48, AudioCodec::G722),
    ] {
        let (way, rate) = match Law::of(codec) {
            Some(law) => (Way::G711(law), SampleRate::Hz8000),
            None => (Way::G722(Box::default()), SampleRate::Hz16000),
        };
        let telephone = ParticipantOptions {
            codec,
            encoding: Encoding { codec, ..ENCODING },
            ..participant()
        };
        let mut rig = Rig::new(RoomOptions {
            format,
            loudest: 8,
            groups: 0,
        });
        rig.levels = false;
        rig.join(1, participant());
        rig.join(2, telephone.clone());
        rig.join(
            3,
            ParticipantOptions {
                encoding: Encoding {
                    codec,
                    bitrate: Some(64_000),
                    ..ENCODING
                },
                ..telephone
            },
        );
        rig.sends_by(2, way);
        for line in 0..100 {
            rig.send_tone(1, 400.0, 0.3);
            let telephone = Format {
                rate,
                channels: Channels::Mono,
            };
            let tone = rig::tone(telephone, 700.0, 0.3, line);
            rig.send(2, &tone);
            rig.tick();
        }
        // In a stereo room, a participant in the middle has half of its loudness on each side.
        let loud = 0.3 / format.channels.count() as f32;
        let ear: Vec<f32> = rig
            .last(1, 10)
            .iter()
            .step_by(format.channels.count())
            .copied()
            .collect();
        assert!(is_heard(amount(&ear, format.rate, 700.0), loud));
        for (id, hertz, deaf) in [(2, 400.0, 700.0), (3, 700.0, 1_000.0)] {
            let heard = &rig.heard[&ParticipantId(id)];
            let heard = &heard[heard.len() - 10 * rate.frame_len()..];
            let got = amount(heard, rate, hertz);
            assert!(is_heard(got, loud), "{format:?} {codec:?} {id}: {got}");
            assert!(amount(heard, rate, deaf) < 0.02);
        }
        // A packet of 160 bytes every 20 ms.
        let mix = rig.mix_of(3).expect("a mix");
        let packets: Vec<_> = rig
            .log
            .packets
            .iter()
            .filter(|packet| packet.mix == mix)
            .collect();
        assert!(packets.iter().all(|packet| packet.payload.len() == 160));
        assert!(
            packets
                .windows(2)
                .all(|pair| pair[1].timestamp - pair[0].timestamp == 160)
        );
    }
}

#[test]
fn places_are_between_left_and_right() {
    let mut rig = Rig::new(RoomOptions {
        format: rig::STEREO_48,
        loudest: 8,
        groups: 0,
    });
    for (id, position) in [(1, 0.0), (2, 0.25), (3, 1.0), (4, 0.5)] {
        rig.join(
            id,
            ParticipantOptions {
                position,
                encoding: Encoding {
                    bitrate: Some(128_000),
                    ..ENCODING
                },
                ..participant()
            },
        );
    }
    for _ in 0..100 {
        rig.send_tone(1, 400.0, 0.4);
        rig.send_tone(2, 700.0, 0.4);
        rig.send_tone(3, 1_100.0, 0.4);
        rig.tick();
    }
    for (id, hertz, left, right) in [
        (4, 400.0, 0.4, 0.0),
        (4, 700.0, 0.3, 0.1),
        (4, 1_100.0, 0.0, 0.4),
        (2, 400.0, 0.4, 0.0),
        (2, 700.0, 0.0, 0.0),
    ] {
        for (channel, loud) in [(0, left), (1, right)] {
            let ear: Vec<f32> = rig
                .last(id, 10)
                .iter()
                .skip(channel)
                .step_by(2)
                .copied()
                .collect();
            let got = amount(&ear, SampleRate::Hz48000, hertz);
            assert!(
                (got - loud).abs() < 0.04,
                "{id}, {hertz} Hz, {channel}: {got}"
            );
        }
    }
}

#[test]
fn ten_at_full_scale_are_not_clipped() {
    let mut rig = Rig::mono(0);
    rig.room.listen(None, true).expect("all are heard");
    for id in 1..=10 {
        rig.join(id, participant());
    }
    for _ in 0..150 {
        for id in 1..=10 {
            rig.send_tone(id, 180.0 + 97.0 * id as f32, 0.99);
        }
        rig.tick();
    }
    let loudest = |sound: &[f32]| {
        sound
            .iter()
            .fold(0.0f32, |most, sample| most.max(sample.abs()))
    };
    for (_, sound) in &rig.log.sounds {
        assert!(loudest(sound) <= CEILING);
    }
    assert!(loudest(&rig.log.sounds[140].1) > 0.5);
    // The decoded audio may exceed the ceiling by the encoder's errors.
    assert!(loudest(rig.last(1, 50)) < 1.1);
}

/// The largest step between two samples is that of the tone itself, whatever changes.
#[test]
fn nothing_that_changes_clicks() {
    type Change = fn(&mut Rig);
    let changes: [(&str, Change); 6] = [
        ("mute", |rig| {
            let muted = ParticipantOptions {
                muted: true,
                ..participant()
            };
            rig.room.set(ParticipantId(1), muted).expect("in the room");
        }),
        ("mute of the room", |rig| rig.room.set_muted(true)),
        ("leaving", |rig| rig.leave(1)),
        ("a connection lost", |rig| {
            rig.room.connect(ParticipantId(1), false);
        }),
        ("another gain", |rig| {
            let loud = ParticipantOptions {
                gain: 0.2,
                ..participant()
            };
            rig.room.set(ParticipantId(1), loud).expect("in the room");
        }),
        ("mute and unmute", |rig| {
            for muted in [true, false] {
                let options = ParticipantOptions {
                    muted,
                    ..participant()
                };
                rig.room
                    .set(ParticipantId(1), options)
                    .expect("in the room");
                rig.tick();
            }
        }),
    ];
    for (what, change) in changes {
        let mut rig = Rig::mono(8);
        rig.room.listen(None, true).expect("all are heard");
        rig.join(1, participant());
        rig.join(2, participant());
        for frame in 0..100 {
            if frame == 60 {
                change(&mut rig);
            }
            rig.send_tone(1, 300.0, 0.5);
            rig.tick();
        }
        let mix: Vec<f32> = rig
            .log
            .sounds
            .iter()
            .flat_map(|(_, sound)| sound.clone())
            .collect();
        let jump = mix
            .windows(2)
            .skip(20 * 320)
            .map(|pair| (pair[1] - pair[0]).abs())
            .fold(0.0, f32::max);
        let of_the_tone = 0.5 * std::f32::consts::TAU * 300.0 / 16_000.0;
        assert!(
            jump < 1.1 * of_the_tone,
            "{what}: {jump} instead of {of_the_tone}"
        );
    }
}

#[test]
fn groups_have_mixes_of_their_own() {
    let mut rig = Rig::new(RoomOptions {
        format: MONO_16,
        loudest: 8,
        groups: 2,
    });
    let of = |group| ParticipantOptions {
        group: Some(group),
        ..participant()
    };
    rig.join(1, of(0));
    rig.join(2, of(1));
    rig.join(3, of(1));
    assert_eq!(
        rig.room.join(ParticipantId(9), of(2)),
        Err(RoomError::NoSuchGroup(2))
    );
    let none = rig.room.subscribe(Mixture::Group(2), ENCODING, false);
    assert_eq!(none, Err(RoomError::NoSuchGroup(2)));
    let group = rig
        .room
        .subscribe(Mixture::Group(1), ENCODING, false)
        .expect("a group");
    let all = rig
        .room
        .subscribe(Mixture::Everyone, ENCODING, false)
        .expect("all");
    let mut decoders = [(group, rig::decoder(MONO_16)), (all, rig::decoder(MONO_16))];
    let mut heard = [Vec::new(), Vec::new()];
    for _ in 0..60 {
        rig.send_tone(1, 400.0, 0.3);
        rig.send_tone(2, 700.0, 0.3);
        rig.tick();
        for ((mix, decoder), heard) in decoders.iter_mut().zip(&mut heard) {
            let packet = rig
                .log
                .packets
                .iter()
                .rfind(|packet| packet.mix == *mix && packet.tick == rig.log.tick)
                .expect("a packet each 20 ms");
            let mut sound = vec![0.0; 320];
            decoder
                .decode_float_to_slice(&packet.payload, &mut sound, false)
                .expect("Opus");
            heard.extend(sound);
        }
    }
    let [group_heard, all_heard] = heard.map(|sound| {
        let last = &sound[sound.len() - 3_200..];
        [400.0, 700.0].map(|hertz| amount(last, SampleRate::Hz16000, hertz))
    });
    assert!(
        group_heard[0] < 0.01 && is_heard(group_heard[1], 0.3),
        "{group_heard:?}"
    );
    assert!(is_heard(all_heard[0], 0.3) && is_heard(all_heard[1], 0.3));
    // Participants hear all groups, from the existing mix.
    assert!(is_heard(rig.hears(3, 400.0), 0.3));
    assert_eq!(rig.mix_of(3), Some(all));
}

#[test]
fn participants_are_known_by_their_numbers() {
    let mut rig = Rig::mono(8);
    rig.join(1, participant());
    let again = rig.room.join(ParticipantId(1), participant());
    assert_eq!(again, Err(RoomError::ParticipantExists(ParticipantId(1))));
    let unknown = rig.room.set(ParticipantId(2), participant());
    assert_eq!(unknown, Err(RoomError::NoSuchParticipant(ParticipantId(2))));
    rig.room.leave(ParticipantId(2));
    assert!(rig.room.participant(ParticipantId(2)).is_none());
    for _ in 0..20 {
        rig.send_tone(1, 400.0, 0.3);
        rig.tick();
    }
    let state = rig.room.participant(ParticipantId(1)).expect("in the room");
    assert!(state.heard);
    assert!((10..20).contains(&state.level), "{state:?}");
    rig.leave(1);
    rig.join(1, participant());
    rig.tick();
}

#[test]
fn other_threads_may_encode() {
    let run = |lost: [Option<usize>; 3]| {
        let mut rig = Rig::mono(8);
        for id in 1..=4 {
            rig.join(id, participant());
        }
        for lost in lost {
            rig.threads = lost;
            for _ in 0..20 {
                rig.send_speech(1, 0.5);
                rig.send_speech(2, 0.5);
                rig.tick();
            }
        }
        rig
    };
    let here = run([None; 3]);
    let there = run([Some(0); 3]);
    assert_eq!(here.heard, there.heard);
    assert_eq!(there.room.stats().failed, 0);
    // A job that is never put back costs the packets of these ticks, no more.
    let lost = run([Some(0), Some(3), Some(0)]);
    assert_eq!(lost.room.stats().failed, 60);
    let late = here.heard[&ParticipantId(3)].len() - 320 * 10;
    let energy = |rig: &Rig| -> f32 {
        let sound = &rig.heard[&ParticipantId(3)][late..];
        sound.iter().map(|sample| sample * sample).sum()
    };
    let ratio = energy(&lost) / energy(&here);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn frames_that_are_left_out_pass_for_listeners_and_not_for_encoders() {
    let mut rig = Rig::mono(8);
    for id in 1..=2 {
        rig.join(id, participant());
    }
    let run = |rig: &mut Rig| {
        for _ in 0..20 {
            rig.send_tone(1, 400.0, 0.3);
            rig.tick();
        }
    };
    run(&mut rig);
    let mix = rig.mix_of(2).expect("it hears");
    let warmed = rig.room.stats().warmed;
    rig.room.skip(3);
    run(&mut rig);
    let heard = rig.log.packets.iter().filter(|packet| packet.mix == mix);
    let times: Vec<_> = heard.map(|packet| packet.timestamp).collect();
    let steps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps.iter().filter(|step| **step == 4 * 960).count(), 1);
    assert_eq!(
        steps.iter().filter(|step| **step == 960).count(),
        steps.len() - 1
    );
    assert_eq!(rig.room.stats().warmed, warmed);
}
