#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_textroom::testing::{read_listing, read_message};
use portunus_videocall::testing::read_call;

// What the other nodes of a cluster send about text rooms and calls; the first byte says what.
fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    match first {
        b'l' => read_listing(rest),
        b'c' => read_call(rest),
        _ => read_message(rest),
    }
});
