//! Our offers: what a mountpoint's streams look like in a description.

use portunus_core::sdp::{
    CodecName, CodecSpec, Description, Direction, Kind, MediaOffer, Msid, OfferOptions,
};
use portunus_core::{ExtensionKind, Pt};

use super::Watching;
use super::subscription::Subscription;
use crate::mountpoint::Mountpoint;
use crate::spec::MediaKind;

/// The numbers of header extensions that viewers of Janus know.
const ABS_SEND_TIME: u8 = 2;
const MID: u8 = 4;
const ABS_CAPTURE_TIME: u8 = 7;
const PLAYOUT_DELAY: u8 = 12;
/// Beside them, where layers are chosen by what a viewer's link carries.
const TRANSPORT_CC: u8 = 3;
/// And for what a phone publishes.
const VIDEO_ORIENTATION: u8 = 13;

impl Watching {
    /// Returns an offer of all m-lines so far. Unwanted ones are inactive.
    pub(super) fn offer(&self) -> Description {
        let mut media: Vec<MediaOffer> = Vec::new();
        for subscription in &self.subscriptions {
            let line = Some(subscription.line);
            let shared = media.iter_mut().find(|media| media.mid == line);
            match shared {
                // Another data stream shares the m-line.
                Some(shared) => {
                    if subscription.wanted {
                        shared.direction = Direction::SendOnly;
                    }
                }
                None => media.extend(subscription.offer(&self.mountpoint)),
            }
        }
        for data in media.iter_mut().filter(|media| media.kind == Kind::Data) {
            data.direction = Direction::SendRecv;
        }
        self.part_payload_types(&mut media);
        Description::offer(OfferOptions {
            name: format!("Mountpoint {}", self.mountpoint.id),
            session_id: String::new(),
            media,
        })
    }
}

impl Watching {
    /// Makes payload types unique on the transport. An unused m-line still has the format of an
    /// earlier mountpoint's stream, and gets another number.
    fn part_payload_types(&self, media: &mut [MediaOffer]) {
        let waits = |media: &MediaOffer| {
            let mut waiting = self.subscriptions.iter().filter(|s| s.stream.is_none());
            waiting.any(|subscription| Some(subscription.line) == media.mid)
        };
        let codecs = |media: &MediaOffer| media.codecs.clone();
        let mut taken: Vec<_> = media
            .iter()
            .filter(|media| !waits(media))
            .flat_map(codecs)
            .collect();
        for media in media.iter_mut().filter(|media| waits(media)) {
            let meets = |codec: &CodecSpec| taken.iter().any(|other| meet(codec, other));
            if media.codecs.iter().any(meets) {
                // Its parameters contain another payload type.
                media.codecs.retain(|codec| !codec.is_red());
                for codec in &mut media.codecs {
                    let mut free = (96..=127).rev().chain(35..=63).map(Pt);
                    let free = free.find(|pt| taken.iter().all(|other| other.pt != *pt));
                    codec.pt = free.unwrap_or(codec.pt);
                    taken.push(codec.clone());
                }
            } else {
                taken.extend(codecs(media));
            }
        }
    }
}

/// Returns whether two codecs have one payload type, and are not the same.
fn meet(one: &CodecSpec, other: &CodecSpec) -> bool {
    let is_same = one.is_same_codec(other) && one.fmtp == other.fmtp;
    one.pt == other.pt && !is_same
}

impl Subscription {
    fn offer(&self, mountpoint: &Mountpoint) -> Option<MediaOffer> {
        let stream = self.stream_of(mountpoint);
        let direction = match self.wanted {
            true => Direction::SendOnly,
            false => Direction::Inactive,
        };
        let mut media = MediaOffer::new(self.kind.into(), direction);
        media.mid = Some(self.line);
        let msid = stream.and_then(|stream| stream.spec.msid.as_ref());
        media.msid = msid.map(|(stream, track)| Msid {
            stream: stream.clone(),
            track: track.clone(),
        });
        if self.kind == MediaKind::Data {
            return Some(media);
        }
        let format = match stream {
            Some(stream) => stream.format(),
            None => self.format.clone(),
        };
        let format = format?;
        let spec = format.spec()?;
        // Redundant audio needs its Opus in the same m-line.
        let made_of = format.codec?.made_of(spec.fmtp.as_deref());
        if let Some(pt) = made_of {
            media.add_codec(CodecName::Opus, Some(Pt(pt)), None);
        }
        media.codecs.insert(0, spec);
        media.extensions = vec![
            (ExtensionKind::AbsSendTime, ABS_SEND_TIME),
            (ExtensionKind::Mid, MID),
        ];
        if stream.is_some_and(|stream| stream.live().has_layers()) {
            let extension = (ExtensionKind::TransportCc, TRANSPORT_CC);
            media.extensions.push(extension);
        }
        if mountpoint.abs_capture_time().is_some() {
            let extension = (ExtensionKind::AbsCaptureTime, ABS_CAPTURE_TIME);
            media.extensions.push(extension);
        }
        if self.kind == MediaKind::Video && mountpoint.takes_publishers() {
            let extension = (ExtensionKind::VideoOrientation, VIDEO_ORIENTATION);
            media.extensions.push(extension);
        }
        if self.kind == MediaKind::Video && mountpoint.has_playout_delay() {
            media
                .extensions
                .push((ExtensionKind::PlayoutDelay, PLAYOUT_DELAY));
        }
        Some(media)
    }
}
