//! The places of m-lines with their fixed properties.

use portunus_rtp::{Mid, Ssrc};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::description::{Direction, Media};
use crate::negotiated::Kind;
use crate::remote::MediaSlot;

/// The place of an m-line with its fixed properties.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub mid: Mid,
    pub kind: Kind,
    /// Whether it is active. If not, another m-line can take the place.
    pub active: bool,
    /// The SSRC of the server's stream.
    pub ssrc: Ssrc,
    /// The SSRC of the server's retransmissions.
    pub rtx_ssrc: Ssrc,
}

impl Slot {
    /// Makes a place for `media`, with SSRCs that differ from those of `others`.
    pub(crate) fn new(media: &Media, others: &[Slot], rng: &mut SmallRng) -> Self {
        let mut slot = Slot {
            mid: media.mid,
            kind: media.kind,
            active: !media.rejected,
            ssrc: Ssrc(rng.random()),
            rtx_ssrc: Ssrc(rng.random()),
        };
        while slot.clashes(others) {
            slot.ssrc = Ssrc(rng.random());
            slot.rtx_ssrc = Ssrc(rng.random());
        }
        slot
    }

    /// Returns whether it is the place of `media`.
    pub(crate) fn is_of(&self, media: &Media) -> bool {
        self.mid == media.mid && self.kind == media.kind
    }

    /// Returns its public part.
    pub(crate) fn public(&self) -> MediaSlot {
        MediaSlot {
            mid: self.mid,
            active: self.active,
        }
    }

    /// Returns an m-line that only keeps the place.
    pub(crate) fn placeholder(&self) -> Media {
        let (proto, format) = match self.kind {
            Kind::Data => ("UDP/DTLS/SCTP", "webrtc-datachannel"),
            Kind::Audio | Kind::Video => ("UDP/TLS/RTP/SAVPF", "0"),
        };
        Media {
            kind: self.kind,
            mid: self.mid,
            rejected: true,
            direction: Direction::Inactive,
            proto: proto.to_owned(),
            format: format.to_owned(),
            codecs: Vec::new(),
            extensions: Vec::new(),
            msid: None,
            bandwidth: None,
            attributes: Vec::new(),
        }
    }

    fn clashes(&self, others: &[Slot]) -> bool {
        let taken = |ssrc| {
            others
                .iter()
                .any(|other| other.ssrc == ssrc || other.rtx_ssrc == ssrc)
        };
        let zero = self.ssrc == Ssrc(0) || self.rtx_ssrc == Ssrc(0);
        zero || self.ssrc == self.rtx_ssrc || taken(self.ssrc) || taken(self.rtx_ssrc)
    }
}
