//! Streams that end, restart and jump, and invalid ones.

use std::time::Duration;

use portunus_dsp::{
    AudioCodec, Channels, Content, Format, IncomingPacket, Played, Receiver, ReceiverOptions,
    SampleRate,
};
use proptest::prelude::*;

use crate::call::{Call, PLAIN, Sent, opus};
use crate::speech::speech;

const WIDEBAND: Format = Format {
    rate: SampleRate::Hz16000,
    channels: Channels::Mono,
};

/// Two seconds of speech, then two more with packets that `change` has changed.
fn changed(change: impl Fn(Sent) -> Sent) -> Vec<Sent> {
    let sent = opus(&speech(4.0), PLAIN);
    let (first, second) = sent.split_at(100);
    first
        .iter()
        .cloned()
        .chain(second.iter().cloned().map(change))
        .collect()
}

/// A change of a packet.
type Change = fn(Sent) -> Sent;

#[test]
fn streams_that_jump_are_heard_on() {
    let changes: [(&str, Change); 5] = [
        ("a timestamp ahead", |sent| Sent {
            timestamp: sent.timestamp.wrapping_add(1_000_000_000),
            ..sent
        }),
        ("a timestamp back", |sent| Sent {
            timestamp: sent.timestamp.wrapping_sub(1_000_000),
            ..sent
        }),
        ("another stream ahead", |sent| Sent {
            seq: sent.seq + 1_000_000,
            timestamp: sent.timestamp ^ 0x5555_0000,
            ..sent
        }),
        ("another stream back", |sent| Sent {
            seq: sent.seq - 100,
            timestamp: sent.timestamp ^ 0x5555_0000,
            ..sent
        }),
        ("a timestamp that wraps", |sent| sent),
    ];
    for (what, change) in changes {
        let mut call = Call::new(AudioCodec::Opus, WIDEBAND);
        let mut sent = changed(change);
        if what == "a timestamp that wraps" {
            sent.iter_mut()
                .for_each(|sent| sent.timestamp = sent.timestamp.wrapping_sub(100 * 960));
        }
        if what.starts_with("another stream back") {
            sent.iter_mut()
                .take(100)
                .for_each(|sent| sent.seq += 30_000);
        }
        let heard = call.play(sent);
        let gaps = heard.played[5..195]
            .iter()
            .filter(|played| **played != Played::Sound { concealed: false })
            .count();
        assert!(gaps <= 5, "{what}: {gaps} frames are not whole");
        assert!(heard.delays[190] <= 60, "{what}: {} ms", heard.delays[190]);
    }
}

#[test]
fn what_is_no_packet_is_counted_and_nothing_else() {
    let mut call = Call::new(AudioCodec::Opus, WIDEBAND);
    let mut sent = opus(&speech(4.0), PLAIN);
    let whole = call.play(sent.clone());
    let mut call = Call::new(AudioCodec::Opus, WIDEBAND);
    for index in (0..200).step_by(10) {
        let arrival = sent[index].arrival;
        for payload in [vec![], vec![0xff], vec![0xfb, 0x3f, 1]] {
            sent.push(Sent {
                seq: 1_000_000,
                timestamp: 5,
                payload,
                content: Content::Codec,
                arrival,
            });
        }
        sent.push(Sent {
            seq: 1_000_000,
            timestamp: 5,
            payload: vec![0x80, 1, 2],
            content: Content::Red,
            arrival,
        });
    }
    let heard = call.play(sent);
    assert_eq!(heard.stats.invalid, 80);
    assert_eq!(
        heard.samples, whole.samples,
        "it sounds as if they had not come"
    );
}

/// Endless packets far ahead of their time take no more memory than the limit.
#[test]
fn a_flood_is_thrown_away() {
    let mut call = Call::new(AudioCodec::Opus, WIDEBAND);
    let sent = opus(&speech(1.0), PLAIN);
    for round in 0..1_000 {
        for (index, packet) in sent.iter().enumerate() {
            let number = round * sent.len() + index;
            call.push(&Sent {
                seq: number as u64,
                timestamp: number as u32 * 960,
                arrival: 0,
                ..packet.clone()
            });
        }
    }
    let stats = call.receiver.stats();
    assert!(stats.overflow > 40_000, "{stats:?}");
    let mut frame = [0.0; 320];
    assert!((0..5).all(|tick| matches!(
        call.receiver.play(call.at(tick * 20_000), &mut frame),
        Played::Sound { .. }
    )));
}

#[derive(Debug, Clone)]
enum Step {
    Push {
        seq: u64,
        timestamp: u32,
        payload: Vec<u8>,
        red: bool,
    },
    Play,
    Skip,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        // All kinds of TOCs, before data that is not quite random.
        (any::<u8>(), prop::collection::vec(any::<u8>(), 1..60)).prop_map(|(toc, mut rest)| {
            rest.insert(0, toc & 0xfc);
            rest
        }),
    ];
    prop_oneof![
        4 => (0_u64..300, 0_u32..300, any::<bool>(), payload.clone()).prop_map(|(seq, step, red, payload)| Step::Push { seq, timestamp: step * 480, payload, red }),
        1 => (any::<u64>(), any::<u32>(), any::<bool>(), payload).prop_map(|(seq, timestamp, red, payload)| Step::Push { seq, timestamp, payload, red }),
        4 => Just(Step::Play),
        1 => Just(Step::Skip),
        1 => (0_u64..2_000).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any packets, a frame contains numbers.
    #[test]
    fn any_packets_are_borne(
        steps in prop::collection::vec(step(), 0..120),
        codec in prop_oneof![Just(AudioCodec::Opus), Just(AudioCodec::Pcma), Just(AudioCodec::Pcmu)],
        rate in prop_oneof![Just(SampleRate::Hz8000), Just(SampleRate::Hz12000), Just(SampleRate::Hz16000), Just(SampleRate::Hz24000), Just(SampleRate::Hz48000)],
        channels in prop_oneof![Just(Channels::Mono), Just(Channels::Stereo)],
    ) {
        let format = Format { rate, channels };
        let mut receiver = Receiver::new(ReceiverOptions { codec, format });
        let mut now = std::time::Instant::now();
        let mut frame = vec![0.0; format.frame_len()];
        for step in steps {
            match step {
                Step::Push { seq, timestamp, payload, red } => receiver.push(&IncomingPacket {
                    seq, timestamp, payload: &payload, content: if red { Content::Red } else { Content::Codec }, level: None, arrival: now,
                }),
                Step::Play => {
                    frame.fill(f32::NAN);
                    let played = receiver.play(now, &mut frame);
                    prop_assert!(frame.iter().all(|sample| sample.is_finite()));
                    prop_assert!(played != Played::Silence || frame.iter().all(|sample| *sample == 0.0));
                    now += Duration::from_millis(20);
                }
                Step::Skip => {
                    receiver.due_level(now);
                    receiver.skip(now);
                    now += Duration::from_millis(20);
                }
                Step::Wait(ms) => now += Duration::from_millis(ms),
            }
        }
    }
}
