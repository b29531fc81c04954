//! Relaying: the packets of the only participant heard are sent unchanged. Otherwise participants
//! are mixed.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod rig;

use portunus_dsp::{
    AnnouncementId, AnnouncementSource, AudioCodec, Channels, Content, Encoding, FRAME, Format,
    IncomingPacket, Mixture, NextPacket, ParticipantId, ParticipantOptions, RoomOptions,
    SampleRate, level,
};
use rig::{ENCODING, MONO_16, Rig, Way, caller, participant, speech};

/// A room in which 2 and 3 can hear the packets of 1 unchanged, if `options` allow it.
fn room(format: Format, options: ParticipantOptions) -> Rig {
    let mut rig = Rig::new(RoomOptions {
        format,
        loudest: 8,
        groups: 1,
    });
    for id in 1..=3 {
        rig.join(id, options.clone());
    }
    rig.sends_by(1, Way::Opus(caller(format, 24_000)));
    // Nobody was heard for a while.
    for _ in 0..30 {
        rig.tick();
    }
    rig
}

fn speak(rig: &mut Rig, frames: u32) {
    for _ in 0..frames {
        rig.send_speech(1, 0.7);
        rig.tick();
    }
}

/// Returns the number of relayed frames.
fn relayed(rig: &mut Rig, frames: u32) -> u64 {
    let before = rig.room.stats().relayed;
    speak(rig, frames);
    rig.room.stats().relayed - before
}

#[test]
fn who_alone_is_heard_costs_nothing() {
    let mut rig = room(MONO_16, participant());
    speak(&mut rig, 50);
    let before = rig.room.stats();
    rig.log.packets.clear();
    speak(&mut rig, 100);
    let after = rig.room.stats();
    assert_eq!(after.relayed - before.relayed, 100);
    assert_eq!(
        (after.decoded, after.encoded),
        (before.decoded, before.encoded)
    );
    let mix = rig.mix_of(2).expect("a mix");
    let packets: Vec<_> = rig.log.packets.iter().filter(|it| it.mix == mix).collect();
    assert_eq!(packets.len(), 100);
    for packet in packets {
        assert_eq!(u64::from(packet.timestamp), packet.tick * 960);
        assert!(!packet.marker);
    }
    assert!(rig.room.participant(ParticipantId(1)).expect("there").heard);
    // It does not hear itself.
    assert_ne!(rig.mix_of(1), rig.mix_of(2));
    assert!(rig.last(1, 50).iter().all(|sample| sample.abs() < 1e-3));
    let energy = |sound: &[f32]| sound.iter().map(|it| it * it).sum::<f32>();
    assert!(energy(rig.last(2, 50)) > 10.0);
}

#[test]
fn who_talks_to_nobody_is_heard_by_who_comes() {
    let mut rig = Rig::new(RoomOptions {
        format: MONO_16,
        loudest: 8,
        groups: 1,
    });
    rig.join(1, participant());
    rig.sends_by(1, Way::Opus(caller(MONO_16, 24_000)));
    speak(&mut rig, 200);
    rig.join(2, participant());
    speak(&mut rig, 100);
    let energy = |sound: &[f32]| sound.iter().map(|it| it * it).sum::<f32>();
    assert!(energy(rig.last(2, 50)) > 10.0);
}

#[test]
fn a_second_one_is_mixed_and_the_first_relayed_again_when_alone() {
    let mut rig = room(MONO_16, participant());
    assert!(relayed(&mut rig, 50) >= 49);
    let before = rig.room.stats().relayed;
    for _ in 0..50 {
        rig.send_speech(1, 0.7);
        rig.send_tone(2, 400.0, 0.3);
        rig.tick();
    }
    assert!(rig.room.stats().relayed - before <= 2);
    assert!(rig.hears(3, 400.0) > 0.2);
    // The second one keeps its place for half a second, and nobody else is heard for another.
    assert!(relayed(&mut rig, 150) > 50);
    assert_eq!(relayed(&mut rig, 50), 50);
}

#[test]
fn what_cannot_be_heard_as_it_is_is_mixed() {
    let stereo = Format {
        channels: Channels::Stereo,
        ..MONO_16
    };
    let encodings = [
        Encoding {
            // A mix with so few bits sounds different.
            bitrate: Some(12_000),
            ..ENCODING
        },
        Encoding {
            bitrate: Some(80_000),
            ..ENCODING
        },
        Encoding {
            fec: true,
            expected_loss: 10,
            ..ENCODING
        },
        Encoding {
            codec: AudioCodec::Pcmu,
            ..ENCODING
        },
    ];
    let mut options: Vec<_> = encodings
        .into_iter()
        .map(|encoding| {
            let options = ParticipantOptions {
                encoding,
                ..participant()
            };
            (MONO_16, options)
        })
        .collect();
    options.push((stereo, participant()));
    options.extend(
        [(0.5, true, false), (1.0, false, false), (1.0, true, true)].map(
            |(gain, levels, denoise)| {
                let options = ParticipantOptions {
                    gain,
                    levels,
                    denoise,
                    ..participant()
                };
                (MONO_16, options)
            },
        ),
    );
    for (format, options) in options {
        let mut rig = room(format, options.clone());
        rig.levels = options.levels;
        // The size of packets is known after some.
        speak(&mut rig, 50);
        assert_eq!(relayed(&mut rig, 100), 0, "{options:?}");
        assert!(rig.room.stats().decoded > 50, "{options:?}");
    }
    // A wider bandwidth than the room's, and music.
    for (rate, application) in [
        (SampleRate::Hz48000, opusic_c::Application::Voip),
        (SampleRate::Hz16000, opusic_c::Application::LowDelay),
    ] {
        let mut rig = room(MONO_16, participant());
        let format = Format {
            rate,
            channels: Channels::Mono,
        };
        let mut encoder = opusic_c::Encoder::new(
            opusic_c::Channels::Mono,
            match rate {
                SampleRate::Hz48000 => opusic_c::SampleRate::Hz48000,
                _ => opusic_c::SampleRate::Hz16000,
            },
            application,
        )
        .expect("an encoder");
        encoder
            .set_bitrate(opusic_c::Bitrate::Value(30_000))
            .expect("a bitrate");
        rig.sends_by(1, Way::Opus(encoder));
        for frame in 0..100 {
            let sound = speech(format, 1, 0.7, frame);
            rig.send(1, &sound);
            rig.tick();
        }
        assert_eq!(rig.room.stats().relayed, 0, "{rate:?} {application:?}");
    }
}

#[test]
fn packets_are_not_much_larger_than_was_asked_for() {
    for (sent, alike) in [(16_000, true), (56_000, false)] {
        let encoding = Encoding {
            bitrate: Some(16_000),
            ..ENCODING
        };
        let options = ParticipantOptions {
            encoding,
            ..participant()
        };
        let mut rig = room(MONO_16, options);
        let mut encoder = caller(MONO_16, sent);
        encoder.set_vbr(false).expect("a constant bitrate");
        rig.sends_by(1, Way::Opus(encoder));
        // The size of packets is known after some.
        speak(&mut rig, 100);
        assert_eq!(relayed(&mut rig, 100) > 0, alike, "{sent} bit/s");
    }
}

/// The audio of an endless announcement.
struct Announced(opusic_c::Encoder);

impl AnnouncementSource for Announced {
    fn next_packet(&mut self, packet: &mut Vec<u8>) -> NextPacket {
        packet.resize(1_276, 0);
        let sound = rig::tone(MONO_16, 700.0, 0.2, 0);
        let length = self.0.encode_float_to_slice(&sound, packet);
        packet.truncate(length.expect("a packet"));
        NextPacket::Packet
    }
}

#[test]
fn whatever_else_is_heard_or_wanted_ends_it() {
    type Change = fn(&mut Rig);
    let changes: [(&str, Change); 5] = [
        ("a recording", |rig| {
            rig.room.listen(None, true).expect("all are heard");
        }),
        ("an announcement", |rig| {
            let source = Announced(caller(MONO_16, 24_000));
            let id = AnnouncementId(1);
            rig.room
                .announce(id, None, Box::new(source))
                .expect("a voice");
        }),
        ("a group", |rig| {
            let group = Mixture::Group(0);
            rig.room
                .subscribe(group, ENCODING, false)
                .expect("the group");
        }),
        ("a telephone", |rig| {
            let encoding = Encoding {
                codec: AudioCodec::Pcma,
                ..ENCODING
            };
            let options = ParticipantOptions {
                encoding,
                ..participant()
            };
            rig.join(4, options);
        }),
        ("a volume", |rig| {
            let options = ParticipantOptions {
                gain: 0.5,
                ..participant()
            };
            rig.room.set(ParticipantId(1), options).expect("there");
        }),
    ];
    for (what, change) in changes {
        let mut rig = room(MONO_16, participant());
        assert!(relayed(&mut rig, 50) > 40, "{what}");
        change(&mut rig);
        relayed(&mut rig, 1);
        assert_eq!(relayed(&mut rig, 100), 0, "{what}");
    }
}

#[test]
fn who_is_muted_or_leaves_falls_silent() {
    for leaves in [false, true] {
        let mut rig = room(MONO_16, participant());
        assert!(relayed(&mut rig, 50) > 40);
        if leaves {
            rig.leave(1);
        } else {
            let options = ParticipantOptions {
                muted: true,
                ..participant()
            };
            rig.room.set(ParticipantId(1), options).expect("there");
        }
        assert_eq!(relayed(&mut rig, 20), 0);
        assert!(rig.last(2, 10).iter().all(|it| it.abs() < 1e-2));
    }
}

/// The number of a packet, its payload, and its level.
type Sent = (u64, Vec<u8>, u8);

/// A talker whose packets come at irregular times: the packets at each tick, and the results.
struct Network {
    rig: Rig,
    encoder: opusic_c::Encoder,
    sent: u64,
}

impl Network {
    fn new() -> Self {
        Network {
            rig: room(MONO_16, participant()),
            encoder: caller(MONO_16, 24_000),
            sent: 0,
        }
    }

    fn make(&mut self) -> Sent {
        let sound = speech(MONO_16, 1, 0.7, self.sent);
        let mut payload = vec![0; 1_276];
        let length = self.encoder.encode_float_to_slice(&sound, &mut payload);
        payload.truncate(length.expect("a packet"));
        self.sent += 1;
        (self.sent, payload, level::level(&sound))
    }

    fn push(&mut self, (seq, payload, level): &Sent) {
        let packet = IncomingPacket {
            seq: *seq,
            timestamp: *seq as u32 * 960,
            payload,
            content: Content::Codec,
            level: Some(*level),
            arrival: self.rig.now,
        };
        self.rig.room.push(ParticipantId(1), &packet);
    }
}

#[test]
fn a_lost_packet_is_left_out() {
    let mut network = Network::new();
    for frame in 0..300 {
        let packet = network.make();
        if frame % 40 != 37 {
            network.push(&packet);
        }
        network.rig.tick();
    }
    let stats = network.rig.room.stats();
    assert!(stats.relayed > 280, "{stats:?}");
    assert!(stats.decoded < 10, "{stats:?}");
    let mix = network.rig.mix_of(2).expect("a mix");
    let sent = network.rig.log.packets.iter();
    let sent = sent.filter(|packet| packet.mix == mix && packet.tick > 50);
    assert_eq!(sent.count(), 330 - 50 - 7);
}

#[test]
fn drift_and_jitter_leave_the_delay_as_it_should_be() {
    // Clocks that are off by 2 in 1000, and jitter of up to 60 ms in the second half.
    for drift in [0.998, 1.002] {
        let mut network = Network::new();
        let start = network.rig.now;
        let mut held: Vec<(u64, Sent)> = Vec::new();
        let mut most = 0;
        for tick in 0..3_000_u64 {
            let elapsed = (network.rig.now - start).as_secs_f64() / FRAME.as_secs_f64();
            while (network.sent as f64) < elapsed * drift {
                let packet = network.make();
                let jitter = if tick > 1_500 { tick * 7_919 % 4 } else { 0 };
                held.push((tick + jitter, packet));
            }
            let due: Vec<_> = held.extract_if(.., |(at, _)| *at <= tick).collect();
            for (_, packet) in &due {
                network.push(packet);
            }
            network.rig.tick();
            if tick > 200 {
                let state = network.rig.room.participant(ParticipantId(1));
                let receiver = state.and_then(|state| state.receiver).expect("it sends");
                let over = receiver.delay_ms.saturating_sub(receiver.target_ms);
                most = most.max(over);
            }
        }
        let stats = network.rig.room.stats();
        assert!(most <= 90, "{most} ms more than it should be");
        assert!(stats.relayed > 1_500, "{stats:?}");
    }
}

#[test]
fn who_stalls_for_a_moment_is_heard_as_it_is_all_the_same() {
    for (every, length) in [(12, 1), (25, 2), (50, 3)] {
        let mut network = Network::new();
        let mut held: Vec<Sent> = Vec::new();
        for tick in 0..500_u64 {
            held.push(network.make());
            // Delayed packets come all at once.
            if tick % every >= length {
                held.drain(..).for_each(|packet| network.push(&packet));
            }
            network.rig.tick();
        }
        let stats = network.rig.room.stats();
        assert!(stats.relayed > 480, "{length} of {every}: {stats:?}");
        assert_eq!(stats.decoded, 0, "{length} of {every}: {stats:?}");
    }
}

#[test]
fn a_thread_without_time_relays_at_once() {
    let mut network = Network::new();
    let mut held: Vec<Sent> = Vec::new();
    for _ in 0..100 {
        let packet = network.make();
        network.push(&packet);
        network.rig.tick();
    }
    // Each time five frames are skipped, and their packets come.
    for round in 0..20 {
        for _ in 0..5 {
            held.push(network.make());
            network.rig.now += FRAME;
        }
        held.drain(..).for_each(|packet| network.push(&packet));
        network.rig.room.skip(5);
        let before = network.rig.room.stats();
        for _ in 0..3 {
            let packet = network.make();
            network.push(&packet);
            network.rig.tick();
        }
        let stats = network.rig.room.stats();
        assert_eq!(
            stats.relayed - before.relayed,
            3,
            "round {round}: {stats:?}"
        );
        assert_eq!(stats.decoded, before.decoded, "round {round}");
    }
}
