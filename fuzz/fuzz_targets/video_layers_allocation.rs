#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::extension::VideoLayersAllocation;

fuzz_target!(|value: &[u8]| {
    let Ok(allocation) = VideoLayersAllocation::parse(value) else {
        return;
    };
    let mut out = [0; VideoLayersAllocation::MAX_LEN];
    let len = allocation
        .write_into(&mut out)
        .expect("room for any allocation");
    assert_eq!(VideoLayersAllocation::parse(&out[..len]), Ok(allocation));
});
