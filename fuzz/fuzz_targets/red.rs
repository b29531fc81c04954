#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::red;

// Blocks are consecutive in the payload, and the last one is the packet's primary.
fuzz_target!(|payload: &[u8]| {
    let blocks: Vec<_> = red::unpack(payload).collect();
    let bytes: usize = blocks.iter().map(|block| block.payload.len()).sum();
    assert!(bytes <= payload.len());
    if let Some(last) = blocks.last() {
        assert_eq!((last.after, last.offset), (0, 0));
        assert!(payload.ends_with(last.payload));
    }
});
