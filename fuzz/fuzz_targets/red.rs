#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::red;

// Blocks lie in the payload one behind the other, and the last is what the packet itself carries.
fuzz_target!(|payload: &[u8]| {
    let blocks: Vec<_> = red::unpack(payload).collect();
    let bytes: usize = blocks.iter().map(|block| block.payload.len()).sum();
    assert!(bytes <= payload.len());
    if let Some(last) = blocks.last() {
        assert_eq!((last.after, last.offset), (0, 0));
        assert!(payload.ends_with(last.payload));
    }
});
