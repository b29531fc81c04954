#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_audiobridge::testing::{read_frames, read_message, read_record};

// What the other nodes of a cluster send about audio rooms; the first byte says what.
fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    match first {
        b'm' => read_message(rest),
        b'r' => read_record(rest),
        _ => read_frames(rest),
    }
});
