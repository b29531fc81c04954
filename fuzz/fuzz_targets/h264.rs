#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::codec::h264;

fuzz_target!(|payload: &[u8]| {
    let types = h264::nal_types(payload).count();
    assert!(types <= payload.len());
    let intra = h264::begins_intra_picture(payload);
    assert!(!intra || types > 0);
    assert!(!h264::has_parameter_sets(payload) || h264::is_keyframe(payload));
});
