#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_livekit::testing::read_of_node;
use portunus_recordplay::testing::read_message;
use portunus_videoroom::testing::{read_definition, read_question};

// What the other nodes of a cluster send about video rooms and recordings; the first byte says what.
fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    match first {
        b'l' => return read_of_node(rest),
        b'r' => return read_message(rest),
        _ => {}
    }
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    match first {
        b'd' => read_definition(text),
        _ => read_question(text),
    }
});
