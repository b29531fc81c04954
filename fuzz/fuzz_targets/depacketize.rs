#![no_main]
//! Depacketisers: a byte for the codec, then packets: the steps of sequence number and timestamp,
//! the marker, a length (u16), bytes. Outcomes are in order, and frames can be packetised again.

use libfuzzer_sys::fuzz_target;
use portunus_rtp::SeqNo;
use portunus_rtp::depacketize::{Depacketizer, MAX_FRAME, Outcome, Payload, PayloadKind};
use portunus_rtp::packetize::{Packetizer, ParameterSets, PayloadFormat};

fuzz_target!(|data: &[u8]| {
    let Some((kind, mut rest)) = data.split_first() else {
        return;
    };
    let sets = ParameterSets {
        length_size: 4,
        units: Vec::new(),
    };
    let sequence_header = Vec::new();
    let (kind, format) = match kind % 6 {
        0 => (PayloadKind::Vp8, PayloadFormat::Vp8),
        1 => (PayloadKind::Vp9, PayloadFormat::Vp9),
        2 => (PayloadKind::Av1, PayloadFormat::Av1 { sequence_header }),
        3 => (PayloadKind::H264, PayloadFormat::H264(sets)),
        4 => (PayloadKind::H265, PayloadFormat::H265(sets)),
        _ => (PayloadKind::Whole, PayloadFormat::Whole),
    };
    let mut depacketizer = Depacketizer::new(kind);
    let mut packetizer = Packetizer::new(format);
    let (mut seq, mut timestamp) = (0, 0);
    let mut next = SeqNo(0);
    let mut check = |outcome: Outcome<'_>| {
        let (first, last) = match outcome {
            Outcome::Frame(frame) => {
                assert!(!frame.data.is_empty() && frame.data.len() <= 2 * MAX_FRAME);
                let again = packetizer.packetize(frame.data, frame.keyframe, |_, _| {});
                again.expect("a well-formed frame");
                (frame.first, frame.last)
            }
            Outcome::Broken { first, last, .. } => (first, last),
        };
        assert!(first >= next && last >= first);
        next = SeqNo(last.0 + 1);
    };
    while let [how, high, low, behind @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let (bytes, behind) = behind.split_at(len.min(behind.len()));
        rest = behind;
        seq += 1 + u64::from(how >> 1 & 3);
        timestamp += u32::from(how >> 3 & 1);
        let payload = Payload {
            seq: SeqNo(seq),
            timestamp,
            marker: how & 1 != 0,
            bytes,
        };
        depacketizer.push(&payload, &mut check);
    }
    depacketizer.end(&mut check);
});
