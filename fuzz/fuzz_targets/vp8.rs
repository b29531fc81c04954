#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::codec::Vp8;

fuzz_target!(|payload: &[u8]| {
    let Ok(before) = Vp8::parse(payload) else {
        return;
    };
    let _ = (before.is_keyframe(payload), before.keyframe_size(payload));
    let mut edited = payload.to_vec();
    before.set_picture_id(&mut edited, 0x2345);
    before.set_tl0_pic_idx(&mut edited, 0x67);
    let after = Vp8::parse(&edited).expect("as well formed as before");
    assert_eq!(after.tl0_pic_idx, before.tl0_pic_idx.map(|_| 0x67));
    let id = before.picture_id.map(|id| id.mask() & 0x2345);
    assert_eq!(after.picture_id.map(|id| id.value()), id);
    let len = before.descriptor_len();
    assert_eq!(
        (&edited[len..], after.descriptor_len()),
        (&payload[len..], len)
    );
});
