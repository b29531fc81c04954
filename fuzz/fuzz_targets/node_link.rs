#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_media::testing::{Arrival, PlayedNode};

// What another node sends: a byte says how it arrives, one its length, and the bytes follow. Some
// of it is sealed with the key of the link, so that what is inside is read.
fuzz_target!(|bytes: &[u8]| {
    let mut node = PlayedNode::new();
    let mut rest = bytes;
    while let [how, len, after @ ..] = rest {
        let (content, after) = after.split_at(usize::from(*len).min(after.len()));
        rest = after;
        let arrival = match how % 5 {
            0 => Arrival::Plain,
            1 => Arrival::Elsewhere,
            2 => Arrival::Rtcp,
            3 => Arrival::Payload,
            _ => Arrival::Packet,
        };
        node.take(arrival, content);
    }
});
