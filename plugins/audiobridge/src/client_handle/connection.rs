//! The PeerConnection of a handle. It outlives the stay in a room.

use portunus_core::sdp::{Description, Direction};
use portunus_core::{Handle, Jsep, JsepKind, LocalJsep, Mid};
use portunus_dsp::AudioCodec;

use crate::line::{self, Answers, Line, Wish};
use crate::refusal::Refusal;
use crate::room::{PeerLink, Profile};

/// A PeerConnection, or none yet.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// The negotiated m-line.
    link: Option<PeerLink>,
    /// Whether media can flow.
    up: bool,
    /// Whether the server offered it.
    ours: bool,
    answers: Option<Answers>,
}

impl Connection {
    /// Forgets the PeerConnection if it is gone. Others can close it.
    pub(super) fn refresh(&mut self, handle: &Handle) {
        let mid = self.link.as_ref().map(|link| link.line.mid);
        let Some(mid) = mid.or_else(|| Mid::new("0")) else {
            return;
        };
        let track = handle.track(mid);
        let known = self.link.as_ref().map(|link| link.track);
        if track.is_none() || (known.is_some() && track != known) {
            *self = Connection::default();
        }
    }

    /// Whether the handle has a PeerConnection.
    pub(super) fn exists(handle: &Handle) -> bool {
        // Any m-line shows it.
        Mid::new("0").is_some_and(|mid| handle.track(mid).is_some())
    }

    /// The negotiated m-line.
    pub(super) fn link(&self) -> Option<&PeerLink> {
        self.link.as_ref()
    }

    pub(super) const fn is_up(&self) -> bool {
        self.up
    }

    /// Whether the server offered it.
    pub(super) const fn is_ours(&self) -> bool {
        self.ours
    }

    pub(super) fn came_up(&mut self) {
        self.up = true;
    }

    /// Checks that a client may send this offer or answer now.
    pub(super) fn check(&self, jsep: Option<&Jsep>) -> Result<(), Refusal> {
        let Some(jsep) = jsep else { return Ok(()) };
        if jsep.e2ee {
            return Err(Refusal::Encrypted);
        }
        match jsep.kind {
            JsepKind::Offer if self.ours => Err(Refusal::OfferOnOffered),
            JsepKind::Answer if !self.ours => Err(Refusal::AnswerWithoutOffer),
            JsepKind::Offer | JsepKind::Answer => Ok(()),
        }
    }

    /// Answers the client's offer.
    pub(super) fn answer(
        &mut self,
        handle: &Handle,
        offer: &Description,
        profile: &Profile,
        wish: Wish<'_>,
    ) -> Result<LocalJsep, Refusal> {
        let answers = self.answers.get_or_insert_with(Answers::new);
        let description = line::answer(offer, profile, wish, answers);
        let local = handle.answer(description)?;
        self.agreed(handle, offer);
        Ok(local)
    }

    /// Offers to the client. `restart` means new ICE credentials.
    pub(super) fn offer(
        &mut self,
        handle: &Handle,
        profile: &Profile,
        codec: AudioCodec,
        direction: Direction,
        restart: bool,
    ) -> Result<LocalJsep, Refusal> {
        if self.link.is_some() && !self.ours {
            return Err(Refusal::OfferOnClients);
        }
        let local = handle.offer(line::offer(profile, codec, direction), restart)?;
        self.ours = true;
        Ok(local)
    }

    /// Takes the m-line of a completed negotiation. `client` is the client's offer or answer.
    pub(super) fn agreed(&mut self, handle: &Handle, client: &Description) {
        let negotiated = handle.negotiated();
        let line = negotiated.and_then(|negotiated| Line::of(&negotiated, client));
        self.link = line.and_then(|line| {
            let track = handle.track(line.mid)?;
            Some(PeerLink { track, line })
        });
    }
}
