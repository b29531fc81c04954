#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::codec::h265;

fuzz_target!(|payload: &[u8]| {
    let types = h265::nal_types(payload).count();
    assert!(types <= payload.len());
    assert!(!h265::has_parameter_sets(payload) || h265::is_keyframe(payload));
});
