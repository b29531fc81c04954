//! Offers and answers of a far end, as the browser gets them.

use portunus_rtp::{ExtensionKind, Mid};

use crate::answer::server_feedback;
use crate::codecs::CodecSpec;
use crate::description::{Direction, Extmap, Media};
use crate::negotiated::{Codec, Kind};

use super::matching::{is_event, relayed};
use super::media::{PlainCodec, PlainMedia};
use super::numbers::Numbers;
use super::remote::FarMedia;
use super::transcoding;

/// Header extensions between the browser and this side.
const OURS: [ExtensionKind; 3] = [
    ExtensionKind::Mid,
    ExtensionKind::TransportCc,
    ExtensionKind::AbsSendTime,
];

/// Header extensions that are passed from one side to the other.
const PASSED: [ExtensionKind; 2] = [ExtensionKind::AudioLevel, ExtensionKind::VideoOrientation];

/// Returns the header extensions that are passed on.
pub(super) fn passed(extensions: &[Extmap]) -> Vec<Extmap> {
    let passes = |extmap: &&Extmap| {
        let kind = extmap.kind();
        // Ids above 14 need headers that telephones do not know (RFC 8285 section 4.3).
        kind.is_some_and(|kind| PASSED.contains(&kind)) && (1..=14).contains(&extmap.id)
    };
    extensions.iter().filter(passes).cloned().collect()
}

/// Returns those of this side, and those of a far end that are passed on, with the browser's ids.
fn offered_extensions(far: &[Extmap], numbers: &mut Numbers) -> Vec<Extmap> {
    let passed = passed(far).into_iter().filter_map(|extmap| extmap.kind());
    OURS.into_iter()
        .chain(passed)
        .filter_map(|kind| numbers.extension(kind))
        .collect()
}

/// Returns an m-line of a far end's offer for the browser.
pub(super) fn offered(
    mid: Mid,
    far: &FarMedia,
    kind: Kind,
    transcodes: bool,
    numbers: &mut Numbers,
) -> Media {
    let mut codecs: Vec<CodecSpec> = far
        .codecs
        .iter()
        .filter(|codec| relayed(codec).is_some())
        .cloned()
        .collect();
    if kind == Kind::Audio && transcodes {
        codecs.extend(transcoding::opus_beyond(&codecs));
    }
    media(Media {
        direction: far.direction,
        bandwidth: far.bandwidth.clone(),
        attributes: far.attributes.clone(),
        codecs: numbers.of_browser(&codecs),
        extensions: offered_extensions(&far.extensions, numbers),
        ..empty(mid, kind)
    })
}

/// Returns an m-line of a running call for a new browser.
pub(super) fn offered_again(mid: Mid, agreed: &PlainMedia) -> Media {
    let mut codecs: Vec<CodecSpec> = Vec::new();
    let specs = agreed.codecs.iter().map(|codec| {
        let mut spec = codec.spec.clone();
        spec.fmtp.clone_from(&codec.far_fmtp);
        spec
    });
    codecs.extend(specs);
    codecs.extend(agreed.transcoding.iter().map(|it| it.browser.clone()));
    codecs.extend(agreed.events.iter().map(|event| event.spec.clone()));
    media(Media {
        direction: agreed.far_direction,
        codecs,
        extensions: offered_extensions(&agreed.extensions, &mut Numbers::default()),
        ..empty(mid, agreed.kind)
    })
}

/// Returns the answer to a browser's m-line from the far end's answer.
pub(super) fn answered(offered: &Media, agreed: &PlainMedia, far: &FarMedia) -> Media {
    let direct = agreed.codecs.iter().chain(&agreed.events);
    let direct = direct.map(|codec| CodecSpec {
        fmtp: answered_format(codec),
        ..codec.spec.clone()
    });
    // The parameters between the browser and this side are this side's.
    let own = agreed.transcoding.iter().map(|it| CodecSpec {
        fmtp: Some("useinbandfec=1".to_owned()),
        ..it.browser.clone()
    });
    let codecs: Vec<CodecSpec> = own.chain(direct).collect();
    let accepts = |extmap: &&Extmap| {
        let passes = agreed.extensions.iter().any(|it| it.uri == extmap.uri);
        passes || extmap.kind().is_some_and(|kind| OURS.contains(&kind))
    };
    media(Media {
        direction: far.direction,
        proto: offered.proto.clone(),
        bandwidth: far.bandwidth.clone(),
        attributes: far.attributes.clone(),
        extensions: offered
            .extensions
            .iter()
            .filter(accepts)
            .map(answered_extension)
            .collect(),
        codecs,
        ..empty(offered.mid, offered.kind)
    })
}

/// Returns the parameters of the answer for the browser: the far end's. With H.264, browsers accept
/// only their own offer (RFC 6184 section 8.2.2), but telephones omit it or name a neighbouring
/// profile.
fn answered_format(codec: &PlainCodec) -> Option<String> {
    let far = codec.far_fmtp.clone();
    if codec.codec != Codec::H264 {
        return far;
    }
    let far_spec = CodecSpec {
        fmtp: far.clone(),
        ..codec.spec.clone()
    };
    let own = |name| codec.spec.parameter(name);
    let level = far_spec.parameter("profile-level-id");
    let level = level.and_then(|level| level.get(4..6));
    let profile = own("profile-level-id").map(|own| {
        let level = level.or(own.get(4..)).unwrap_or_default();
        format!("{}{level}", own.get(..4).unwrap_or(own))
    });
    let kept = far.as_deref().unwrap_or_default().split(';').map(str::trim);
    let is_far = |parameter: &&str| {
        let name = parameter.split('=').next().unwrap_or_default();
        ["profile-level-id", "packetization-mode"]
            .iter()
            .all(|own| !name.eq_ignore_ascii_case(own))
    };
    let mut all: Vec<String> = kept
        .filter(|parameter| !parameter.is_empty())
        .filter(is_far)
        .map(str::to_owned)
        .collect();
    let mode = own("packetization-mode").map(str::to_owned);
    for (name, value) in [("packetization-mode", mode), ("profile-level-id", profile)] {
        all.extend(value.map(|value| format!("{name}={value}")));
    }
    (!all.is_empty()).then(|| all.join(";"))
}

fn answered_extension(offered: &Extmap) -> Extmap {
    Extmap {
        direction: offered.direction.map(Direction::reversed),
        ..offered.clone()
    }
}

/// Adds the feedback between this side and browsers.
fn media(mut media: Media) -> Media {
    let transport_cc = media.has_extension(ExtensionKind::TransportCc);
    for codec in &mut media.codecs {
        codec.feedback = match is_event(codec) {
            true => Vec::new(),
            false => server_feedback(media.kind, transport_cc),
        };
    }
    media
}

/// Returns an inactive m-line for the browser.
pub(super) fn unused(mid: Mid, kind: Kind) -> Media {
    Media {
        rejected: true,
        direction: Direction::Inactive,
        ..empty(mid, kind)
    }
}

fn empty(mid: Mid, kind: Kind) -> Media {
    let (proto, format) = match kind {
        Kind::Data => ("UDP/DTLS/SCTP", "webrtc-datachannel"),
        Kind::Audio | Kind::Video => ("UDP/TLS/RTP/SAVPF", "0"),
    };
    Media {
        kind,
        mid,
        rejected: false,
        direction: Direction::SendRecv,
        proto: proto.to_owned(),
        format: format.to_owned(),
        codecs: Vec::new(),
        extensions: Vec::new(),
        msid: None,
        bandwidth: None,
        attributes: Vec::new(),
    }
}

/// Returns the codecs of a browser's m-line for a far end.
pub(super) fn to_far(media: &Media) -> Vec<CodecSpec> {
    let relayed = media.codecs.iter().filter(|it| relayed(it).is_some());
    relayed.cloned().collect()
}

/// Returns whether a browser's m-line has media for a call.
pub(super) fn has_media(media: &Media) -> bool {
    let is_media =
        |codec: &CodecSpec| relayed(codec).is_some_and(|codec| codec != Codec::TelephoneEvent);
    !media.rejected && media.codecs.iter().any(is_media)
}
