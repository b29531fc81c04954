//! The format of an m-line in offers to subscribers.

use portunus_rtp::{ExtensionKind, Pt};
use portunus_sdp::{CodecName, CodecSpec, MediaOffer};

use super::payloads::{Payloads, redundant};
use crate::publication::{Stream, StreamFormat};

/// The ids of the header extensions in offers, where they depend on the source.
const AUDIO_LEVEL: (ExtensionKind, u8) = (ExtensionKind::AudioLevel, 1);
pub(super) const PLAYOUT_DELAY: (ExtensionKind, u8) = (ExtensionKind::PlayoutDelay, 12);
const VIDEO_ORIENTATION: (ExtensionKind, u8) = (ExtensionKind::VideoOrientation, 13);
const DEPENDENCY_DESCRIPTOR: (ExtensionKind, u8) = (ExtensionKind::DependencyDescriptor, 14);

/// The format of an m-line in offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OfferedFormat {
    pub(super) codec: Option<CodecName>,
    /// The number of audio channels, if it is not the codec's usual one.
    pub(super) channels: Option<u8>,
    /// The payload type of the last offer.
    pt: Option<Pt>,
    fmtp: Option<String>,
    /// Whether the audio may come with redundancy (RFC 2198).
    red: bool,
    /// The header extensions that depend on the source.
    pub(super) extensions: Vec<(ExtensionKind, u8)>,
}

impl OfferedFormat {
    /// Returns the format for a stream. It has no payload type yet.
    pub(super) fn of(stream: &Stream) -> Self {
        OfferedFormat {
            codec: stream.format.codec,
            channels: stream.format.channels,
            pt: None,
            fmtp: fmtp(&stream.format),
            red: stream.format.red,
            extensions: offered_extensions(&stream.format),
        }
    }

    /// Takes the payload type for its codec and parameters.
    pub(super) fn assign_pt(&mut self, payloads: &mut Payloads) {
        let number = |codec| payloads.number(codec, self.channels, self.fmtp.as_deref());
        self.pt = self.codec.map(number);
    }

    /// Adds the codec to an offer, if there is one.
    pub(super) fn offer(&self, media: &mut MediaOffer) {
        let Some(codec) = self.codec else {
            return;
        };
        let pt = self.pt.unwrap_or_else(|| codec.default_pt());
        let usual = CodecSpec::new(codec, pt);
        media.codecs.push(CodecSpec {
            channels: self.channels.unwrap_or(usual.channels),
            fmtp: self.fmtp.clone(),
            ..usual
        });
        if self.red {
            media.add_red(redundant(pt), pt);
        }
    }
}

/// Returns the header extensions that depend on the source's own.
pub(super) fn offered_extensions(format: &StreamFormat) -> Vec<(ExtensionKind, u8)> {
    // Payloads of AV1 do not say on which other frames a frame depends. Those of VP9 do.
    let dependencies = format.extensions.dependency_descriptor;
    let dependencies = dependencies.filter(|_| format.codec == Some(CodecName::Av1));
    let negotiated = [
        (dependencies, DEPENDENCY_DESCRIPTOR),
        (format.extensions.audio_level, AUDIO_LEVEL),
        (format.extensions.playout_delay, PLAYOUT_DELAY),
        (format.extensions.video_orientation, VIDEO_ORIENTATION),
    ];
    let known = negotiated.into_iter().filter(|(id, _)| id.is_some());
    known.map(|(_, offered)| offered).collect()
}

/// Returns the format parameters of a stream in offers.
pub(super) fn fmtp(format: &StreamFormat) -> Option<String> {
    match format.codec? {
        CodecName::Opus => {
            let fmtp = format.opus.fmtp();
            let stereo = |fmtp| format!("{fmtp};sprop-stereo=1");
            match format.opus.stereo {
                true => fmtp.map(stereo),
                false => fmtp,
            }
        }
        CodecName::MultiOpus => format.fmtp.clone(),
        CodecName::H264 => {
            let profile = format.h264_profile.as_deref().unwrap_or("42e01f");
            Some(format!("profile-level-id={profile};packetization-mode=1"))
        }
        CodecName::Vp9 => format
            .vp9_profile
            .as_deref()
            .map(|profile| format!("profile-id={profile}")),
        _ => None,
    }
}
