//! The media of one call.

mod client_change;
mod forwarders;
mod recordings;
mod state;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use portunus_core::sdp::plain::{
    FarSession, LocalEnd, PlainError, PlainMedia, PlainSession, Ports, SrtpPolicy, SrtpUse,
};
use portunus_core::sdp::{Description, Direction, Kind};
use portunus_core::{Handle, LocalJsep, Mid, PendingOffer};
use portunus_leg::{Leg, LegEvent, LegGates, LegNews, LegOptions, LegTones, Medium};
use rand::RngCore;
use tokio::sync::mpsc;

use crate::side::Side;
use crate::{CallError, CallSettings};
use forwarders::Forwarders;
pub use forwarders::{ForwardError, ForwardRequest, MAX_FORWARDERS, ResolvedForward};
use recordings::Recordings;
pub use recordings::{KeyframeRequest, RecordingAction, RecordingRequest, Sides};

/// The maximum number of a leg's events that wait.
const NEWS: usize = 64;

/// An event of the media of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNews {
    /// The medium.
    pub kind: Kind,
    /// The event.
    pub event: LegEvent,
}

type Tell = Arc<dyn Fn(CallNews) + Send + Sync>;

/// The result of a far end's description.
#[derive(Debug)]
pub struct Negotiated {
    /// The offer or answer for the client.
    pub jsep: LocalJsep,
    /// How SRTP is used, if a key was accepted.
    pub srtp: Option<SrtpUse>,
}

/// The media of one call, between the client of a handle and a far end. Dropping it ends everything
/// except the client's PeerConnection.
///
/// No method waits, so all may be called under a lock. An error leaves the negotiation as it was.
pub struct CallMedia {
    pub(crate) settings: Arc<CallSettings>,
    pub(crate) handle: Handle,
    pub(crate) session: PlainSession,
    pub(crate) audio: Option<Side>,
    pub(crate) video: Option<Side>,
    held: Option<Direction>,
    /// The address that the far end gets.
    address: IpAddr,
    /// The address that replaces it with the answer to the far end's offer.
    answer_address: Option<IpAddr>,
    pub(crate) recordings: Recordings,
    pub(crate) forwarders: Forwarders,
    tell: Tell,
    /// The client's offer, until the far end answers it.
    client_offer: Option<PendingOffer>,
}

impl CallMedia {
    /// Makes the media of a future call. Tasks of its legs call `tell` with their events.
    pub fn new(
        settings: Arc<CallSettings>,
        handle: Handle,
        tell: impl Fn(CallNews) + Send + Sync + 'static,
    ) -> Self {
        let transcodes = settings.transcodes && settings.audio.is_some();
        CallMedia {
            session: PlainSession::new(settings.one_of_each, transcodes),
            address: settings.address,
            answer_address: None,
            settings,
            handle,
            audio: None,
            video: None,
            held: None,
            recordings: Recordings::default(),
            forwarders: Forwarders::default(),
            tell: Arc::new(tell),
            client_offer: None,
        }
    }

    /// Returns the negotiated media: at most one of each kind.
    pub fn agreed(&self) -> &[PlainMedia] {
        self.session.agreed()
    }

    /// Whether an offer of the far end waits for its answer.
    pub fn has_taken_offer(&self) -> bool {
        self.session.has_taken_offer()
    }

    /// Whether the waiting offer of the far end has keys of SRTP that can be used.
    pub fn is_srtp_offered(&self) -> bool {
        self.session.is_srtp_offered()
    }

    /// Sets the presumed address of the far end, which is offered an address of the same family if
    /// there is one.
    pub fn expect_at(&mut self, far: IpAddr) {
        self.address = self.settings.address_towards(far).unwrap_or(self.address);
    }

    /// Converts the client's offer into one for the far end. Without `srtp` the last policy holds.
    pub fn offer(
        &mut self,
        client: &Description,
        srtp: Option<SrtpPolicy>,
    ) -> Result<String, CallError> {
        self.open_legs(PlainSession::kinds(client))?;
        let local = self.local(self.address);
        Ok(self.session.offer(client, &local, srtp, &mut fill)?)
    }

    /// Keeps the client's offer until the far end answers it, or until [`CallMedia::discard`].
    pub fn keep_offer(&mut self, offer: Option<PendingOffer>) {
        self.client_offer = offer;
    }

    /// Takes the far end's answer to the client's offer.
    pub fn accept_answer(
        &mut self,
        sdp: &str,
        srtp: Option<SrtpPolicy>,
    ) -> Result<Negotiated, CallError> {
        self.check_far(sdp)?;
        let mut session = self.session.clone();
        let accepted = session.accept_answer(sdp, srtp)?;
        let jsep = self.handle.answer(accepted.description)?;
        self.client_offer = None;
        self.session = session;
        self.apply();
        Ok(Negotiated {
            jsep,
            srtp: accepted.srtp,
        })
    }

    /// Takes the far end's answer to an offer that the client does not know
    /// ([`CallMedia::offer_again`]), or another answer to an answered offer of the client.
    pub fn accept_answer_alone(
        &mut self,
        sdp: &str,
        srtp: Option<SrtpPolicy>,
    ) -> Result<Option<SrtpUse>, CallError> {
        self.check_far(sdp)?;
        let accepted = self.session.accept_answer(sdp, srtp)?;
        self.apply();
        Ok(accepted.srtp)
    }

    /// Takes an offer of the far end, and offers it to the client.
    pub fn take_offer(
        &mut self,
        sdp: &str,
        srtp: Option<SrtpPolicy>,
    ) -> Result<Negotiated, CallError> {
        self.take_parsed_offer(&FarSession::parse(sdp)?, srtp)
    }

    /// Takes an offer of the far end that was parsed before, and offers it to the client.
    pub fn take_parsed_offer(
        &mut self,
        far: &FarSession,
        srtp: Option<SrtpPolicy>,
    ) -> Result<Negotiated, CallError> {
        self.settings.check_far(far)?;
        let address = self.settings.address_for(far, self.address)?;
        let mut session = self.session.clone();
        let accepted = session.take_parsed_offer(far.clone(), srtp)?;
        let jsep = self.handle.offer(accepted.description, false)?;
        self.session = session;
        self.answer_address = Some(address);
        Ok(Negotiated {
            jsep,
            srtp: accepted.srtp,
        })
    }

    /// Converts the client's answer into one for the far end. It may have no media in use: see
    /// [`CallMedia::agreed`].
    pub fn answer(
        &mut self,
        client: &Description,
        srtp: Option<SrtpPolicy>,
    ) -> Result<String, CallError> {
        self.open_legs(PlainSession::kinds(client))?;
        let address = self.answer_address.unwrap_or(self.address);
        let local = self.local(address);
        let sdp = self.session.answer(client, &local, srtp, &mut fill)?;
        self.address = address;
        self.answer_address = None;
        self.apply();
        Ok(sdp)
    }

    /// Answers an offer of the far end without the client: with its last description, and nothing
    /// new. Refuses an offer that would cost the call its sound, because the client has none of its
    /// codecs; the call stays as it was then.
    pub fn answer_alone(&mut self, sdp: &str) -> Result<String, CallError> {
        let far = self.check_far(sdp)?;
        let address = self.settings.address_for(&far, self.address)?;
        let mut session = self.session.clone();
        session.take_parsed_offer(far.clone(), None)?;
        let said = session.said();
        let local = self.local(address);
        let answer = session.answer(&said, &local, None, &mut fill)?;
        let loses = |kind| {
            let mut used = far.media.iter().filter(|media| media.is_usable());
            let is_offered = used.any(|media| media.kind() == Some(kind));
            let had = self.session.agreed_on(kind).is_some();
            is_offered && had && session.agreed_on(kind).is_none()
        };
        let is_nothing = session.agreed().is_empty();
        if loses(Kind::Audio) || is_nothing && loses(Kind::Video) {
            return Err(PlainError::NoMedia.into());
        }
        self.session = session;
        self.address = address;
        self.apply();
        Ok(answer)
    }

    /// Makes an offer of the client's last description, for the call as held or not.
    pub fn offer_again(&mut self) -> Result<String, CallError> {
        let said = self.session.said();
        let local = self.local(self.address);
        Ok(self.session.offer(&said, &local, None, &mut fill)?)
    }

    /// Holds the call: media flows in `direction` only, from now on. Returns the offer for the far
    /// end.
    pub fn hold(&mut self, direction: Direction) -> Result<String, CallError> {
        self.held = Some(direction);
        self.session.set_held(self.held);
        self.apply();
        self.offer_again()
    }

    /// Resumes the call. Returns the offer for the far end.
    pub fn unhold(&mut self) -> Result<String, CallError> {
        self.held = None;
        self.session.set_held(None);
        self.apply();
        self.offer_again()
    }

    /// Returns the direction in which this side holds the call.
    pub fn held(&self) -> Option<Direction> {
        self.held
    }

    /// Discards an unanswered offer of either side.
    pub fn discard(&mut self) {
        self.answer_address = None;
        self.client_offer = None;
        self.session.discard();
    }

    /// Requests keyframes of the client, or of the far end if it accepts such requests.
    pub fn request_keyframe(&self, client: bool, far: bool) {
        if client {
            self.handle.request_keyframe();
        }
        let pli = self.takes_pli() == Some(true);
        if let Some(side) = self.video.as_ref().filter(|_| far && pli) {
            side.leg.request_keyframe();
        }
    }

    /// Whether the far end accepts keyframe requests by RTCP. Returns `None` without video.
    pub fn takes_pli(&self) -> Option<bool> {
        Some(self.session.agreed_on(Kind::Video)?.pli)
    }

    /// Sends telephone keys, if audio has telephone events.
    pub fn send_tones(&self, tones: LegTones) {
        if let Some(side) = &self.audio {
            side.leg.send_tones(tones);
        }
    }

    /// Returns the sides with a leg.
    pub fn legs(&self) -> impl Iterator<Item = (Kind, &Leg)> {
        self.sides().map(|side| (side.kind, &side.leg))
    }

    /// Applies the negotiation to legs, routes, recordings and forwarders.
    pub(crate) fn apply(&mut self) {
        let held = self.held;
        let open = LegGates {
            send: held.is_none_or(Direction::sends),
            receive: held.is_none_or(Direction::receives),
        };
        let agreed = |session: &PlainSession, kind| session.agreed_on(kind).cloned();
        for side in [&mut self.audio, &mut self.video].into_iter().flatten() {
            let agreed = agreed(&self.session, side.kind);
            side.apply(agreed.as_ref(), &self.handle, &self.settings, open);
        }
        self.feed_forwarders();
    }

    pub(crate) fn sides(&self) -> impl Iterator<Item = &Side> {
        [&self.audio, &self.video].into_iter().flatten()
    }

    pub(crate) fn side(&self, kind: Kind) -> Option<&Side> {
        self.sides().find(|side| side.kind == kind)
    }

    fn open_legs(&mut self, kinds: impl Iterator<Item = Kind>) -> Result<(), CallError> {
        let worker = self.worker();
        for kind in kinds {
            let is_there = self.side(kind).is_some();
            let side = match kind {
                Kind::Audio if !is_there => &mut self.audio,
                Kind::Video if !is_there => &mut self.video,
                Kind::Audio | Kind::Video | Kind::Data => continue,
            };
            let (news, told) = mpsc::channel(NEWS);
            let options = LegOptions {
                worker,
                ..options(&self.settings, kind, news)
            };
            let leg = Leg::open(&self.settings.media, options)?;
            pass_on(kind, told, Arc::clone(&self.tell));
            *side = Some(Side::new(kind, leg));
        }
        Ok(())
    }

    /// Returns the worker of the client's PeerConnection, so that packets stay on one worker.
    fn worker(&self) -> Option<usize> {
        let track = self.handle.track(Mid::new("0")?)?;
        Some(track.peer.worker())
    }

    /// Returns the address and ports of this side.
    fn local(&self, address: IpAddr) -> LocalEnd {
        LocalEnd {
            address,
            ports: Ports {
                audio: self.audio.as_ref().map(Side::ports),
                video: self.video.as_ref().map(Side::ports),
            },
            rtcp_mux: true,
        }
    }

    fn check_far(&self, sdp: &str) -> Result<FarSession, CallError> {
        let far = FarSession::parse(sdp)?;
        self.settings.check_far(&far)?;
        Ok(far)
    }
}

impl Drop for CallMedia {
    fn drop(&mut self) {
        self.end_forwarders();
        let handle = self.handle.clone();
        for side in [&mut self.audio, &mut self.video].into_iter().flatten() {
            side.part(&handle);
        }
    }
}

impl fmt::Debug for CallMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallMedia")
            .field("handle", &self.handle)
            .field("audio", &self.audio)
            .field("video", &self.video)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

fn options(settings: &CallSettings, kind: Kind, news: mpsc::Sender<LegNews>) -> LegOptions {
    let (medium, dscp) = match kind {
        Kind::Video => (Medium::Video, settings.dscp_video),
        Kind::Audio | Kind::Data => (Medium::Audio, settings.dscp_audio),
    };
    LegOptions {
        ports: settings.ports.first()..=settings.ports.last(),
        interface: settings.interface.clone(),
        dscp,
        silence: settings.silence,
        hears_source: settings.hears_client && kind == Kind::Audio,
        ..LegOptions::new(medium, news)
    }
}

/// Passes on the events of a leg while it exists.
fn pass_on(kind: Kind, mut news: mpsc::Receiver<LegNews>, tell: Tell) {
    tokio::spawn(async move {
        while let Some(news) = news.recv().await {
            let event = news.event;
            tell(CallNews { kind, event });
        }
    });
}

/// Makes keys with a secure generator.
pub(crate) fn fill(bytes: &mut [u8]) {
    rand::rng().fill_bytes(bytes);
}
