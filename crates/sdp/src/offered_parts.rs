//! Fitting an answer to its offer: only offered parts can be answered (RFC 3264 section 6).

use crate::codecs::CodecSpec;
use crate::description::{Extmap, Media};
use crate::negotiated::Kind;

/// Returns a plugin's m-line, reduced to the offered one.
pub(crate) fn fit(wish: Media, offered: &Media) -> Media {
    if wish.rejected || offered.rejected {
        return offered.refused();
    }
    let direction = offered.direction.answer(wish.direction);
    if wish.kind == Kind::Data {
        return Media {
            rejected: false,
            direction,
            attributes: wish.attributes,
            ..offered.refused()
        };
    }
    let codecs: Vec<CodecSpec> = wish
        .codecs
        .into_iter()
        .filter(|codec| was_offered(codec, offered))
        .collect();
    if codecs.is_empty() {
        return offered.refused();
    }
    let extensions = accepted_extensions(&wish.extensions, offered);
    let proto = offered.proto.clone();
    Media {
        mid: offered.mid,
        direction,
        proto,
        codecs,
        extensions,
        ..wish
    }
}

/// Returns whether `offered` has `codec` with the same payload type.
pub(crate) fn was_offered(codec: &CodecSpec, offered: &Media) -> bool {
    offered
        .codec(codec.pt)
        .is_some_and(|other| other.is_same_codec(codec))
}

/// Returns the extensions of `answered` that were offered, with the offered ids.
pub(crate) fn accepted_extensions(answered: &[Extmap], offered: &Media) -> Vec<Extmap> {
    let number_of = |uri: &str| offered.extensions.iter().find(|other| other.uri == uri);
    answered
        .iter()
        .filter_map(|extmap| {
            Some(Extmap {
                id: number_of(&extmap.uri)?.id,
                ..extmap.clone()
            })
        })
        .collect()
}
