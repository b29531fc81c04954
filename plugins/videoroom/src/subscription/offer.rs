//! The offers of a subscription.

use std::collections::HashMap;

use portunus_core::sdp::{CodecName, Description, Direction, Kind, MediaOffer, Msid, OfferOptions};
use portunus_core::{ExtensionKind, HandleId, LocalJsep, Object};

use super::{Format, Line, Pending, Signaling, Source};
use crate::id::Id;
use crate::publication::Stream;
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::Participant;

/// The numbers of the header extensions in offers.
const AUDIO_LEVEL: (ExtensionKind, u8) = (ExtensionKind::AudioLevel, 1);
const ABS_SEND_TIME: (ExtensionKind, u8) = (ExtensionKind::AbsSendTime, 2);
const TRANSPORT_CC: (ExtensionKind, u8) = (ExtensionKind::TransportCc, 3);
const MID: (ExtensionKind, u8) = (ExtensionKind::Mid, 4);
const PLAYOUT_DELAY: (ExtensionKind, u8) = (ExtensionKind::PlayoutDelay, 12);
const VIDEO_ORIENTATION: (ExtensionKind, u8) = (ExtensionKind::VideoOrientation, 13);
const DEPENDENCY_DESCRIPTOR: (ExtensionKind, u8) = (ExtensionKind::DependencyDescriptor, 14);

impl RoomState {
    /// Makes an offer of what the subscription has; there must be none that waits for its answer.
    pub(super) fn offer(&mut self, key: HandleId) -> Result<LocalJsep, Refusal> {
        let RoomState {
            id,
            options,
            people,
            subscribers,
            ..
        } = self;
        let subscriber = subscribers.get_mut(&key).ok_or(Refusal::NotInRoom)?;
        for line in &mut subscriber.lines {
            if line.seat.is_some() {
                continue;
            }
            if let Some((_, stream)) = line.track(people) {
                line.format = Format::of(stream);
            }
            let Format {
                codec, fmtp, pt, ..
            } = &mut line.format;
            *pt = codec.map(|codec| subscriber.payloads.number(codec, fmtp.as_deref()));
        }
        let transport_cc = options.transport_wide_cc_ext;
        let media = subscriber.lines.iter().map(|line| {
            let offered = line.offered(people, transport_cc);
            MediaOffer {
                msid: line.msid().filter(|_| subscriber.use_msid),
                ..offered
            }
        });
        let description = Description::offer(OfferOptions {
            name: format!("VideoRoom {id}"),
            session_id: String::new(),
            media: media.collect(),
        });
        let restart = subscriber.pending.restart;
        let offer = subscriber.handle.offer(description, restart)?;
        subscriber.signaling = Signaling::HaveLocalOffer;
        subscriber.pending = Pending::default();
        Ok(offer.with_e2ee(subscriber.e2ee))
    }

    /// Offers what has changed, or keeps that back until the client has answered the last offer.
    pub(crate) fn renegotiate(&mut self, key: HandleId, transaction: Option<&str>) {
        let Some(subscriber) = self.subscribers.get_mut(&key) else {
            return;
        };
        if subscriber.client_offered {
            return;
        }
        subscriber.pending.offer = true;
        if subscriber.signaling == Signaling::HaveLocalOffer {
            return;
        }
        match self.offer(key) {
            Ok(offer) => {
                let updated = self.updated().with("streams", self.summaries(key));
                if let Some(subscriber) = self.subscribers.get(&key) {
                    subscriber.handle.push(transaction, updated, Some(offer));
                }
            }
            // Its PeerConnection is being closed, which ends the subscription.
            Err(error) => tracing::debug!(%error, "a subscription cannot be renegotiated"),
        }
    }

    /// The event that comes with offers.
    pub(super) fn updated(&self) -> Object {
        Object::new()
            .with("videoroom", "updated")
            .with("room", self.id.to_json())
    }
}

impl Format {
    fn of(stream: &Stream) -> Self {
        Format {
            codec: stream.codec,
            pt: None,
            fmtp: fmtp(stream),
            extensions: offered_extensions(stream),
        }
    }
}

impl Line {
    fn offered(&self, people: &HashMap<Id, Participant>, transport_cc: bool) -> MediaOffer {
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
        let direction = match (self.track(people), &self.seat) {
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
            media.add_codec(codec, self.format.pt, self.format.fmtp.clone());
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
pub(super) fn offered_extensions(stream: &Stream) -> Vec<(ExtensionKind, u8)> {
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
pub(super) fn fmtp(stream: &Stream) -> Option<String> {
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
        CodecName::Pcmu
        | CodecName::Pcma
        | CodecName::G722
        | CodecName::Isac32
        | CodecName::Isac16
        | CodecName::L16Wide
        | CodecName::L16
        | CodecName::Vp8
        | CodecName::Av1
        | CodecName::H265 => None,
    }
}
