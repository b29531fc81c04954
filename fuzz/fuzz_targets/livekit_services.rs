#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_livekit::testing::read_call;

// Any body of any method is read or refused. What is read as JSON is the same as protobuf.
fuzz_target!(|input: (u8, bool, &[u8])| {
    let (method, is_json, body) = input;
    let Some(read) = read_call(method, is_json, body) else {
        return;
    };
    // Maps have no order, so that only the lengths are the same.
    let again = read_call(method, false, &read).map(|again| again.len());
    assert_eq!(again, Some(read.len()));
});
