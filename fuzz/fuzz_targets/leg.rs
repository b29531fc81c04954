#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use portunus_media::testing::BareLeg;

// The first byte chooses the leg's options. Datagrams follow: a byte with the length, one with the
// way of arrival, the bytes.
fuzz_target!(|bytes: &[u8]| {
    let Some((how, mut rest)) = bytes.split_first() else {
        return;
    };
    let mut now = Instant::now();
    let mut leg = BareLeg::new(how & 1 == 1, how & 2 == 2, now);
    while let [len, way, after @ ..] = rest {
        let (datagram, after) = after.split_at(usize::from(*len).min(after.len()));
        rest = after;
        now += Duration::from_millis(u64::from(way >> 2) * 10);
        let from = ([192, 0, 2, 1 + (way & 1)], 4_000 + u16::from(way >> 1 & 1)).into();
        leg.take(from, way & 2 == 2, datagram.to_vec(), now);
        leg.turn(now);
    }
});
