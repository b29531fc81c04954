#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_cluster::testing::read_frame;

// A frame that was read is the same when it is written and read again.
fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(frame)) = read_frame(bytes) {
        let again = read_frame(&frame.clone().encode());
        assert_eq!(again, Ok(Some(frame)));
    }
});
