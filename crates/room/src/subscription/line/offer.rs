//! How an m-line is offered.

use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, CodecSpec, Direction, Kind, MediaOffer, Msid};

use super::{Format, Line, Source};
use crate::publication::{Publications, Stream};
use crate::subscription::payloads::Payloads;

/// The numbers of the header extensions in offers.
const AUDIO_LEVEL: (ExtensionKind, u8) = (ExtensionKind::AudioLevel, 1);
const ABS_SEND_TIME: (ExtensionKind, u8) = (ExtensionKind::AbsSendTime, 2);
const TRANSPORT_CC: (ExtensionKind, u8) = (ExtensionKind::TransportCc, 3);
const MID: (ExtensionKind, u8) = (ExtensionKind::Mid, 4);
const PLAYOUT_DELAY: (ExtensionKind, u8) = (ExtensionKind::PlayoutDelay, 12);
const VIDEO_ORIENTATION: (ExtensionKind, u8) = (ExtensionKind::VideoOrientation, 13);
const DEPENDENCY_DESCRIPTOR: (ExtensionKind, u8) = (ExtensionKind::DependencyDescriptor, 14);

impl Line {
    /// Takes the format of the stream that it is going to be offered with. A seat keeps those that it has.
    pub(in crate::subscription) fn update_format(
        &mut self,
        publications: &Publications,
        payloads: &mut Payloads,
    ) {
        if self.seat.is_some() {
            return;
        }
        if let Some((_, _, stream)) = self.track(publications) {
            self.format = Format::of(stream);
        }
        let format = &mut self.format;
        let number = |codec| payloads.number(codec, format.channels, format.fmtp.as_deref());
        format.pt = format.codec.map(number);
    }

    /// As it is offered, with the name of its publisher if `use_msid`.
    pub(in crate::subscription) fn offer(
        &self,
        publications: &Publications,
        transport_cc: bool,
        use_msid: bool,
    ) -> MediaOffer {
        MediaOffer {
            msid: self.msid().filter(|_| use_msid),
            ..self.offered(publications, transport_cc)
        }
    }
}

impl Format {
    fn of(stream: &Stream) -> Self {
        Format {
            codec: stream.codec,
            channels: stream.channels,
            pt: None,
            fmtp: fmtp(stream),
            extensions: offered_extensions(stream),
        }
    }

    /// As it stands in an offer; `codec` is its codec.
    fn spec(&self, codec: CodecName) -> CodecSpec {
        let usual = CodecSpec::new(codec, self.pt.unwrap_or_else(|| codec.default_pt()));
        CodecSpec {
            channels: self.channels.unwrap_or(usual.channels),
            fmtp: self.fmtp.clone(),
            ..usual
        }
    }
}

impl Line {
    /// As it is offered.
    fn offered(&self, publications: &Publications, transport_cc: bool) -> MediaOffer {
        if self.kind == Kind::Data {
            let direction = match self.source {
                Source::None => Direction::Inactive,
                Source::Track { .. } | Source::Data(_) => Direction::SendRecv,
            };
            return MediaOffer {
                mid: Some(self.mid),
                ..MediaOffer::new(Kind::Data, direction)
            };
        }
        let direction = match (self.track(publications), &self.seat) {
            (Some(_), _) | (None, Some(_)) => Direction::SendOnly,
            (None, None) => Direction::Inactive,
        };
        let mut media = MediaOffer::new(self.kind, direction);
        media.mid = Some(self.mid);
        if let Some(seat) = &self.seat {
            for format in &seat.formats {
                media.add_codec(format.codec, format.pt, format.fmtp.clone());
            }
        } else if let Some(codec) = self.format.codec {
            media.codecs.push(self.format.spec(codec));
        }
        media.extensions.push(MID);
        if self.kind == Kind::Video {
            media.extensions.push(ABS_SEND_TIME);
        }
        media
            .extensions
            .extend(transport_cc.then_some(TRANSPORT_CC));
        media.extensions.extend(self.format.extensions.iter());
        // A delay that is asked for needs the extension, whoever negotiated it.
        let delayed = self.requested.delay.range().is_some() && self.kind == Kind::Video;
        if delayed && !media.extensions.contains(&PLAYOUT_DELAY) {
            media.extensions.push(PLAYOUT_DELAY);
        }
        media
    }

    fn msid(&self) -> Option<Msid> {
        match &self.source {
            Source::Track { feed, .. } => Some(Msid {
                stream: feed.to_string(),
                track: self.mid.to_string(),
            }),
            Source::None | Source::Data(_) => None,
        }
    }
}

/// The header extensions that depend on what the source negotiated.
pub(in crate::subscription) fn offered_extensions(stream: &Stream) -> Vec<(ExtensionKind, u8)> {
    // Frames of AV1 do not say in their payload on which others they depend; those of VP9 do.
    let dependencies = stream.extensions.dependency_descriptor;
    let dependencies = dependencies.filter(|_| stream.codec == Some(CodecName::Av1));
    let negotiated = [
        (dependencies, DEPENDENCY_DESCRIPTOR),
        (stream.extensions.audio_level, AUDIO_LEVEL),
        (stream.extensions.playout_delay, PLAYOUT_DELAY),
        (stream.extensions.video_orientation, VIDEO_ORIENTATION),
    ];
    let known = negotiated.into_iter().filter(|(id, _)| id.is_some());
    known.map(|(_, offered)| offered).collect()
}

/// The format parameters of a stream in offers.
pub(in crate::subscription) fn fmtp(stream: &Stream) -> Option<String> {
    match stream.codec? {
        CodecName::Opus => stream.opus.fmtp(),
        CodecName::MultiOpus => stream.fmtp.clone(),
        CodecName::H264 => {
            let profile = stream.h264_profile.as_deref().unwrap_or("42e01f");
            Some(format!("profile-level-id={profile};packetization-mode=1"))
        }
        CodecName::Vp9 => stream
            .vp9_profile
            .as_deref()
            .map(|profile| format!("profile-id={profile}")),
        _ => None,
    }
}
