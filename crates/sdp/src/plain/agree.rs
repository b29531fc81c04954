//! What a browser and a far end have in common.

use std::net::SocketAddr;

use portunus_rtp::{Mid, Pt};

use crate::answer::events_fit;
use crate::codecs::CodecSpec;
use crate::description::{Direction, Extmap};
use crate::negotiated::{Codec, Kind};

use super::crypto::SdesKey;
use super::transcode::Transcoding;

/// What is agreed on for one m-line of a far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainMedia {
    /// Audio or video.
    pub kind: Kind,
    /// The browser's m-line.
    pub mid: Mid,
    /// Who sends, from this side's point of view.
    pub direction: Direction,
    /// Who sends, from the far end's point of view.
    pub far_direction: Direction,
    /// Where RTP goes; none while the far end is nowhere to be sent to.
    pub rtp: Option<SocketAddr>,
    /// Where RTCP goes.
    pub rtcp: Option<SocketAddr>,
    /// RTP and RTCP share a port, on both sides.
    pub rtcp_mux: bool,
    /// The codecs, in order of preference; telephone events are not among them. Empty only with `transcoding`.
    pub codecs: Vec<PlainCodec>,
    /// Telephone events, the ones with the clock of the first codec first.
    pub events: Vec<PlainCodec>,
    /// Codecs that this side has offered with other formats, too, which the far end's answer leaves out: it may send these numbers all the
    /// same, as baresip does with H.264.
    pub unanswered: Vec<CodecSpec>,
    /// The two sides have no codec in common: audio is to be transcoded.
    pub transcoding: Option<Transcoding>,
    /// Header extensions that both sides know, with their numbers towards the far end.
    pub extensions: Vec<Extmap>,
    /// What this side seals with.
    pub local_key: Option<SdesKey>,
    /// What the far end seals with; none: plain RTP.
    pub remote_key: Option<SdesKey>,
    /// The far end takes picture loss indications.
    pub pli: bool,
}

impl PlainMedia {
    /// Whether media is to be sent to the far end.
    pub fn sends(&self) -> bool {
        self.direction.sends() && self.far_direction.receives() && self.rtp.is_some()
    }

    /// Whether media is to be expected from the far end.
    pub fn receives(&self) -> bool {
        self.direction.receives() && self.far_direction.sends()
    }
}

/// A codec that both sides have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainCodec {
    /// As the browser knows it, with its payload type there.
    pub spec: CodecSpec,
    /// What it is.
    pub codec: Codec,
    /// The payload type of packets to the far end.
    pub send: Pt,
    /// The payload type of packets from the far end.
    pub recv: Pt,
    /// The far end's format parameters.
    pub far_fmtp: Option<String>,
}

/// The codecs that pass: those that the server relays. Redundant audio ends here.
pub(super) fn relayed(codec: &CodecSpec) -> Option<Codec> {
    codec.codec().filter(|codec| *codec != Codec::Red)
}

pub(super) fn is_event(codec: &CodecSpec) -> bool {
    codec.codec() == Some(Codec::TelephoneEvent)
}

/// The codecs of the far end, each with the one of `ours` that is the same. Order is the far end's.
pub(super) fn matched<'a>(
    ours: &'a [CodecSpec],
    far: &'a [CodecSpec],
) -> Vec<(&'a CodecSpec, &'a CodecSpec, Codec)> {
    let mut taken: Vec<Pt> = Vec::new();
    let mut pairs = Vec::new();
    for far in far {
        let Some(codec) = relayed(far) else { continue };
        let free = |our: &&CodecSpec| !taken.contains(&our.pt) && is_same(our, far);
        let candidates = || ours.iter().filter(free);
        let number = candidates().find(|our| our.pt == far.pt);
        let format = candidates().find(|our| has_same_format(our, far));
        if let Some(our) = number.or(format).or_else(|| candidates().next()) {
            taken.push(our.pt);
            pairs.push((our, far, codec));
        }
    }
    pairs
}

/// Those of `ours` that are the same as one of `taken` but for their format, and are not among them.
pub(super) fn unanswered(ours: &[CodecSpec], taken: &[PlainCodec]) -> Vec<CodecSpec> {
    let is_left_out = |our: &&CodecSpec| {
        let is_known = taken.iter().any(|codec| is_same(&codec.spec, our));
        is_known && taken.iter().all(|codec| codec.recv != our.pt)
    };
    ours.iter().filter(is_left_out).cloned().collect()
}

/// One of each codec: the first, and of telephone events those with the clock of the first codec.
pub(super) fn one_of_each(codecs: &mut Vec<PlainCodec>, events: &mut Vec<PlainCodec>) {
    let mut seen: Vec<Codec> = Vec::new();
    codecs.retain(|codec| {
        let is_new = !seen.contains(&codec.codec);
        seen.push(codec.codec);
        is_new
    });
    events.truncate(1);
}

/// Puts the telephone events first that have the clock of the codec that is preferred: they share its timestamps.
pub(super) fn sort_events(clock_rate: Option<u32>, events: &mut [PlainCodec]) {
    events.sort_by_key(|event| events_fit(&event.spec, clock_rate));
}

/// Whether two codecs are the same but for their format.
pub(super) fn is_same(one: &CodecSpec, other: &CodecSpec) -> bool {
    one.is_same_codec(other)
}

/// Whether the parameters that tell formats of a codec apart are the same.
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
