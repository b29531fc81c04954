//! Comparison of the browser's codecs with those of a far end.

use portunus_rtp::Pt;

use crate::codecs::CodecSpec;
use crate::negotiated::Codec;

/// Returns which codec it is if the server relays it. Redundant audio is not relayed.
pub(super) fn relayed(codec: &CodecSpec) -> Option<Codec> {
    codec.codec().filter(|codec| *codec != Codec::Red)
}

pub(super) fn is_event(codec: &CodecSpec) -> bool {
    codec.codec() == Some(Codec::TelephoneEvent)
}

/// The same codec on both sides.
pub(super) struct Match<'a> {
    pub(super) our: &'a CodecSpec,
    pub(super) far: &'a CodecSpec,
    pub(super) codec: Codec,
}

/// Returns the common codecs, in the far end's order.
pub(super) fn matched<'a>(ours: &'a [CodecSpec], far: &'a [CodecSpec]) -> Vec<Match<'a>> {
    let mut taken: Vec<Pt> = Vec::new();
    let mut matches = Vec::new();
    for far in far {
        let Some(codec) = relayed(far) else { continue };
        let free = |our: &&CodecSpec| !taken.contains(&our.pt) && is_same(our, far);
        let candidates = || ours.iter().filter(free);
        let number = candidates().find(|our| our.pt == far.pt);
        let format = candidates().find(|our| has_same_format(our, far));
        if let Some(our) = number.or(format).or_else(|| candidates().next()) {
            taken.push(our.pt);
            matches.push(Match { our, far, codec });
        }
    }
    matches
}

/// Returns whether two codecs are the same, regardless of their formats.
pub(super) fn is_same(one: &CodecSpec, other: &CodecSpec) -> bool {
    one.is_same_codec(other)
}

/// Returns whether two specifications of one codec have the same format.
pub(super) fn has_same_format(one: &CodecSpec, other: &CodecSpec) -> bool {
    let number = |codec: &CodecSpec, name: &str| codec.parameter(name).unwrap_or("0").to_owned();
    let profile = |codec: &CodecSpec| {
        let level = codec.parameter("profile-level-id").unwrap_or_default();
        level.get(..2).unwrap_or_default().to_ascii_lowercase()
    };
    match one.codec() {
        Some(Codec::H264) => {
            let mode = "packetization-mode";
            number(one, mode) == number(other, mode) && profile(one) == profile(other)
        }
        Some(Codec::Vp9) => number(one, "profile-id") == number(other, "profile-id"),
        _ => true,
    }
}
