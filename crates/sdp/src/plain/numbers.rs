//! Payload types and extension ids towards a browser. Their meaning stays the same over all
//! descriptions and m-lines of a PeerConnection (BUNDLE), whatever far ends use.

use portunus_rtp::{ExtensionKind, Pt};

use crate::codecs::CodecSpec;
use crate::description::{Extmap, Media};

use super::matching::{has_same_format, is_same};

/// The ids of one-byte headers (RFC 8285 section 4.2).
const SHORT: std::ops::RangeInclusive<u8> = 1..=14;

/// The meanings of numbers towards a browser.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    codecs: Vec<CodecSpec>,
    extensions: Vec<Extmap>,
}

impl Numbers {
    /// Learns the numbers in a browser's m-line.
    pub(super) fn learn(&mut self, media: &Media) {
        for codec in &media.codecs {
            match self.codecs.iter_mut().find(|known| known.pt == codec.pt) {
                Some(known) => known.clone_from(codec),
                None => self.codecs.push(codec.clone()),
            }
        }
        for extmap in &media.extensions {
            if !self.extensions.iter().any(|known| known.id == extmap.id) {
                self.extensions.push(extmap.clone());
            }
        }
    }

    /// Returns the codecs of a far end's m-line with payload types for the browser: the known ones,
    /// their own, or free ones.
    pub(super) fn of_browser(&mut self, far: &[CodecSpec]) -> Vec<CodecSpec> {
        let mut taken: Vec<Pt> = Vec::new();
        let mut renumbered = Vec::with_capacity(far.len());
        for codec in far {
            let is_known = |known: &&CodecSpec| {
                !taken.contains(&known.pt) && is_same(known, codec) && has_same_format(known, codec)
            };
            let known = self.codecs.iter().find(is_known).map(|known| known.pt);
            let Some(pt) = known.or_else(|| self.free(codec.pt)) else {
                continue;
            };
            let codec = CodecSpec {
                pt,
                ..codec.clone()
            };
            taken.push(pt);
            if known.is_none() {
                self.codecs.push(codec.clone());
            }
            renumbered.push(codec);
        }
        renumbered
    }

    /// Returns `wanted` if it is free, or else another free number.
    fn free(&self, wanted: Pt) -> Option<Pt> {
        let is_free = |pt: &Pt| !self.codecs.iter().any(|known| known.pt == *pt);
        // Browsers number upwards.
        std::iter::once(wanted)
            .chain((96..=127).rev().map(Pt))
            .find(is_free)
    }

    /// Returns a header extension with its known id, or a free one.
    pub(super) fn extension(&mut self, kind: ExtensionKind) -> Option<Extmap> {
        let known = self.extensions.iter().find(|it| it.kind() == Some(kind));
        if let Some(known) = known {
            return Some(Extmap::new(kind, known.id));
        }
        let is_free = |id: &u8| !self.extensions.iter().any(|known| known.id == *id);
        let id = std::iter::once(usual(kind)).chain(SHORT).find(is_free)?;
        let new = Extmap::new(kind, id);
        self.extensions.push(new.clone());
        Some(new)
    }
}

/// Returns the usual id in browsers.
const fn usual(kind: ExtensionKind) -> u8 {
    match kind {
        ExtensionKind::AudioLevel => 1,
        ExtensionKind::AbsSendTime => 2,
        ExtensionKind::TransportCc => 3,
        ExtensionKind::Mid => 4,
        ExtensionKind::VideoOrientation => 13,
        _ => 14,
    }
}
