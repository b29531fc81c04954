#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_span::testing::{read_envelope, read_link_message, read_room};

// What the other nodes of a cluster send about media links and things; the first byte says what.
fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    match first {
        b'l' => read_link_message(rest),
        b'e' => read_envelope(rest),
        _ => read_room(rest),
    }
});
