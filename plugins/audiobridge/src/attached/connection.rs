//! The handle's PeerConnection, as far as the plugin has to know it. It outlives the time in a room.

use portunus_core::sdp::{Description, Direction};
use portunus_core::{Handle, Jsep, JsepKind, LocalJsep, Mid};
use portunus_dsp::AudioCodec;
use portunus_resources::Id;

use crate::line::{self, Answers, Line, Wish};
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::room::PeerLink;

/// A PeerConnection, or none yet.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// The m-line that was agreed on.
    link: Option<PeerLink>,
    /// Media can flow.
    up: bool,
    /// It was this side that offered it.
    ours: bool,
    answers: Option<Answers>,
}

impl Connection {
    /// Forgets a PeerConnection that is gone: others can close it.
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

    /// Whether there is one.
    pub(super) fn exists(handle: &Handle) -> bool {
        // Which m-line it is makes no difference.
        Mid::new("0").is_some_and(|mid| handle.track(mid).is_some())
    }

    /// The m-line that was agreed on.
    pub(super) fn link(&self) -> Option<&PeerLink> {
        self.link.as_ref()
    }

    pub(super) const fn is_up(&self) -> bool {
        self.up
    }

    /// Whether it was this side that offered it.
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
        room: (&Id, &RoomOptions),
        wish: Wish<'_>,
    ) -> Result<LocalJsep, Refusal> {
        let answers = self.answers.get_or_insert_with(Answers::new);
        let description = line::answer(offer, room, wish, answers);
        let local = handle.answer(description)?;
        self.agreed(handle, offer);
        Ok(local)
    }

    /// Offers to the client, with new ICE credentials if `restart`.
    pub(super) fn offer(
        &mut self,
        handle: &Handle,
        room: (&Id, &RoomOptions),
        (codec, direction): (AudioCodec, Direction),
        restart: bool,
    ) -> Result<LocalJsep, Refusal> {
        if self.link.is_some() && !self.ours {
            return Err(Refusal::OfferOnClients);
        }
        let local = handle.offer(line::offer(room, codec, direction), restart)?;
        self.ours = true;
        Ok(local)
    }

    /// The client's answer to our offer, or its offer that was answered, has been taken: from now on this is the m-line.
    pub(super) fn agreed(&mut self, handle: &Handle, client: &Description) {
        let negotiated = handle.negotiated();
        let line = negotiated.and_then(|negotiated| Line::of(&negotiated, client));
        self.link = line.and_then(|line| {
            let track = handle.track(line.mid)?;
            Some(PeerLink { track, line })
        });
    }
}
