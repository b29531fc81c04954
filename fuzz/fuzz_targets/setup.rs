#![no_main]
//! The decoder configuration in keyframes: a byte for the codec, then a frame. H.264 and H.265 also
//! by SDP.

use libfuzzer_sys::fuzz_target;
use portunus_files::Codec;
use portunus_files::bitstream::{read_setup, setup_of_fmtp};

fuzz_target!(|data: &[u8]| {
    let Some((kind, frame)) = data.split_first() else {
        return;
    };
    const CODECS: [Codec; 5] = [Codec::Vp8, Codec::Vp9, Codec::Av1, Codec::H264, Codec::H265];
    let codec = CODECS[usize::from(*kind) % CODECS.len()];
    if let Some((setup, picture)) = read_setup(codec, frame, None) {
        assert_eq!(setup.codec(), codec);
        assert!(picture.is_some_and(|it| it.width > 0 && it.height > 0));
        assert!(setup.goes_on_with(&setup));
        assert_eq!(setup.avcc().is_some(), codec == Codec::H264);
        assert_eq!(setup.hvcc().is_some(), codec == Codec::H265);
        assert_eq!(setup.av1c().is_some(), codec == Codec::Av1);
        let bare = read_setup(codec, &[0, 0, 0, 2, 0x65, 0x88], Some(&setup));
        assert!(bare.is_none_or(|(bare, _)| bare == setup));
    }
    if let Ok(fmtp) = std::str::from_utf8(frame) {
        let _ = setup_of_fmtp(codec, fmtp);
    }
});
