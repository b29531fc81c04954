//! The output of an assembler: frames, their order, and notes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use portunus_files::Codec;
use portunus_files::assembly::{
    Arrived, Assembler, Coded, GapReason, Note, PartReason, Plan, PlannedTrack, Report, Step,
    StreamKey,
};
use portunus_files::bitstream::Setup;
use portunus_files::container::Rotation;
use portunus_rtp::SeqNo;
use proptest::prelude::*;

const SOUND: usize = 0;
const PICTURE: usize = 1;

/// The output.
#[derive(Debug, Clone, PartialEq)]
enum Out {
    Setup(usize, &'static str, Rotation),
    /// The track, the time in ms, and the last byte.
    Frame(usize, u128, u8),
    Part(PartReason),
    Keyframe(usize),
    Note(usize, Note),
}

fn steps(assembler: &mut Assembler) -> Vec<Out> {
    let mut out = Vec::new();
    while let Some(step) = assembler.step() {
        out.push(match step {
            Step::Setup { track, setup } => {
                Out::Setup(track, setup.setup.codec().name(), setup.rotation)
            }
            Step::Frame(frame) => Out::Frame(
                frame.track,
                frame.at.as_millis(),
                *frame.data.last().unwrap(),
            ),
            Step::NewPart { why } => Out::Part(why),
            Step::WantKeyframe { track } => Out::Keyframe(track),
            Step::Note { track, note } => Out::Note(track, note),
        });
    }
    out
}

fn frames(out: &[Out], of: usize) -> Vec<(u128, u8)> {
    let frame = |out: &Out| match out {
        Out::Frame(track, at, byte) if *track == of => Some((*at, *byte)),
        _ => None,
    };
    out.iter().filter_map(frame).collect()
}

/// A participant whose packets arrive without delay.
struct Call {
    assembler: Assembler,
    out: Vec<Out>,
}

impl Call {
    fn new(codecs: &[Codec]) -> Self {
        let planned = |codec: &Codec| PlannedTrack {
            codec: *codec,
            fmtp: None,
            open: true,
        };
        let plan = Plan {
            tracks: codecs.iter().map(planned).collect(),
            ..Plan::default()
        };
        Self {
            assembler: Assembler::new(plan),
            out: Vec::new(),
        }
    }

    fn push(&mut self, track: usize, arrived: &Arrived<'_>) {
        self.assembler.push(track, arrived);
        self.out.extend(steps(&mut self.assembler));
    }

    /// The n-th 20 ms of audio.
    fn sound(&mut self, n: u64) {
        self.push(SOUND, &sound(n, &[0xfc, 1, 2, 3, n as u8]));
    }

    /// The n-th frame of VP8, with 30 per second, in one packet.
    fn picture(&mut self, n: u64, keyframe: bool) {
        self.turned(n, keyframe, None);
    }

    fn turned(&mut self, n: u64, keyframe: bool, rotation: Option<Rotation>) {
        let arrived = Arrived {
            rotation,
            ..arrived(n, n * 33, (n * 33 * 90) as u32, Codec::Vp8, &[])
        };
        let payload = vp8(keyframe, 640, n as u8);
        self.push(
            PICTURE,
            &Arrived {
                payload: &payload,
                ..arrived
            },
        );
    }

    fn end(mut self) -> Vec<Out> {
        self.assembler.end();
        self.out.extend(steps(&mut self.assembler));
        self.out
    }
}

fn arrived(seq: u64, ms: u64, timestamp: u32, codec: Codec, payload: &[u8]) -> Arrived<'_> {
    Arrived {
        at: Duration::from_millis(ms),
        stream: StreamKey(0),
        seq: SeqNo(seq),
        timestamp,
        marker: true,
        encoding: 0,
        codec: Coded::Codec(codec),
        payload,
        level: None,
        rotation: None,
        capture: None,
    }
}

fn sound(n: u64, payload: &[u8]) -> Arrived<'_> {
    arrived(n, n * 20, n as u32 * 960, Codec::Opus, payload)
}

fn vp8(keyframe: bool, width: u16, last: u8) -> Vec<u8> {
    let [low, high] = width.to_le_bytes();
    let tag = u8::from(!keyframe);
    vec![
        0x10, tag, 0, 0, 0x9d, 0x01, 0x2a, low, high, 0xe0, 1, 9, last,
    ]
}

#[test]
fn a_file_begins_when_each_track_is_known() {
    let mut call = Call::new(&[Codec::Opus, Codec::Vp8]);
    for n in 0..10 {
        call.sound(n);
    }
    assert_eq!(call.out, []);
    call.picture(7, true);
    let setups = [
        Out::Setup(SOUND, "opus", Rotation::R0),
        Out::Setup(PICTURE, "VP8", Rotation::R0),
    ];
    assert_eq!(call.out[..2], setups);
    assert_eq!(call.assembler.started(), Some(Duration::ZERO));
    let out = call.end();
    assert_eq!(frames(&out, SOUND).len(), 10);
    assert_eq!(frames(&out, PICTURE), [(231, 7)]);
}

#[test]
fn a_track_that_does_not_come_is_waited_for_a_second_and_a_half_and_may_come_later() {
    let mut call = Call::new(&[Codec::Opus, Codec::Vp8]);
    for n in 0..75 {
        call.sound(n);
    }
    assert_eq!(call.out, []);
    call.sound(75);
    assert_eq!(call.out[0], Out::Setup(SOUND, "opus", Rotation::R0));
    assert!(frames(&call.out, SOUND).len() > 70);
    call.picture(60, true);
    let out = call.end();
    assert!(out.contains(&Out::Setup(PICTURE, "VP8", Rotation::R0)));
    assert_eq!(frames(&out, PICTURE), [(1_980, 60)]);
}

#[test]
fn frames_of_all_tracks_are_in_the_order_of_their_times() {
    let mut call = Call::new(&[Codec::Opus, Codec::Vp8]);
    call.picture(0, true);
    // Audio comes in bursts.
    for heap in 0..10 {
        for n in 0..10 {
            call.sound(heap * 10 + n);
        }
        for n in 1..=6 {
            call.picture(heap * 6 + n, false);
        }
    }
    let out = call.end();
    let times: Vec<u128> = (out.iter())
        .filter_map(|out| match out {
            Out::Frame(_, at, _) => Some(*at),
            _ => None,
        })
        .collect();
    assert_eq!(times.len(), 161);
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn nobody_waits_for_who_is_silent_or_closed() {
    let mut call = Call::new(&[Codec::Opus, Codec::Vp8]);
    call.picture(0, true);
    for n in 0..50 {
        call.sound(n);
    }
    // Available frames wait for a second.
    assert_eq!(frames(&call.out, SOUND).last(), Some(&(0, 0)));
    for n in 50..60 {
        call.sound(n);
    }
    assert_eq!(frames(&call.out, SOUND).last(), Some(&(1_180, 59)));
    call.picture(36, false);
    call.assembler
        .gate(PICTURE, false, Duration::from_millis(1_200));
    call.sound(60);
    assert_eq!(frames(&call.out, SOUND).last(), Some(&(1_200, 60)));
}

#[test]
fn a_lost_picture_takes_those_that_build_on_it_and_a_keyframe_is_asked_for() {
    let mut call = Call::new(&[Codec::Opus, Codec::Vp8]);
    call.assembler.end_track(SOUND);
    call.picture(0, true);
    for n in (1..10).chain(11..80) {
        call.picture(n, false);
    }
    call.picture(80, true);
    call.picture(81, false);
    let out = call.end();
    let asked = out.iter().filter(|out| **out == Out::Keyframe(PICTURE));
    assert_eq!(asked.count(), 2);
    let numbers: Vec<u8> = frames(&out, PICTURE).iter().map(|frame| frame.1).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 80, 81]);
    let gap = Note::Gap {
        from: Duration::from_millis(9 * 33),
        to: Duration::from_millis(80 * 33),
        why: GapReason::Loss,
    };
    assert!(out.contains(&Out::Note(PICTURE, gap)), "{out:?}");
}

#[test]
fn what_waits_for_late_packets_when_a_gate_is_closed_comes_before_that() {
    let mut call = Call::new(&[Codec::Opus, Codec::Vp8]);
    call.assembler.end_track(SOUND);
    call.picture(0, true);
    // The third frame is missing, and the next one depends on it.
    for (n, keyframe) in [(1, false), (3, true), (4, false)] {
        call.picture(n, keyframe);
    }
    let at = |n: u64| Duration::from_millis(n * 33);
    call.assembler.gate(PICTURE, false, at(5));
    call.assembler.gate(PICTURE, true, at(60));
    call.picture(61, true);
    let numbers = frames(&call.end(), PICTURE);
    let numbers: Vec<u8> = numbers.iter().map(|frame| frame.1).collect();
    assert_eq!(numbers, [0, 1, 3, 4, 61]);
}

#[test]
fn lost_sound_is_taken_from_redundant_audio() {
    let mut call = Call::new(&[Codec::Opus]);
    for n in 0..20_u8 {
        let primary = [0xfc, 1, 2, 3, n];
        let mut payload = vec![0xef, (960_u32 >> 6) as u8, 0, 5, 0x6f];
        payload.extend([0xfc, 1, 2, 3, n.wrapping_sub(1)]);
        payload.extend(primary);
        let red = Arrived {
            codec: Coded::Red,
            ..sound(n.into(), &payload)
        };
        // One is lost, and later two.
        if ![5, 11, 12].contains(&n) {
            call.push(SOUND, &red);
        }
    }
    call.assembler.end();
    let stats = call.assembler.stats(SOUND);
    let out = call.end();
    let played: Vec<u8> = frames(&out, SOUND).iter().map(|frame| frame.1).collect();
    // A missing packet becomes one that a decoder conceals.
    let expected: Vec<u8> = (0..20).map(|n| if n == 11 { 1 } else { n }).collect();
    assert_eq!(played, expected);
    assert_eq!((stats.lost, stats.packets), (1, 17));
}

#[test]
fn another_codec_and_another_rotation_begin_another_part() {
    let mut call = Call::new(&[Codec::Opus, Codec::Vp8]);
    call.picture(0, true);
    for n in 0..10 {
        call.sound(n);
    }
    for n in 1..5 {
        call.picture(n, false);
    }
    call.turned(5, false, Some(Rotation::R90));
    assert!(call.out.contains(&Out::Keyframe(PICTURE)));
    call.turned(6, true, Some(Rotation::R90));
    for n in 10..20 {
        call.sound(n);
    }
    call.picture(7, false);
    for n in 20..30 {
        let pcm = [0xff; 160];
        call.push(
            SOUND,
            &arrived(n, n * 20, n as u32 * 160, Codec::Pcmu, &pcm),
        );
    }
    let out = call.end();
    let shape: Vec<&Out> = (out.iter())
        .filter(|out| matches!(out, Out::Setup(..) | Out::Part(_)))
        .collect();
    let expected = [
        Out::Setup(SOUND, "opus", Rotation::R0),
        Out::Setup(PICTURE, "VP8", Rotation::R0),
        Out::Part(PartReason::Rotation),
        Out::Setup(PICTURE, "VP8", Rotation::R90),
        Out::Setup(SOUND, "opus", Rotation::R0),
        Out::Part(PartReason::Codec),
        Out::Setup(SOUND, "PCMU", Rotation::R0),
    ];
    assert_eq!(shape, expected.iter().collect::<Vec<_>>());
    assert_eq!(frames(&out, SOUND).len(), 30);
}

#[test]
fn a_film_is_as_large_as_its_largest_picture() {
    let mut assembler = Assembler::new(Plan {
        tracks: vec![PlannedTrack {
            codec: Codec::Vp8,
            fmtp: None,
            open: true,
        }],
        ..Plan::default()
    });
    let mut told = Vec::new();
    for (n, width) in [320, 1_280, 640, 1_280].into_iter().enumerate() {
        let n = n as u64;
        let payload = vp8(true, width, n as u8);
        let stamp = (n * 33 * 90) as u32;
        assembler.push(0, &arrived(n, n * 33, stamp, Codec::Vp8, &payload));
    }
    assembler.end();
    while let Some(step) = assembler.step() {
        if let Step::Setup { setup, .. } = step {
            told.push(setup.picture.unwrap().width);
        }
    }
    assert_eq!(told, [320, 1_280]);
}

#[test]
fn what_is_recorded_needs_no_ticks() {
    let mut call = Call::new(&[Codec::Pcma]);
    for n in (0..100).filter(|n| n % 10 != 3) {
        let pcm = [n as u8; 160];
        call.push(
            SOUND,
            &arrived(n, n * 20, n as u32 * 160, Codec::Pcma, &pcm),
        );
    }
    let out = call.end();
    let samples = frames(&out, SOUND);
    assert_eq!(samples.len(), 100);
    assert!(
        samples
            .iter()
            .all(|(at, byte)| at / 20 % 10 != 3 || *byte == 0xd5)
    );
}

#[test]
fn talk_is_told() {
    let mut call = Call::new(&[Codec::Opus]);
    for n in 0..200 {
        let level = if (50..100).contains(&n) { 20 } else { 80 };
        let payload = [0xfc, 1, 2, 3, 4];
        call.push(
            SOUND,
            &Arrived {
                level: Some(level),
                ..sound(n, &payload)
            },
        );
    }
    let talks = Note::Talks {
        from: Duration::from_millis(1_000),
        to: Duration::from_millis(2_000),
    };
    assert!(call.end().contains(&Out::Note(SOUND, talks)));
}

#[test]
fn parameter_sets_of_sdp_are_enough_for_a_keyframe_without() {
    let sets = "packetization-mode=1;sprop-parameter-sets=Z0LAHtkAoD2wFqDAwMA=,aMuDyyA=";
    let mut assembler = Assembler::new(Plan {
        tracks: vec![PlannedTrack {
            codec: Codec::H264,
            fmtp: Some(sets.to_owned()),
            open: true,
        }],
        ..Plan::default()
    });
    assembler.push(0, &arrived(0, 0, 0, Codec::H264, &[0x65, 0x88, 1]));
    let Some(Step::Setup { setup, .. }) = assembler.step() else {
        panic!("no setup");
    };
    assert!(matches!(setup.setup, Setup::H264 { sps, .. } if sps.len() == 1));
    assert!(setup.picture.is_some());
}

/// Any event of an assembler.
#[derive(Debug, Clone)]
enum Event {
    Packet {
        track: usize,
        at: u64,
        stream: u32,
        seq: u64,
        timestamp: u32,
        codec: usize,
        payload: Vec<u8>,
        flags: u8,
    },
    Report {
        track: usize,
        at: u64,
        stream: u32,
        ntp: u64,
        timestamp: u32,
    },
    Gate {
        track: usize,
        open: bool,
        at: u64,
    },
    Tick(u64),
    Overrun(usize),
    EndTrack(usize),
}

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

fn any_event() -> impl Strategy<Value = Event> {
    let payload = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        any::<(bool, u8)>().prop_map(|(key, width)| vp8(key, width.into(), 1)),
        Just(vec![0xfc, 1, 2, 3]),
    ];
    let at = prop_oneof![8 => 0..20_000_u64, 1 => any::<u64>()];
    let seq = prop_oneof![8 => 0..300_u64, 1 => any::<u64>()];
    let timestamp = prop_oneof![4 => 0..2_000_000_u32, 1 => any::<u32>()];
    let packet = (
        0..3_usize,
        at,
        0..4_u32,
        seq,
        timestamp,
        0..10_usize,
        payload,
        any::<u8>(),
    );
    let packet = packet.prop_map(
        |(track, at, stream, seq, timestamp, codec, payload, flags)| {
            // Mostly the codec of the track.
            let codec = if flags & 0x70 == 0 {
                codec
            } else {
                track.min(1)
            };
            Event::Packet {
                track,
                at,
                stream,
                seq,
                timestamp,
                codec,
                payload,
                flags,
            }
        },
    );
    let report = (
        0..3_usize,
        0..20_000_u64,
        0..4_u32,
        any::<u64>(),
        any::<u32>(),
    );
    let report = report.prop_map(|(track, at, stream, ntp, timestamp)| Event::Report {
        track,
        at,
        stream,
        ntp,
        timestamp,
    });
    prop_oneof![
        20 => packet,
        2 => report,
        1 => (0..3_usize, any::<bool>(), 0..20_000_u64)
            .prop_map(|(track, open, at)| Event::Gate { track, open, at }),
        2 => (0..20_000_u64).prop_map(Event::Tick),
        1 => (0..3_usize).prop_map(Event::Overrun),
        1 => (0..6_usize).prop_map(Event::EndTrack),
    ]
}

/// The guarantees for a container.
#[derive(Debug, Default)]
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_comes_makes_a_file(events in proptest::collection::vec(any_event(), 0..300)) {
        let mut assembler = Call::new(&[Codec::Opus, Codec::Vp8]).assembler;
        let mut promised = Promised::default();
        for event in events {
            match event {
                Event::Packet { track, at, stream, seq, timestamp, codec, payload, flags } => {
                    assembler.push(track, &Arrived {
                        at: Duration::from_millis(at),
                        stream: StreamKey(stream),
                        seq: SeqNo(seq),
                        timestamp,
                        marker: flags & 1 != 0,
                        encoding: flags & 2,
                        codec: CODECS[codec],
                        payload: &payload,
                        level: (flags & 4 != 0).then_some(flags),
                        rotation: (flags & 8 != 0).then_some(Rotation::R180),
                        capture: (flags & 0x0f == 3).then_some(at << 22),
                    });
                }
                Event::Report { track, at, stream, ntp, timestamp } => {
                    let at = Duration::from_millis(at);
                    let stream = StreamKey(stream);
                    assembler.report(track, &Report { at, stream, ntp, timestamp, rtt: Some(at) });
                }
                Event::Gate { track, open, at } => assembler.gate(track, open, Duration::from_millis(at)),
                Event::Tick(at) => assembler.tick(Duration::from_millis(at)),
                Event::Overrun(track) => assembler.overrun(track),
                Event::EndTrack(track) => assembler.end_track(track),
            }
            promised.check(&mut assembler);
        }
        assembler.end();
        promised.check(&mut assembler);
        prop_assert!(assembler.step().is_none());
    }
}
