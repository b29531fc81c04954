//! An m-line in the offers of its subscription.

use portunus_rtp::ExtensionKind;
use portunus_sdp::{Direction, Kind, MediaOffer, Msid};

use super::{Line, Source};
use crate::Connection;
use crate::publication::Publications;
use crate::subscription::format::{OfferedFormat, PLAYOUT_DELAY};
use crate::subscription::payloads::Payloads;

/// The ids of the header extensions in offers that do not depend on the source.
const ABS_SEND_TIME: (ExtensionKind, u8) = (ExtensionKind::AbsSendTime, 2);
const TRANSPORT_CC: (ExtensionKind, u8) = (ExtensionKind::TransportCc, 3);
const MID: (ExtensionKind, u8) = (ExtensionKind::Mid, 4);

impl Line {
    /// Takes the format of its stream for the next offer. A seat keeps its own formats.
    pub(in crate::subscription) fn update_format(
        &mut self,
        publications: &Publications,
        payloads: &mut Payloads,
    ) {
        if self.seat.is_some() {
            return;
        }
        if let Some((_, stream)) = self.track(publications) {
            self.format = OfferedFormat::of(stream);
        }
        self.format.assign_pt(payloads);
    }

    /// Returns the m-line in an offer. `a=msid` is what `connection` wants, or its publisher's name
    /// if `use_msid`.
    pub(in crate::subscription) fn offer(
        &self,
        connection: &dyn Connection,
        publications: &Publications,
        transport_cc: bool,
        use_msid: bool,
    ) -> MediaOffer {
        let own = self
            .source()
            .and_then(|(feed, mid)| connection.msid(feed, mid));
        MediaOffer {
            msid: own.or_else(|| self.msid().filter(|_| use_msid)),
            ..self.offered(publications, transport_cc)
        }
    }

    /// Returns the m-line in an offer, without the publisher's name.
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
            seat.offer(&mut media);
        } else {
            self.format.offer(&mut media);
        }
        media.extensions.push(MID);
        if self.kind == Kind::Video {
            media.extensions.push(ABS_SEND_TIME);
        }
        media
            .extensions
            .extend(transport_cc.then_some(TRANSPORT_CC));
        media.extensions.extend(self.format.extensions.iter());
        // A requested delay needs the extension, even if the publisher did not negotiate it.
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
