//! Frames through a packetizer and a depacketizer.

use proptest::prelude::*;

use super::{Coded, Packet, depacketize, packetize};
use crate::depacketize::PayloadKind;
use crate::packetize::{MIN_MAX_PAYLOAD, ParameterSets, PayloadFormat};

/// Generates frames of parts. Each part is one of `heads`, which says what it is, and a body.
fn frames(
    heads: &'static [&'static [u8]],
    join: fn(&[Vec<u8>]) -> Coded,
) -> impl Strategy<Value = Vec<Coded>> {
    let body = proptest::collection::vec(any::<u8>(), 1..300);
    let part = (0..heads.len(), body).prop_map(|(head, body)| [heads[head], &body].concat());
    let frame = proptest::collection::vec(part, 1..4).prop_map(move |parts| join(&parts));
    proptest::collection::vec(frame, 1..8)
}

/// The lowest bit of the first byte is 0 in a keyframe.
fn vp8(parts: &[Vec<u8>]) -> Coded {
    let frame = parts.concat();
    (frame[0] & 1 == 0, frame)
}

fn vp9(parts: &[Vec<u8>]) -> Coded {
    let frame = parts.concat();
    (frame[0] & 4 == 0, frame)
}

fn temporal_unit(parts: &[Vec<u8>]) -> Coded {
    let keyframe = parts[0][1] & 0xf0 == 0x10;
    let mut unit = match keyframe {
        true => vec![0x0a, 1, 9],
        false => vec![],
    };
    for (index, part) in parts.iter().enumerate() {
        // Tile groups follow the first OBU.
        let kind = if index == 0 { part[0] } else { 0x22 };
        let len = part.len() - 1;
        unit.push(kind);
        unit.extend(match len {
            ..0x80 => vec![len as u8],
            _ => vec![len as u8 & 0x7f | 0x80, (len >> 7) as u8],
        });
        unit.extend(&part[1..]);
    }
    (keyframe, unit)
}

/// Joins NAL units with their lengths. Parameter sets precede those of a keyframe.
fn access_unit(sets: &[&[u8]], keyframe: bool, parts: &[Vec<u8>]) -> Coded {
    let sets = sets.iter().copied().filter(|_| keyframe);
    let units = sets.chain(parts.iter().map(Vec::as_slice));
    let with_length = |unit: &[u8]| [&(unit.len() as u32).to_be_bytes(), unit].concat();
    (keyframe, units.flat_map(with_length).collect())
}

fn h264(parts: &[Vec<u8>]) -> Coded {
    let mut parts = parts.to_vec();
    for (index, part) in parts.iter_mut().enumerate() {
        part[1] = part[1] & 0x7f | if index == 0 { 0x80 } else { 0 };
    }
    access_unit(
        &[&[0x67, 1], &[0x68, 2]],
        parts.iter().any(|it| it[0] == 0x65),
        &parts,
    )
}

fn h265(parts: &[Vec<u8>]) -> Coded {
    let mut parts = parts.to_vec();
    for (index, part) in parts.iter_mut().enumerate() {
        part[2] = part[2] & 0x7f | if index == 0 { 0x80 } else { 0 };
    }
    let keyframe = parts.iter().any(|it| it[0] == 0x26);
    access_unit(
        &[&[0x40, 1, 1], &[0x42, 1, 1], &[0x44, 1, 2]],
        keyframe,
        &parts,
    )
}

/// Checks that frames survive packets unchanged. Without the lost packets, the complete frames are
/// unchanged, and each packet is reported once.
fn comes_back(
    kind: PayloadKind,
    format: PayloadFormat,
    max: usize,
    frames: &[Coded],
    lost: &[bool],
) -> Result<(), TestCaseError> {
    let packets = packetize(format.clone(), max, frames);
    let out = depacketize(kind, &packets);
    let whole: Vec<_> = out.iter().filter_map(|it| it.frame.clone()).collect();
    prop_assert_eq!(&whole, frames);
    prop_assert_eq!(&packetize(format, max, &whole), &packets);
    let lost = lost.iter().copied().chain(std::iter::repeat(false));
    let left = packets.iter().zip(lost).filter(|(_, lost)| !lost);
    let left: Vec<_> = left.map(|(packet, _)| packet.clone()).collect();
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

fn no_sets() -> ParameterSets {
    ParameterSets {
        length_size: 4,
        units: Vec::new(),
    }
}

proptest! {
    #[test]
    fn vp8_comes_back(
        frames in frames(&[&[]], vp8), max in MIN_MAX_PAYLOAD..300, lost: [bool; 32],
    ) {
        comes_back(PayloadKind::Vp8, PayloadFormat::Vp8, max, &frames, &lost)?;
    }

    #[test]
    fn vp9_comes_back(
        frames in frames(&[&[0x82], &[0x86, 0, 0xff]], vp9), max in MIN_MAX_PAYLOAD..300, lost: [bool; 32],
    ) {
        comes_back(PayloadKind::Vp9, PayloadFormat::Vp9, max, &frames, &lost)?;
    }

    #[test]
    fn av1_comes_back(
        frames in frames(&[&[0x32, 0x10], &[0x32, 0x30], &[0x1a, 0x30]], temporal_unit),
        max in MIN_MAX_PAYLOAD..300, lost: [bool; 32],
    ) {
        let format = PayloadFormat::Av1 { sequence_header: Vec::new() };
        comes_back(PayloadKind::Av1, format, max, &frames, &lost)?;
    }

    #[test]
    fn h264_comes_back(
        others in frames(&[&[0x65], &[0x61]], h264), max in MIN_MAX_PAYLOAD..300, mut lost: [bool; 32],
    ) {
        // A receiver that joins midway cannot know that parameter sets were lost.
        let frames = [vec![h264(&[vec![0x65, 0x80]])], others].concat();
        lost[..4].fill(false);
        comes_back(PayloadKind::H264, PayloadFormat::H264(no_sets()), max, &frames, &lost)?;
    }

    #[test]
    fn h265_comes_back(
        others in frames(&[&[0x26, 1], &[0x02, 1]], h265), max in MIN_MAX_PAYLOAD..300, mut lost: [bool; 32],
    ) {
        // A receiver that joins midway cannot know that parameter sets were lost.
        let frames = [vec![h265(&[vec![0x26, 1, 0x80]])], others].concat();
        lost[..4].fill(false);
        comes_back(PayloadKind::H265, PayloadFormat::H265(no_sets()), max, &frames, &lost)?;
    }

    #[test]
    fn arbitrary_packets_never_panic(
        payloads in proptest::collection::vec((1..4_u64, 0..2_u32, any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..20),
    ) {
        use PayloadKind::{Av1, H264, H265, Vp8, Vp9, Whole};
        for kind in [Vp8, Vp9, Av1, H264, H265, Whole] {
            let (mut seq, mut timestamp) = (0, 0);
            let packets: Vec<Packet> = payloads.iter().map(|(by, later, marker, payload)| {
                (seq, timestamp) = (seq + by, timestamp + later);
                (seq, timestamp, *marker, payload.clone())
            }).collect();
            let mut next = 0;
            for it in depacketize(kind, &packets) {
                prop_assert!(it.first >= next && it.last >= it.first);
                next = it.last + 1;
            }
        }
    }
}
