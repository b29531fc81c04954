//! Transcoding of audio between two sides without a common codec.

use portunus_rtp::Pt;

use crate::codecs::{CodecName, CodecSpec};
use crate::negotiated::Codec;

use super::matching::is_same;
use super::media::{PlainCodec, Transcoding};

/// The codecs for transcoding that far ends are offered and may offer, the best first.
const FAR: [CodecName; 3] = [CodecName::G722, CodecName::Pcma, CodecName::Pcmu];

/// Returns the codecs to offer a far end in addition to the browser's.
pub(super) fn offered_beyond(ours: &[CodecSpec]) -> Vec<CodecSpec> {
    let new = FAR.map(|name| CodecSpec::new(name, name.default_pt()));
    let is_free = |codec: &CodecSpec| {
        let taken = |our: &CodecSpec| our.pt == codec.pt || is_same(our, codec);
        !ours.iter().any(taken)
    };
    match ours.iter().any(|our| our.codec() == Some(Codec::Opus)) {
        true => new.into_iter().filter(is_free).collect(),
        false => Vec::new(),
    }
}

/// Returns Opus to offer a browser after the far end's codecs, if one of those can be transcoded.
pub(super) fn opus_beyond(far: &[CodecSpec]) -> Option<CodecSpec> {
    let has = |codec| far.iter().any(|it| it.codec() == Some(codec));
    if has(Codec::Opus) || far_codec(far).is_none() {
        return None;
    }
    let usual = CodecName::Opus.default_pt().0;
    let free = |pt: &u8| !far.iter().any(|codec| codec.pt == Pt(*pt));
    let pt = std::iter::once(usual).chain(96..128).find(free)?;
    let mut opus = CodecSpec::new(CodecName::Opus, Pt(pt));
    opus.fmtp = Some("useinbandfec=1".to_owned());
    Some(opus)
}

/// Returns the codec to transcode: the far end's first choice.
pub(super) fn far_codec(far: &[CodecSpec]) -> Option<&CodecSpec> {
    far.iter()
        .find(|codec| FAR.iter().any(|name| name.matches(codec)))
}

/// Returns the transcoding between Opus and the far end's codec, if both are there.
pub(super) fn agree(ours: &[CodecSpec], far: &[CodecSpec]) -> Option<Transcoding> {
    let opus = ours
        .iter()
        .find(|codec| codec.codec() == Some(Codec::Opus))?;
    let far = far_codec(far)?;
    Some(Transcoding {
        browser: opus.clone(),
        far: PlainCodec {
            spec: far.clone(),
            codec: far.codec()?,
            send: far.pt,
            recv: far.pt,
            far_fmtp: far.fmtp.clone(),
        },
    })
}
