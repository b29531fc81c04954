#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::codec::Av1;

fuzz_target!(|payload: &[u8]| {
    let Ok(header) = Av1::parse(payload) else {
        return;
    };
    let bytes: usize = header.elements(payload).map(<[u8]>::len).sum();
    assert!(bytes < payload.len());
    assert!(header.obu_types(payload).count() <= header.elements(payload).count());
    let _ = header.is_keyframe(payload);
});
