//! Audio of two sides that have no codec in common.

use portunus_rtp::Pt;

use crate::codecs::{CodecName, CodecSpec};
use crate::negotiated::Codec;

use super::agree::{PlainCodec, is_same};

/// The codecs that are offered to far ends beyond the browser's, and taken of them: the best first.
const FAR: [CodecName; 3] = [CodecName::G722, CodecName::Pcma, CodecName::Pcmu];

/// What is transcoded into what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcoding {
    /// The browser's codec.
    pub browser: CodecSpec,
    /// The far end's.
    pub far: PlainCodec,
}

/// What a far end is offered beyond the browser's codecs.
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

/// Opus, to be offered to a browser behind what the far end has, if that is something to transcode.
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

/// What of a far end's codecs is transcoded: its first choice.
pub(super) fn far_codec(far: &[CodecSpec]) -> Option<&CodecSpec> {
    far.iter()
        .find(|codec| FAR.iter().any(|name| name.matches(codec)))
}

/// Opus on this side and the far end's codec, if that is what there is.
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
