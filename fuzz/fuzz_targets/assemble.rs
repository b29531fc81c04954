#![no_main]
//! Frames assembled from packets. Each event is ten bytes (kind, track, stream, number, two of the
//! timestamp, two of the passing time, flags, a length) and its payload. Checks what containers
//! rely on.

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use portunus_files::Codec;
use portunus_files::assembly::{
    Arrived, Assembler, Coded, Plan, PlannedTrack, Report, Step, StreamKey,
};
use portunus_files::container::Rotation;
use portunus_rtp::SeqNo;

const CODECS: [Coded; 10] = [
    Coded::Codec(Codec::Opus),
    Coded::Codec(Codec::Vp8),
    Coded::Codec(Codec::Pcmu),
    Coded::Codec(Codec::Pcma),
    Coded::Codec(Codec::Vp9),
    Coded::Codec(Codec::Av1),
    Coded::Codec(Codec::H264),
    Coded::Codec(Codec::H265),
    Coded::Red,
    Coded::Other,
];

#[derive(Default)]
struct Promised {
    is_set: [bool; 2],
    last: [Duration; 2],
    front: Duration,
}

impl Promised {
    fn check(&mut self, assembler: &mut Assembler) {
        while let Some(step) = assembler.step() {
            match step {
                Step::Setup { track, .. } => self.is_set[track] = true,
                Step::NewPart { .. } => *self = Self::default(),
                Step::Frame(frame) => {
                    assert!(self.is_set[frame.track]);
                    assert!(frame.at >= self.last[frame.track]);
                    assert!(frame.at + Duration::from_secs(1) >= self.front);
                    self.last[frame.track] = frame.at;
                    self.front = self.front.max(frame.at);
                }
                Step::WantKeyframe { .. } | Step::Note { .. } => {}
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let planned = |codec| PlannedTrack {
        codec,
        fmtp: None,
        open: true,
    };
    let mut assembler = Assembler::new(Plan {
        tracks: vec![planned(Codec::Opus), planned(Codec::Vp8)],
        ..Plan::default()
    });
    let mut promised = Promised::default();
    let mut at = Duration::ZERO;
    let mut seq = [1_000_u64; 2];
    let mut rest = data;
    while let [
        what,
        track,
        stream,
        number,
        high,
        low,
        slow,
        fast,
        flags,
        len,
        behind @ ..,
    ] = rest
    {
        let (payload, behind) = behind.split_at(usize::from(*len).min(behind.len()));
        rest = behind;
        at += Duration::from_millis(u64::from(u16::from_be_bytes([*slow, *fast])));
        let index = usize::from(track & 1);
        let stream = StreamKey(u32::from(stream & 3));
        let timestamp = u32::from(u16::from_be_bytes([*high, *low])) << (flags >> 4);
        match what {
            0..=199 => {
                // A little before or after the last one.
                seq[index] =
                    seq[index].saturating_add_signed(i64::from(number.cast_signed()) / 16 + 1);
                let arrived = Arrived {
                    at,
                    stream,
                    seq: SeqNo(seq[index]),
                    timestamp,
                    marker: flags & 1 != 0,
                    encoding: flags & 2,
                    codec: match *what {
                        0..=149 => CODECS[index],
                        what => CODECS[usize::from(what) % CODECS.len()],
                    },
                    payload,
                    level: (flags & 4 != 0).then_some(*number),
                    rotation: (flags & 8 != 0).then_some(Rotation::R90),
                    capture: (flags & 0x0c == 0x0c).then_some(u64::from(timestamp) << 20),
                };
                assembler.push(index, &arrived);
            }
            200..=219 => assembler.report(
                index,
                &Report {
                    at,
                    stream,
                    ntp: u64::from(*number) << 56 | at.as_secs() << 32,
                    timestamp,
                    rtt: Some(Duration::from_millis((*number).into())),
                },
            ),
            220..=229 => assembler.gate(index, flags & 1 != 0, at),
            230..=249 => assembler.tick(at),
            250..=252 => assembler.overrun(index),
            253..=254 => assembler.end_track(index),
            255 => assembler.end(),
        }
        promised.check(&mut assembler);
    }
    assembler.end();
    promised.check(&mut assembler);
    assert!(assembler.step().is_none());
});
