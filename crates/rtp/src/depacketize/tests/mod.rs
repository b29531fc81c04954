#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod round_trip;

use super::*;
use crate::packetize::{Packetizer, PayloadFormat};

/// An [`Outcome`] that owns its bytes: timestamp, first and last sequence number, and the frame if
/// it is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Out {
    timestamp: u32,
    first: u64,
    last: u64,
    droppable: bool,
    frame: Option<Coded>,
}

impl From<Outcome<'_>> for Out {
    fn from(outcome: Outcome<'_>) -> Self {
        match outcome {
            Outcome::Frame(frame) => Out {
                timestamp: frame.timestamp,
                first: frame.first.0,
                last: frame.last.0,
                droppable: frame.droppable,
                frame: Some((frame.keyframe, frame.data.to_vec())),
            },
            Outcome::Broken {
                timestamp,
                first,
                last,
                droppable,
            } => Out {
                timestamp,
                first: first.0,
                last: last.0,
                droppable,
                frame: None,
            },
        }
    }
}

/// A packet that owns its payload: sequence number, timestamp, marker, payload.
type Packet = (u64, u32, bool, Vec<u8>);

fn depacketize(kind: PayloadKind, packets: &[Packet]) -> Vec<Out> {
    let mut out = Vec::new();
    let mut depacketizer = Depacketizer::new(kind);
    for (seq, timestamp, marker, bytes) in packets {
        let payload = Payload {
            seq: SeqNo(*seq),
            timestamp: *timestamp,
            marker: *marker,
            bytes,
        };
        depacketizer.push(&payload, |outcome| out.push(outcome.into()));
    }
    depacketizer.end(|outcome| out.push(outcome.into()));
    out
}

/// A frame that owns its bytes, and whether it is a keyframe.
type Coded = (bool, Vec<u8>);

/// Packetizes `frames`. The timestamp of frame i is 3000 i.
fn packetize(format: PayloadFormat, max: usize, frames: &[Coded]) -> Vec<Packet> {
    let mut packetizer = Packetizer::with_max_payload(format, max);
    let mut packets: Vec<Packet> = Vec::new();
    for (index, (keyframe, frame)) in frames.iter().enumerate() {
        let emit = |payload: &[u8], last: bool| {
            let seq = 100 + packets.len() as u64;
            packets.push((seq, index as u32 * 3_000, last, payload.to_vec()));
        };
        packetizer.packetize(frame, *keyframe, emit).unwrap();
    }
    packets
}

fn frame(timestamp: u32, first: u64, last: u64, keyframe: bool, data: &[u8]) -> Out {
    Out {
        timestamp,
        first,
        last,
        droppable: false,
        frame: Some((keyframe, data.to_vec())),
    }
}

fn broken(timestamp: u32, first: u64, last: u64) -> Out {
    Out {
        timestamp,
        first,
        last,
        droppable: false,
        frame: None,
    }
}

const KEY: &[u8] = &[0x10, 0x50, 1];
const DELTA: &[u8] = &[0x10, 0x51, 2];

#[test]
fn frames_end_with_the_marker_or_before_the_next_timestamp() {
    let packets = [
        (7, 1, false, KEY.to_vec()),
        (8, 1, true, vec![0x00, 9]),
        (9, 2, false, DELTA.to_vec()),
        (10, 3, true, DELTA.to_vec()),
        (11, 4, false, DELTA.to_vec()),
        // The same timestamp, but another frame by its descriptor.
        (12, 4, true, DELTA.to_vec()),
    ];
    let expected = [
        frame(1, 7, 8, true, &[0x50, 1, 9]),
        frame(2, 9, 9, false, &[0x51, 2]),
        frame(3, 10, 10, false, &[0x51, 2]),
        frame(4, 11, 11, false, &[0x51, 2]),
        frame(4, 12, 12, false, &[0x51, 2]),
    ];
    assert_eq!(depacketize(PayloadKind::Vp8, &packets), expected);
}

#[test]
fn what_lacks_a_packet_is_broken() {
    // The end of frame 1 and the start of frame 2, the middle of 3, all of 4, the end of the
    // stream.
    let packets = [
        (1, 1, false, KEY.to_vec()),
        (4, 2, false, vec![0x00, 9]),
        (5, 2, true, vec![0x00, 9]),
        (6, 3, false, DELTA.to_vec()),
        (8, 3, true, vec![0x00, 9]),
        (10, 5, true, DELTA.to_vec()),
        (11, 6, false, DELTA.to_vec()),
    ];
    let expected = [
        broken(1, 1, 3),
        broken(2, 4, 5),
        broken(3, 6, 8),
        broken(5, 9, 9),
        frame(5, 10, 10, false, &[0x51, 2]),
        broken(6, 11, 11),
    ];
    assert_eq!(depacketize(PayloadKind::Vp8, &packets), expected);
}

#[test]
fn a_broken_frame_says_whether_anything_refers_to_it() {
    let packets = [
        (1, 1, true, KEY.to_vec()),
        (2, 2, false, vec![0x30, 0x51]),
        (4, 2, true, vec![0x20, 9]),
        (5, 3, true, vec![0x30, 0x51]),
        (7, 4, true, DELTA.to_vec()),
    ];
    let out = depacketize(PayloadKind::Vp8, &packets);
    let droppable: Vec<_> = out
        .iter()
        .map(|it| (it.first, it.frame.is_some(), it.droppable))
        .collect();
    let expected = [
        (1, true, false),
        (2, false, true),
        (5, true, true),
        (6, false, false),
        (7, true, false),
    ];
    assert_eq!(droppable, expected);
}

#[test]
fn who_joins_midway_gets_a_broken_frame_first() {
    let packets = [(5, 1, true, vec![0x00, 9]), (6, 2, true, KEY.to_vec())];
    let expected = [broken(1, 5, 5), frame(2, 6, 6, true, &[0x50, 1])];
    assert_eq!(depacketize(PayloadKind::Vp8, &packets), expected);
}

#[test]
fn padding_is_no_loss() {
    let packets = [
        (1, 1, true, KEY.to_vec()),
        (2, 1, false, vec![]),
        (3, 2, false, DELTA.to_vec()),
        (4, 2, false, vec![]),
        (5, 2, true, vec![0x00, 9]),
        (7, 2, false, vec![]),
    ];
    let expected = [
        frame(1, 1, 1, true, &[0x50, 1]),
        frame(2, 3, 5, false, &[0x51, 2, 9]),
        broken(2, 6, 6),
    ];
    assert_eq!(depacketize(PayloadKind::Vp8, &packets), expected);
}

#[test]
fn what_came_already_is_passed_over() {
    let packets = [
        (5, 1, true, KEY.to_vec()),
        (5, 1, true, KEY.to_vec()),
        (4, 1, true, KEY.to_vec()),
    ];
    let expected = [frame(1, 5, 5, true, &[0x50, 1])];
    assert_eq!(depacketize(PayloadKind::Vp8, &packets), expected);
}

#[test]
fn sound_is_a_frame_a_packet() {
    let packets = [
        (1, 960, false, vec![1]),
        (2, 1_920, true, vec![2]),
        (4, 3_840, false, vec![4]),
    ];
    let out = depacketize(PayloadKind::Whole, &packets);
    let found: Vec<_> = out.iter().map(|it| (it.first, it.frame.clone())).collect();
    let expected = [
        (1, Some((true, vec![1]))),
        (2, Some((true, vec![2]))),
        (3, None),
        (4, Some((true, vec![4]))),
    ];
    assert_eq!(found, expected);
}

#[test]
fn frames_are_bounded() {
    let mut packets = vec![(0, 0, false, KEY.to_vec())];
    let part = [[0].as_slice(), &[7; 60_000]].concat();
    packets.extend((1..200).map(|seq| (seq, 0, seq == 199, part.clone())));
    packets.push((200, 1, true, DELTA.to_vec()));
    let expected = [broken(0, 0, 199), frame(1, 200, 200, false, &[0x51, 2])];
    assert_eq!(depacketize(PayloadKind::Vp8, &packets), expected);
}

#[test]
fn after_forgetting_nothing_is_missed() {
    let mut out: Vec<Out> = Vec::new();
    let mut depacketizer = Depacketizer::new(PayloadKind::Vp8);
    for seq in [50, 3] {
        let payload = Payload {
            seq: SeqNo(seq),
            timestamp: 1,
            marker: true,
            bytes: KEY,
        };
        depacketizer.forget();
        depacketizer.push(&payload, |outcome| out.push(outcome.into()));
    }
    assert_eq!(out.len(), 2);
    assert!(out.iter().all(|it| it.frame.is_some()));
}

#[test]
fn layers_of_vp9_get_an_index() {
    // Not flexible: I, L; picture 1. Spatial layer 0 in two packets, layer 1 in one.
    let packets = [
        (1, 1, false, vec![0b1010_1000, 1, 0x00, 0, 0x82, 0x49]),
        (2, 1, false, vec![0b1010_0100, 1, 0x00, 0, 7]),
        (3, 1, true, vec![0b1010_1100, 1, 0x03, 0, 0x86, 9, 9, 9]),
    ];
    let mut expected = vec![0x82, 0x49, 7, 0x86, 9, 9, 9];
    expected.extend([0xd9, 3, 0, 0, 0, 4, 0, 0, 0, 0xd9]);
    let out = depacketize(PayloadKind::Vp9, &packets);
    assert_eq!(out, [frame(1, 1, 3, true, &expected)]);
    // The lower layer alone; the upper one alone; one whose end is missing.
    let lower = depacketize(
        PayloadKind::Vp9,
        &[packets[0].clone(), (2, 1, true, packets[1].3.clone())],
    );
    assert_eq!(lower, [frame(1, 1, 2, true, &[0x82, 0x49, 7])]);
    let upper = depacketize(PayloadKind::Vp9, &packets[2..]);
    assert_eq!(upper, [broken(1, 3, 3)]);
    let cut = depacketize(
        PayloadKind::Vp9,
        &[packets[0].clone(), (2, 1, true, packets[2].3.clone())],
    );
    assert_eq!(cut, [broken(1, 1, 2)]);
}

#[test]
fn flexible_vp9() {
    // I, F, P with one reference; a picture to which none refers.
    let start = 0b10_0001_1000_u32 << 22;
    let payload = [&[0b1101_1100, 0x81, 0x02, 0x02][..], &start.to_be_bytes()].concat();
    let out = depacketize(PayloadKind::Vp9, &[(1, 1, true, payload)]);
    let expected = Out {
        droppable: true,
        ..frame(1, 1, 1, false, &start.to_be_bytes())
    };
    assert_eq!(out, [expected]);
}

#[test]
fn aggregates_and_fragments_of_h264() {
    let packets = [
        (1, 1, false, vec![0x78, 0, 2, 0x67, 1, 0, 2, 0x68, 2]),
        // A delimiter and filler data are omitted.
        (2, 1, false, vec![0x09, 0xf0]),
        (3, 1, false, vec![0x7c, 0x85, 0x88, 1]),
        (4, 1, false, vec![0x7c, 0x05, 2]),
        (5, 1, true, vec![0x7c, 0x45, 3]),
        (6, 2, true, vec![0x01, 0xe0]),
    ];
    let data = [
        0, 0, 0, 2, 0x67, 1, 0, 0, 0, 2, 0x68, 2, 0, 0, 0, 5, 0x65, 0x88, 1, 2, 3,
    ];
    let last = Out {
        droppable: true,
        ..frame(2, 6, 6, false, &[0, 0, 0, 2, 0x01, 0xe0])
    };
    let expected = [frame(1, 1, 5, true, &data), last];
    assert_eq!(depacketize(PayloadKind::H264, &packets), expected);
}

#[test]
fn parameter_sets_belong_to_the_picture_that_follows() {
    let packets = [
        (1, 1, true, vec![0x67, 1]),
        (2, 2, true, vec![0x68, 2]),
        (3, 3, true, vec![0x65, 0x88]),
    ];
    let data = [
        0, 0, 0, 2, 0x67, 1, 0, 0, 0, 2, 0x68, 2, 0, 0, 0, 2, 0x65, 0x88,
    ];
    let out = depacketize(PayloadKind::H264, &packets);
    assert_eq!(out, [frame(3, 1, 3, true, &data)]);
}

#[test]
fn keyframes_whose_parameter_sets_are_lost() {
    let packets = [
        (1, 1, false, vec![0x67, 1]),
        (2, 1, true, vec![0x65, 0x88]),
        (4, 2, true, vec![0x65, 0x88]),
        (5, 3, false, vec![0x67, 1]),
        (6, 3, true, vec![0x65, 0x88]),
        // The second slice of the picture.
        (8, 4, true, vec![0x41, 0x48]),
    ];
    let out = depacketize(PayloadKind::H264, &packets);
    let found: Vec<_> = out
        .iter()
        .map(|it| (it.first, it.last, it.frame.is_some()))
        .collect();
    let expected = [
        (1, 2, true),
        (3, 3, false),
        (4, 4, false),
        (5, 6, true),
        (7, 8, false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_h264_and_h265_do_not_allow_is_broken() {
    let h264 = [
        // A fragment without a start; one within another; a truncated aggregate, or one within
        // another; MTAP.
        vec![vec![0x7c, 0x45, 3]],
        vec![vec![0x7c, 0x85, 3], vec![0x7c, 0x85, 3]],
        vec![vec![0x7c, 0x85, 3], vec![0x41, 0x88]],
        vec![vec![0x78, 0, 2, 0x65, 0x88, 0, 9, 1]],
        vec![vec![0x78, 0, 2, 0x78, 0x88]],
        vec![vec![0x7a, 0, 2, 0x65, 0x88]],
    ];
    let h265 = [
        vec![vec![0x62, 1, 19, 3]],
        vec![vec![0x62, 1, 0x80 | 19, 3], vec![0x62, 1, 0x80 | 19, 3]],
        vec![vec![0x60, 1, 0, 3, 0x26, 1, 0x80, 0, 9, 1]],
        vec![vec![0x64, 1, 0, 3, 0x26, 1, 0x80]],
        vec![vec![0x26]],
    ];
    for (kind, cases) in [(PayloadKind::H264, &h264[..]), (PayloadKind::H265, &h265)] {
        for payloads in cases {
            let last = payloads.len() as u64 - 1;
            let packets = payloads.iter().zip(0..);
            let packets: Vec<Packet> = packets
                .map(|(payload, seq)| (seq, 1, seq == last, payload.clone()))
                .collect();
            let out = depacketize(kind, &packets);
            assert!(
                out.iter().all(|it| it.frame.is_none()) && !out.is_empty(),
                "{payloads:x?}"
            );
        }
    }
}

#[test]
fn aggregates_and_fragments_of_h265() {
    let packets = [
        (
            1,
            1,
            false,
            vec![0x60, 1, 0, 3, 0x40, 1, 9, 0, 3, 0x42, 1, 8],
        ),
        (2, 1, false, vec![0x46, 1, 0x50]),
        (3, 1, false, vec![0x62, 1, 0x80 | 19, 0x80, 1]),
        (4, 1, true, vec![0x62, 1, 0x40 | 19, 2]),
        (5, 2, true, vec![0x02, 1, 0x80]),
    ];
    let data = [
        0, 0, 0, 3, 0x40, 1, 9, 0, 0, 0, 3, 0x42, 1, 8, 0, 0, 0, 5, 0x26, 1, 0x80, 1, 2,
    ];
    let expected = [
        frame(1, 1, 4, true, &data),
        frame(2, 5, 5, false, &[0, 0, 0, 3, 0x02, 1, 0x80]),
    ];
    assert_eq!(depacketize(PayloadKind::H265, &packets), expected);
}

#[test]
fn obus_get_their_sizes() {
    let packets = [
        // A delimiter, a sequence header, the start of a keyframe; its end, with a size of its own.
        (1, 1, false, vec![0x78, 1, 0x10, 2, 0x08, 5, 0x30, 0x10, 1]),
        (2, 1, true, vec![0x80, 1, 2, 3, 0x32, 1, 7]),
        // W = 1 means no length.
        (3, 2, true, vec![0x10, 0x30, 0x30, 1]),
    ];
    let data = [0x0a, 1, 5, 0x32, 3, 0x10, 1, 2, 0x32, 1, 7];
    let expected = [
        frame(1, 1, 2, true, &data),
        frame(2, 3, 3, false, &[0x32, 2, 0x30, 1]),
    ];
    assert_eq!(depacketize(PayloadKind::Av1, &packets), expected);
}

#[test]
fn any_number_of_empty_obus_is_passed_over() {
    // W = 0 means that each has its length.
    let payload = [&[0x00][..], &[0; 300], &[2, 0x30, 1]].concat();
    let expected = [frame(1, 1, 1, false, &[0x32, 1, 1])];
    let out = depacketize(PayloadKind::Av1, &[(1, 1, true, payload)]);
    assert_eq!(out, expected);
}

#[test]
fn obus_that_are_cut() {
    for payloads in [
        // The end is missing; nothing to continue; a length beyond the end; missing elements.
        vec![vec![0x50, 0x30, 0x10]],
        vec![vec![0x90, 1, 2]],
        vec![vec![0x00, 9, 0x30]],
        vec![vec![0x30, 2, 0x30, 0x10]],
        vec![vec![0x40]],
        vec![vec![0x10, 0x36]],
        vec![vec![0x10, 0x32, 9, 1]],
        vec![vec![0x50, 0x30], vec![0x10, 0x30]],
    ] {
        let packets = payloads.iter().zip(1..);
        let packets: Vec<Packet> = packets
            .map(|(payload, seq)| (seq, 1, seq == payloads.len() as u64, payload.clone()))
            .collect();
        let out = depacketize(PayloadKind::Av1, &packets);
        assert!(
            out.iter().all(|it| it.frame.is_none()) && !out.is_empty(),
            "{payloads:x?}"
        );
    }
}
