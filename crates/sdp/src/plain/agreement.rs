//! The agreement between this side and a far end on one m-line.

use portunus_rtp::Mid;

use crate::answer::events_fit;
use crate::codecs::CodecSpec;
use crate::description::{Direction, Extmap};
use crate::negotiated::{Codec, Kind};

use super::crypto::SdesKey;
use super::matching::{self, Match, is_same};
use super::media::{PlainCodec, PlainMedia};
use super::remote::FarMedia;
use super::{browser_side, transcoding};

/// This side's part of an m-line.
pub(super) struct OurMedia<'a> {
    pub(super) mid: Mid,
    pub(super) direction: Direction,
    pub(super) codecs: &'a [CodecSpec],
    pub(super) extensions: &'a [Extmap],
    /// Whether this side has made the offer. Packets from the far end then have this side's payload
    /// types. In an answer of this side, all payload types are the far end's.
    pub(super) is_offerer: bool,
    pub(super) transcodes: bool,
    pub(super) rtcp_mux: bool,
    pub(super) local_key: Option<SdesKey>,
    pub(super) remote_key: Option<SdesKey>,
}

impl OurMedia<'_> {
    /// Returns what both sides agree on, or `None` if they have no codec in common.
    pub(super) fn agree(self, far: &FarMedia) -> Option<PlainMedia> {
        let kind = far.kind()?;
        let mut codecs = Vec::new();
        let mut events = Vec::new();
        for Match { our, far, codec } in matching::matched(self.codecs, &far.codecs) {
            let agreed = PlainCodec {
                spec: our.clone(),
                codec,
                send: far.pt,
                recv: if self.is_offerer { our.pt } else { far.pt },
                far_fmtp: far.fmtp.clone(),
            };
            match matching::is_event(our) {
                true => events.push(agreed),
                false => codecs.push(agreed),
            }
        }
        // Comfort noise alone is not enough for a call.
        codecs.sort_by_key(|codec| codec.codec == Codec::ComfortNoise);
        if codecs
            .first()
            .is_some_and(|codec| codec.codec == Codec::ComfortNoise)
        {
            codecs.clear();
        }
        let transcoding = match codecs.is_empty() && self.transcodes && kind == Kind::Audio {
            true => transcoding::agree(self.codecs, &far.codecs),
            false => None,
        };
        if codecs.is_empty() && transcoding.is_none() {
            return None;
        }
        let clock_rate = match &transcoding {
            Some(transcoding) => Some(transcoding.far.spec.clock_rate),
            None => codecs.first().map(|codec| codec.spec.clock_rate),
        };
        sort_events(clock_rate, &mut events);
        let mut extensions = browser_side::passed(&far.extensions);
        let is_ours = |extmap: &Extmap| self.extensions.iter().any(|it| it.uri == extmap.uri);
        extensions.retain(is_ours);
        Some(PlainMedia {
            kind,
            mid: self.mid,
            direction: self.direction,
            far_direction: far.direction,
            rtp: far.rtp,
            rtcp: match self.rtcp_mux {
                true => far.rtp,
                false => far.rtcp,
            },
            rtcp_mux: self.rtcp_mux,
            unanswered: match self.is_offerer {
                true => unanswered(self.codecs, &codecs),
                false => Vec::new(),
            },
            codecs,
            events,
            transcoding,
            extensions,
            local_key: self.local_key,
            remote_key: self.remote_key,
            pli: far.takes_pli(),
        })
    }
}

/// Returns those of `ours` that are not in `taken`, while another format of the same codec is.
pub(super) fn unanswered(ours: &[CodecSpec], taken: &[PlainCodec]) -> Vec<CodecSpec> {
    let is_left_out = |our: &&CodecSpec| {
        let is_known = taken.iter().any(|codec| is_same(&codec.spec, our));
        is_known && taken.iter().all(|codec| codec.recv != our.pt)
    };
    ours.iter().filter(is_left_out).cloned().collect()
}

/// Keeps the first payload type of each codec, and the first telephone event.
pub(super) fn one_of_each(codecs: &mut Vec<PlainCodec>, events: &mut Vec<PlainCodec>) {
    let mut seen: Vec<Codec> = Vec::new();
    codecs.retain(|codec| {
        let is_new = !seen.contains(&codec.codec);
        seen.push(codec.codec);
        is_new
    });
    events.truncate(1);
}

/// Sorts telephone events with the clock rate of the preferred codec first, since they share its
/// timestamps.
pub(super) fn sort_events(clock_rate: Option<u32>, events: &mut [PlainCodec]) {
    events.sort_by_key(|event| events_fit(&event.spec, clock_rate));
}
