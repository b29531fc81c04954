//! A participant's packets in Opus, G.711, or as redundant audio (RFC 2198). Whatever arrives, a
//! frame consists of finite numbers.
//!
//! The first byte chooses the codec and the format. Steps follow: a byte that chooses the action,
//! and for a packet the steps of sequence number and time, a length and the payload.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use portunus_dsp::{
    AudioCodec, Channels, Content, Format, IncomingPacket, Played, Receiver, ReceiverOptions,
    SampleRate,
};

fuzz_target!(|data: &[u8]| {
    let Some((&kind, mut rest)) = data.split_first() else {
        return;
    };
    let codec = [
        AudioCodec::Opus,
        AudioCodec::Pcma,
        AudioCodec::Pcmu,
        AudioCodec::Opus,
    ][usize::from(kind & 3)];
    let rates = [
        SampleRate::Hz8000,
        SampleRate::Hz12000,
        SampleRate::Hz16000,
        SampleRate::Hz24000,
        SampleRate::Hz48000,
    ];
    let rate = rates[usize::from(kind >> 2 & 15) % rates.len()];
    let channels = if kind & 0x80 != 0 {
        Channels::Stereo
    } else {
        Channels::Mono
    };
    let format = Format { rate, channels };
    let mut receiver = Receiver::new(ReceiverOptions { codec, format });
    let mut frame = vec![0.0; format.frame_len()];
    let (mut seq, mut timestamp) = (1_000_u64, 0_u32);
    let mut now = Instant::now();
    while let Some((&step, after)) = rest.split_first() {
        rest = after;
        match step & 7 {
            0..=3 => {
                let Some((&[ahead, high, low, len], after)) = rest.split_first_chunk() else {
                    return;
                };
                let (payload, after) = after.split_at(usize::from(len).min(after.len()));
                rest = after;
                seq = seq.wrapping_add_signed(i64::from(ahead.cast_signed()));
                timestamp = timestamp
                    .wrapping_add_signed(i32::from(i16::from_be_bytes([high, low])) << (step >> 4));
                receiver.push(&IncomingPacket {
                    seq,
                    timestamp,
                    payload,
                    content: if step & 3 == 3 {
                        Content::Red
                    } else {
                        Content::Codec
                    },
                    level: (step & 8 != 0).then_some(step >> 1),
                    arrival: now,
                });
            }
            4 | 5 => {
                let played = receiver.play(now, &mut frame);
                assert!(frame.iter().all(|sample| sample.is_finite()));
                assert!(played != Played::Silence || frame.iter().all(|sample| *sample == 0.0));
                now += Duration::from_millis(20);
            }
            6 => {
                receiver.due_level(now);
                receiver.skip(now);
                now += Duration::from_millis(20);
            }
            _ => now += Duration::from_millis(1 << (step >> 4)),
        }
    }
});
