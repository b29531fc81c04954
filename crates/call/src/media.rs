//! The media of one call.

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

use crate::forward::Forwarders;
use crate::record::Recordings;
use crate::side::Side;
use crate::{CallError, CallSettings};

/// News of a leg that wait to be told.
const NEWS: usize = 64;

/// What happened to the media of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNews {
    /// To audio or to video.
    pub kind: Kind,
    /// What.
    pub event: LegEvent,
}

type Tell = Arc<dyn Fn(CallNews) + Send + Sync>;

/// A far end's description that was taken.
#[derive(Debug)]
pub struct Negotiated {
    /// What the client is offered or answered, to be pushed to it.
    pub jsep: LocalJsep,
    /// How SRTP is used, if a key was accepted.
    pub srtp: Option<SrtpUse>,
}

/// The media of one call: the client of a handle on one side, a far end on the other. To drop it ends it all; the
/// client's PeerConnection stays.
///
/// Nothing here waits: it may all be done under a lock. An error leaves what was agreed on as it was.
pub struct CallMedia {
    pub(crate) settings: Arc<CallSettings>,
    pub(crate) handle: Handle,
    pub(crate) session: PlainSession,
    pub(crate) audio: Option<Side>,
    pub(crate) video: Option<Side>,
    held: Option<Direction>,
    /// What the far end is told to send to.
    address: IpAddr,
    /// The same once the far end's waiting offer is answered.
    answer_address: Option<IpAddr>,
    pub(crate) recordings: Recordings,
    pub(crate) forwarders: Forwarders,
    tell: Tell,
    /// The client's offer, until the far end answers it.
    client_offer: Option<PendingOffer>,
}

impl CallMedia {
    /// No call yet. `tell` is told what happens to its legs, from tasks of their own.
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

    /// What is agreed on with the far end: at most one of each kind.
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

    /// Says where the far end seems to be: it is offered an address of the same family, where there is one.
    pub fn expect_at(&mut self, far: IpAddr) {
        self.address = self.settings.address_towards(far).unwrap_or(self.address);
    }

    /// Makes the client's offer one to the far end. `srtp` none: as the last offer or answer was protected.
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

    /// Takes the far end's answer to an offer that the client knows nothing of ([`CallMedia::offer_again`]), or another answer to
    /// an offer of the client that is answered already.
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
        let far = self.check_far(sdp)?;
        let address = self.settings.address_for(&far, self.address)?;
        let mut session = self.session.clone();
        let accepted = session.take_offer(sdp, srtp)?;
        let jsep = self.handle.offer(accepted.description, false)?;
        self.session = session;
        self.answer_address = Some(address);
        Ok(Negotiated {
            jsep,
            srtp: accepted.srtp,
        })
    }

    /// Answers the far end's offer as the client answered it. What the far end is answered may have no media in use: see
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

    /// Answers an offer of the far end without asking the client: with what it said before, and nothing new. One by which a call would lose its
    /// sound, as the client knows none of its codecs, is refused: the call goes on as it was.
    pub fn answer_alone(&mut self, sdp: &str) -> Result<String, CallError> {
        let far = self.check_far(sdp)?;
        let address = self.settings.address_for(&far, self.address)?;
        let mut session = self.session.clone();
        session.take_offer(sdp, None)?;
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

    /// Offers the far end what the client said before, as the call is held or not.
    pub fn offer_again(&mut self) -> Result<String, CallError> {
        let said = self.session.said();
        let local = self.local(self.address);
        Ok(self.session.offer(&said, &local, None, &mut fill)?)
    }

    /// Holds the call: media goes on in `direction` only, from now on. Gives the offer that tells the far end.
    pub fn hold(&mut self, direction: Direction) -> Result<String, CallError> {
        self.held = Some(direction);
        self.session.set_held(self.held);
        self.apply();
        self.offer_again()
    }

    /// Holds the call no more. Gives the offer that tells the far end.
    pub fn unhold(&mut self) -> Result<String, CallError> {
        self.held = None;
        self.session.set_held(None);
        self.apply();
        self.offer_again()
    }

    /// The direction in which this side holds the call.
    pub fn held(&self) -> Option<Direction> {
        self.held
    }

    /// Forgets an offer that is not answered, of either side.
    pub fn discard(&mut self) {
        self.answer_address = None;
        self.client_offer = None;
        self.session.discard();
    }

    /// Asks for keyframes: the client, or the far end, if it has said that it takes such requests.
    pub fn request_keyframe(&self, client: bool, far: bool) {
        if client {
            self.handle.request_keyframe();
        }
        let pli = self.takes_pli() == Some(true);
        if let Some(side) = self.video.as_ref().filter(|_| far && pli) {
            side.leg.request_keyframe();
        }
    }

    /// Whether the far end takes keyframe requests by RTCP; none without video.
    pub fn takes_pli(&self) -> Option<bool> {
        Some(self.session.agreed_on(Kind::Video)?.pli)
    }

    /// Presses keys of a telephone, if audio has telephone events.
    pub fn send_tones(&self, tones: LegTones) {
        if let Some(side) = &self.audio {
            side.leg.send_tones(tones);
        }
    }

    /// The legs that there are, with how they do.
    pub fn legs(&self) -> impl Iterator<Item = (Kind, &Leg)> {
        self.sides().map(|side| (side.kind, &side.leg))
    }

    /// Brings legs, routes, recordings and forwarders to what is agreed on.
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
            tell(kind, told, Arc::clone(&self.tell));
            *side = Some(Side::new(kind, leg));
        }
        Ok(())
    }

    /// The worker that the client's PeerConnection lives on: packets need not go to another one.
    fn worker(&self) -> Option<usize> {
        let track = self.handle.track(Mid::new("0")?)?;
        Some(track.peer.worker())
    }

    /// Where this side takes media.
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

/// Tells the news of a leg for as long as it is there.
fn tell(kind: Kind, mut news: mpsc::Receiver<LegNews>, tell: Tell) {
    tokio::spawn(async move {
        while let Some(news) = news.recv().await {
            let event = news.event;
            tell(CallNews { kind, event });
        }
    });
}

/// Makes up keys, by a generator that is fit for that.
pub(crate) fn fill(bytes: &mut [u8]) {
    rand::rng().fill_bytes(bytes);
}
