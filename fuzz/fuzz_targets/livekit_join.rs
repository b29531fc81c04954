#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_livekit::testing::read_join;

// A join request is bounded, however it is compressed.
fuzz_target!(|query: &str| {
    let tracks = read_join(query, true).max(read_join(query, false));
    // A track takes two bytes at least.
    assert!(tracks.unwrap_or_default() <= 1 << 19);
});
