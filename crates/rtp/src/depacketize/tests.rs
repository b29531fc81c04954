#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use super::*;
use crate::packetize::{MIN_MAX_PAYLOAD, Packetizer, PayloadFormat};
use proptest::prelude::*;

/// An [`Outcome`] that owns its bytes: timestamp, first and last sequence number, and the frame or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Out {
    timestamp: u32,
    first: u64,
    last: u64,
    droppable: bool,
    frame: Option<(bool, Vec<u8>)>,
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

/// The packets of `frames` with their keyframe flags; the timestamp of frame i is 3000 i.
fn packetize(format: PayloadFormat, max: usize, frames: &[(bool, Vec<u8>)]) -> Vec<Packet> {
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
        // The same timestamp: another frame by its descriptor.
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
    // The end of frame 1 and the start of frame 2, the middle of 3, all of 4, the end of the stream.
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

fn vp8_frames() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
    let frame = proptest::collection::vec(any::<u8>(), 1..400);
    let frame = frame.prop_map(|bytes| (bytes[0] & 1 == 0, bytes));
    proptest::collection::vec(frame, 1..8)
}

proptest! {
    #[test]
    fn vp8_comes_back(frames in vp8_frames(), max in MIN_MAX_PAYLOAD..200, lost in proptest::collection::vec(any::<bool>(), 64)) {
        comes_back(PayloadKind::Vp8, PayloadFormat::Vp8, max, &frames, &lost)?;
    }
}

/// Frames that go through packets are the same; without some packets those that are whole are the same, and each packet
/// that is there is told of.
fn comes_back(
    kind: PayloadKind,
    format: PayloadFormat,
    max: usize,
    frames: &[(bool, Vec<u8>)],
    lost: &[bool],
) -> Result<(), TestCaseError> {
    let packets = packetize(format.clone(), max, frames);
    let out = depacketize(kind, &packets);
    let whole: Vec<_> = out.iter().filter_map(|it| it.frame.clone()).collect();
    prop_assert_eq!(&whole, frames);
    prop_assert_eq!(&packetize(format, max, &whole), &packets);
    let lost = lost.iter().copied().chain(std::iter::repeat(false));
    let left: Vec<_> = packets
        .iter()
        .zip(lost)
        .filter(|(_, lost)| !lost)
        .map(|(packet, _)| packet.clone())
        .collect();
    let out = depacketize(kind, &left);
    let mut next = left.first().map_or(0, |packet| packet.0);
    for it in &out {
        prop_assert_eq!(it.first, next);
        next = it.last + 1;
        if let Some(frame) = &it.frame {
            prop_assert_eq!(frame, &frames[it.timestamp as usize / 3_000]);
        }
    }
    prop_assert_eq!(next, left.last().map_or(0, |packet| packet.0 + 1));
    Ok(())
}
