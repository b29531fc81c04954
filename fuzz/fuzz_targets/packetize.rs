#![no_main]
//! Packetisers: the first bytes choose format and size, the rest is a frame.

use libfuzzer_sys::fuzz_target;
use portunus_rtp::packetize::{MIN_MAX_PAYLOAD, Packetizer, ParameterSets, PayloadFormat};

fuzz_target!(|data: &[u8]| {
    let [kind, max, frame @ ..] = data else {
        return;
    };
    let format = match kind % 5 {
        0 => PayloadFormat::Vp8,
        1 => PayloadFormat::Vp9,
        2 => PayloadFormat::Av1 {
            sequence_header: frame.get(..8).unwrap_or_default().to_vec(),
        },
        which => {
            let sets = ParameterSets {
                length_size: (kind >> 4) % 5,
                units: frame.chunks(9).take(3).map(<[u8]>::to_vec).collect(),
            };
            match which {
                3 => PayloadFormat::H264(sets),
                _ => PayloadFormat::H265(sets),
            }
        }
    };
    let max = MIN_MAX_PAYLOAD + usize::from(*max);
    let mut ended = false;
    let result = Packetizer::with_max_payload(format, max).packetize(
        frame,
        kind & 0x08 != 0,
        |payload, last| {
            assert!(!ended && !payload.is_empty() && payload.len() <= max);
            ended = last;
        },
    );
    let _ = result;
});
