//! The media of a page's call: a [`CallMedia`] with what signalling has to know of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portunus_audio::AudioThreads;
use portunus_call::{
    CallError, CallMedia, CallNews, CallSettings, PlainError, RecordingRequest, ResolvedForward,
    SrtpPolicy, Suite,
};
use portunus_core::media::MediaPlane;
use portunus_core::sdp::plain::{FarSession, PlainSession};
use portunus_core::sdp::{Direction, Kind};
use portunus_core::{Handle, Jsep, JsepError, LocalJsep, PendingOffer};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::config::SipConfig;
use crate::refusal::Refusal;

/// News of media that wait to be told, over all calls.
const NEWS: usize = 4_096;

/// Names media in their news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MediaKey(u64);

/// What the media of all calls have in common.
#[derive(Clone)]
pub(crate) struct MediaContext {
    settings: Arc<CallSettings>,
    news: mpsc::Sender<(MediaKey, CallNews)>,
    keys: Arc<AtomicU64>,
}

impl MediaContext {
    /// What the configuration says of media; news of them come by what is returned. `sip` is the address that SIP is bound to.
    pub(crate) fn new(
        config: &SipConfig,
        (media, audio): (MediaPlane, Option<AudioThreads>),
        sip: Option<IpAddr>,
    ) -> (Self, mpsc::Receiver<(MediaKey, CallNews)>) {
        let address = config.media_address().or(sip);
        let address = address.filter(|address| !address.is_unspecified());
        let address = address.unwrap_or_else(|| media.address());
        let settings = CallSettings {
            media,
            interface: config.local_media_ip.clone(),
            address,
            ports: config.rtp_port_range,
            dscp_audio: config.dscp_audio_rtp,
            dscp_video: config.dscp_video_rtp,
            latching: config.latching,
            networks: config.outgoing.clone(),
            one_of_each: true,
            transcodes: config.transcoding,
            audio,
            silence: None,
            hears_client: false,
        };
        let (news, told) = mpsc::channel(NEWS);
        let context = MediaContext {
            settings: Arc::new(settings),
            news,
            keys: Arc::default(),
        };
        (context, told)
    }

    pub(crate) fn settings(&self) -> &CallSettings {
        &self.settings
    }

    fn open(&self, handle: &Handle) -> CallSide {
        let key = MediaKey(self.keys.fetch_add(1, Ordering::Relaxed));
        let news = self.news.clone();
        let tell = move |event| {
            // Whoever asks for more than there is room for loses it.
            let _ = news.try_send((key, event));
        };
        CallSide {
            key,
            media: CallMedia::new(self.settings.clone(), handle.clone(), tell),
            srtp: None,
            client_waits: false,
            said: None,
            untold: false,
        }
    }
}

/// What a request says of SRTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SrtpWish(SrtpPolicy);

impl SrtpWish {
    /// The wish of a request with these members `srtp` and `srtp_profile`.
    pub(crate) fn new(srtp: Option<&str>, profile: Option<&str>) -> Result<Self, Refusal> {
        let suite = match profile {
            None => Suite::default(),
            Some(name) => Suite::from_name(name).ok_or(Refusal::Value("srtp_profile"))?,
        };
        Ok(SrtpWish(match srtp {
            None => SrtpPolicy::None,
            Some("sdes_optional") => SrtpPolicy::Optional(suite),
            Some("sdes_mandatory") => SrtpPolicy::Mandatory(suite),
            Some(_) => return Err(Refusal::Value("srtp")),
        }))
    }

    pub(crate) fn is_mandatory(self) -> bool {
        self.0.is_mandatory()
    }
}

/// Why media cannot be as a description says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("there is no description")]
    NoDescription,
    #[error("SRTP is asked for, and the peer has not offered it")]
    TooStrict,
    #[error("the two sides have no codec in common")]
    NothingInCommon,
}

impl Fault {
    /// The refusal of a request with an offer.
    pub(crate) fn in_offer(self) -> Refusal {
        self.in_description("offer")
    }

    /// The refusal of a request with an answer.
    pub(crate) fn in_answer(self) -> Refusal {
        self.in_description("answer")
    }

    fn in_description(self, what: &'static str) -> Refusal {
        match self {
            Fault::Call(CallError::Ports(error)) => Refusal::Ports(error.to_string()),
            Fault::Call(CallError::Network(address)) => Refusal::Destination(address),
            Fault::Call(CallError::Jsep(JsepError::Closing)) => Refusal::Closing,
            Fault::Call(error) => Refusal::Sdp(what, error.to_string()),
            Fault::NoDescription => Refusal::MissingSdp,
            Fault::TooStrict => Refusal::TooStrict,
            Fault::NothingInCommon => Refusal::NothingInCommon,
        }
    }

    /// The status that a peer's offer is refused with.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Fault::Call(CallError::Ports(_)) => 500,
            _ => 488,
        }
    }

    /// Whether clients are told of a call that is refused because of it: its description can be read.
    pub(crate) fn is_told(&self) -> bool {
        match self {
            Fault::Call(CallError::Sdp(error)) => error.is_unusable(),
            Fault::Call(CallError::Network(_) | CallError::Family(_)) => true,
            _ => false,
        }
    }
}

impl From<PlainError> for Fault {
    fn from(error: PlainError) -> Self {
        Fault::Call(CallError::Sdp(error))
    }
}

/// `sdes_mandatory` or `sdes_optional`, if an offer has keys.
pub(crate) fn srtp_offered(sdp: &str) -> Option<&'static str> {
    let far = FarSession::parse(sdp).ok()?;
    let used = || far.media.iter().filter(|media| media.is_usable());
    if used().any(|media| media.is_secure()) {
        Some("sdes_mandatory")
    } else if used().any(|media| media.has_crypto()) {
        Some("sdes_optional")
    } else {
        None
    }
}

/// Which sides seal what they send.
#[derive(Debug, Default)]
pub(crate) struct Sdes {
    pub(crate) local_audio: bool,
    pub(crate) local_video: bool,
    pub(crate) remote_audio: bool,
    pub(crate) remote_video: bool,
}

/// The media of a page's call.
pub(crate) struct CallSide {
    key: MediaKey,
    media: CallMedia,
    /// What the page wants of SRTP.
    srtp: Option<SrtpPolicy>,
    /// The page's offer waits for the peer's answer.
    client_waits: bool,
    /// The last answer to the peer.
    said: Option<String>,
    /// The peer did not take the last change, and may not know whether the call is held.
    untold: bool,
}

impl CallSide {
    pub(crate) fn key(&self) -> MediaKey {
        self.key
    }

    /// Checks a peer's offer that nobody is told of yet.
    pub(crate) fn check_offer(sdp: &str, settings: &CallSettings) -> Result<(), Fault> {
        let far = FarSession::parse(sdp)?;
        let mut session = PlainSession::new(settings.one_of_each, settings.transcodes);
        session.take_offer(sdp, None)?;
        Ok(settings.check_offer(&far)?)
    }

    /// A call that a page offers; gives what the peer is offered, who seems to be at the address `peer`.
    pub(crate) fn calling(
        context: &MediaContext,
        handle: &Handle,
        (jsep, offer, srtp): (&Jsep, Option<PendingOffer>, SrtpWish),
        peer: Option<IpAddr>,
    ) -> Result<(Self, String), Fault> {
        let mut side = context.open(handle);
        if let Some(peer) = peer {
            side.media.expect_at(peer);
        }
        side.srtp = Some(srtp.0);
        let sdp = side.media.offer(&jsep.description, side.srtp)?;
        side.media.keep_offer(offer);
        side.client_waits = true;
        Ok((side, sdp))
    }

    /// A call that a peer offers; gives what the page is offered.
    pub(crate) fn called(
        context: &MediaContext,
        handle: &Handle,
        sdp: &str,
    ) -> Result<(Self, LocalJsep), Fault> {
        let mut side = context.open(handle);
        let taken = side.media.take_offer(sdp, None)?;
        Ok((side, taken.jsep))
    }

    /// The peer has answered; gives what the page is answered, if it waits for that.
    pub(crate) fn peer_answered(&mut self, sdp: &str) -> Result<Option<LocalJsep>, Fault> {
        let jsep = match self.client_waits {
            true => Some(self.media.accept_answer(sdp, self.srtp)?.jsep),
            false => {
                self.media.accept_answer_alone(sdp, self.srtp)?;
                None
            }
        };
        self.client_waits = false;
        self.untold = false;
        match self.media.agreed().is_empty() {
            true => Err(Fault::NothingInCommon),
            false => Ok(jsep),
        }
    }

    /// The page has answered the peer's offer.
    pub(crate) fn answer(&mut self, jsep: &Jsep, srtp: SrtpWish) -> Result<String, Fault> {
        if srtp.is_mandatory() && !self.media.is_srtp_offered() {
            return Err(Fault::TooStrict);
        }
        self.srtp = Some(srtp.0);
        let sdp = self.media.answer(&jsep.description, self.srtp)?;
        if self.media.agreed().is_empty() {
            return Err(Fault::NothingInCommon);
        }
        self.said = Some(sdp.clone());
        Ok(sdp)
    }

    /// The page has answered a change of the peer's.
    pub(crate) fn answer_update(&mut self, jsep: &Jsep) -> Result<String, Fault> {
        Ok(self.media.answer(&jsep.description, None)?)
    }

    /// The page changes the call; gives what the peer is offered.
    pub(crate) fn update(
        &mut self,
        jsep: &Jsep,
        offer: Option<PendingOffer>,
    ) -> Result<String, Fault> {
        let sdp = self.media.offer(&jsep.description, None)?;
        self.media.keep_offer(offer);
        self.client_waits = true;
        Ok(sdp)
    }

    /// The peer changes the call; gives what the page is offered.
    pub(crate) fn peer_updates(&mut self, sdp: &str) -> Result<LocalJsep, Fault> {
        Ok(self.media.take_offer(sdp, None)?.jsep)
    }

    /// The peer changes the call, and the page is not asked; gives the answer.
    pub(crate) fn peer_changes(&mut self, sdp: &str) -> Result<String, Fault> {
        Ok(self.media.answer_alone(sdp)?)
    }

    /// What the peer was answered last.
    pub(crate) fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }

    /// Offers the peer what there is.
    pub(crate) fn offer_again(&mut self) -> Result<String, Fault> {
        self.client_waits = false;
        Ok(self.media.offer_again()?)
    }

    /// Holds the call, or no more; gives what the peer is offered, if anything changes.
    pub(crate) fn hold(&mut self, direction: Option<Direction>) -> Result<Option<String>, Fault> {
        if self.is_held_as(direction) {
            return Ok(None);
        }
        self.client_waits = false;
        let offer = match direction {
            Some(direction) => self.media.hold(direction)?,
            None => self.media.unhold()?,
        };
        self.untold = false;
        Ok(Some(offer))
    }

    /// Whether the call is held in this direction, or with none is not held, and the peer knows or is being told.
    pub(crate) fn is_held_as(&self, direction: Option<Direction>) -> bool {
        self.media.held() == direction && !self.untold
    }

    pub(crate) fn is_held(&self) -> bool {
        self.media.held().is_some()
    }

    /// A change that was under way is not made.
    pub(crate) fn take_back(&mut self) {
        self.client_waits = false;
        self.untold = true;
        self.media.discard();
    }

    /// The page is gone, and the call waits for another one.
    pub(crate) fn leave(&mut self) {
        self.media.leave_client();
    }

    /// Offers the call to another page, which answers by [`CallSide::move_to`].
    pub(crate) fn offer_to(&self, handle: &Handle) -> Result<LocalJsep, Fault> {
        Ok(self.media.offer_to(handle)?)
    }

    /// Another page has the call from now on.
    pub(crate) fn move_to(&mut self, handle: &Handle, answer: &Jsep) {
        self.client_waits = false;
        self.media.move_to(handle.clone(), &answer.description);
    }

    /// Asks for keyframes: the page, the peer.
    pub(crate) fn request_keyframe(&self, page: bool, peer: bool) {
        self.media.request_keyframe(page, peer);
    }

    /// Whether the peer sends video, and takes no keyframe requests by RTCP.
    pub(crate) fn wants_info_for_keyframes(&self) -> bool {
        self.media.takes_pli() == Some(false)
    }

    pub(crate) fn record(&mut self, request: &RecordingRequest) -> Result<(), CallError> {
        self.media.record(request)
    }

    pub(crate) fn forward(&mut self, request: ResolvedForward) -> Result<Vec<Value>, CallError> {
        self.media.forward(request)
    }

    /// Whether there was such a forwarder.
    pub(crate) fn stop_forwarding(&mut self, id: u64) -> bool {
        self.media.stop_forward(id)
    }

    pub(crate) fn forwarders(&self) -> Vec<Value> {
        self.media.forwarders()
    }

    pub(crate) fn sdes(&self) -> Sdes {
        Sdes {
            local_audio: self.media.seals(Some(Kind::Audio)),
            local_video: self.media.seals(Some(Kind::Video)),
            remote_audio: self.media.opens(Some(Kind::Audio)),
            remote_video: self.media.opens(Some(Kind::Video)),
        }
    }

    /// How it goes, for administrators.
    pub(crate) fn figures(&self) -> Value {
        self.media.legs_json()
    }

    /// The files that are being written.
    pub(crate) fn recordings(&self) -> Option<Value> {
        self.media.recordings()
    }
}
