//! The media of a page's call: a [`CallMedia`] with the state that signalling needs.

use std::net::IpAddr;
use std::sync::Arc;

use portunus_audio::AudioThreads;
use portunus_call::{
    CallError, CallMedia, CallNews, CallSettings, PlainError, RecordingRequest, ResolvedForward,
    SrtpPolicy, Suite,
};
use portunus_core::media::MediaPlane;
use portunus_core::sdp::plain::{FarSession, PlainSession};
use portunus_core::sdp::{Direction, Kind};
use portunus_core::{Handle, Jsep, JsepError, LocalJsep, PendingOffer};
use portunus_sip::agent::CallId;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::config::SipConfig;
use crate::refusal::Refusal;

/// The maximum number of media events that wait, over all calls.
const NEWS: usize = 4_096;

/// The settings that the media of all calls share.
#[derive(Clone)]
pub(crate) struct MediaContext {
    settings: Arc<CallSettings>,
    news: mpsc::Sender<(CallId, CallNews)>,
}

impl MediaContext {
    /// Makes the settings from the configuration. The receiver gets the media events. `sip` is the
    /// address of the SIP sockets.
    pub(crate) fn new(
        config: &SipConfig,
        (media, audio): (MediaPlane, Option<AudioThreads>),
        sip: Option<IpAddr>,
    ) -> (Self, mpsc::Receiver<(CallId, CallNews)>) {
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
        };
        (context, told)
    }

    pub(crate) fn settings(&self) -> &CallSettings {
        &self.settings
    }

    fn open(&self, call: CallId, handle: &Handle) -> CallSide {
        let news = self.news.clone();
        let tell = move |event| {
            // Events beyond the limit are lost.
            let _ = news.try_send((call, event));
        };
        CallSide {
            media: CallMedia::new(self.settings.clone(), handle.clone(), tell),
            srtp: None,
            client_waits: false,
            said: None,
            untold: false,
        }
    }
}

/// The SRTP policy of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SrtpWish(SrtpPolicy);

impl SrtpWish {
    /// Reads the members `srtp` and `srtp_profile`.
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

/// The reason why a description cannot be used.
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
    /// Returns the refusal of a request with an offer.
    pub(crate) fn in_offer(self) -> Refusal {
        self.in_description("offer")
    }

    /// Returns the refusal of a request with an answer.
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

    /// Returns the status that refuses a peer's offer.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Fault::Call(CallError::Ports(_)) => 500,
            _ => 488,
        }
    }

    /// Whether clients learn of a call that is refused for this: its description can be read.
    pub(crate) fn is_shown(&self) -> bool {
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

/// Returns `sdes_mandatory` or `sdes_optional`, if an offer has keys.
pub(crate) fn srtp_offered(far: &FarSession) -> Option<&'static str> {
    let used = || far.media.iter().filter(|media| media.is_usable());
    if used().any(|media| media.is_secure()) {
        Some("sdes_mandatory")
    } else if used().any(|media| media.has_crypto()) {
        Some("sdes_optional")
    } else {
        None
    }
}

/// The sides that encrypt their media.
#[derive(Debug, Default)]
pub(crate) struct Sdes {
    pub(crate) local_audio: bool,
    pub(crate) local_video: bool,
    pub(crate) remote_audio: bool,
    pub(crate) remote_video: bool,
}

/// The offer of a page that calls.
pub(crate) struct PageOffer<'a> {
    pub(crate) jsep: &'a Jsep,
    pub(crate) pending: Option<PendingOffer>,
    pub(crate) srtp: SrtpWish,
}

/// The media of a page's call.
pub(crate) struct CallSide {
    media: CallMedia,
    /// The SRTP policy of the page.
    srtp: Option<SrtpPolicy>,
    /// The page's offer waits for the peer's answer.
    client_waits: bool,
    /// The last answer to the peer.
    said: Option<String>,
    /// The peer refused the last change, and may not know whether the call is held.
    untold: bool,
}

impl CallSide {
    /// Parses and checks an offer of a peer.
    pub(crate) fn check_offer(sdp: &str, settings: &CallSettings) -> Result<FarSession, Fault> {
        let far = FarSession::parse(sdp)?;
        let mut session = PlainSession::new(settings.one_of_each, settings.transcodes);
        session.take_parsed_offer(far.clone(), None)?;
        settings.check_offer(&far)?;
        Ok(far)
    }

    /// Starts the media of a call by a page. Returns the offer for the peer, who seems to be at the
    /// address `peer`.
    pub(crate) fn calling(
        context: &MediaContext,
        call: CallId,
        handle: &Handle,
        offer: PageOffer<'_>,
        peer: Option<IpAddr>,
    ) -> Result<(Self, String), Fault> {
        let mut side = context.open(call, handle);
        if let Some(peer) = peer {
            side.media.expect_at(peer);
        }
        side.srtp = Some(offer.srtp.0);
        let sdp = side.media.offer(&offer.jsep.description, side.srtp)?;
        side.media.keep_offer(offer.pending);
        side.client_waits = true;
        Ok((side, sdp))
    }

    /// Starts the media of a call by a peer. Returns the offer for the page.
    pub(crate) fn called(
        context: &MediaContext,
        call: CallId,
        handle: &Handle,
        offer: &FarSession,
    ) -> Result<(Self, LocalJsep), Fault> {
        let mut side = context.open(call, handle);
        let taken = side.media.take_parsed_offer(offer, None)?;
        Ok((side, taken.jsep))
    }

    /// Takes the peer's answer. Returns the answer for the page, if it waits for one.
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

    /// Takes the page's answer to the peer's offer.
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

    /// Takes the page's answer to a change by the peer.
    pub(crate) fn answer_update(&mut self, jsep: &Jsep) -> Result<String, Fault> {
        Ok(self.media.answer(&jsep.description, None)?)
    }

    /// Takes a change by the page. Returns the offer for the peer.
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

    /// Takes a change by the peer. Returns the offer for the page.
    pub(crate) fn peer_updates(&mut self, offer: &FarSession) -> Result<LocalJsep, Fault> {
        Ok(self.media.take_parsed_offer(offer, None)?.jsep)
    }

    /// Takes a change by the peer without asking the page. Returns the answer.
    pub(crate) fn peer_changes(&mut self, sdp: &str) -> Result<String, Fault> {
        Ok(self.media.answer_alone(sdp)?)
    }

    /// Returns the last answer to the peer.
    pub(crate) fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }

    /// Makes an offer of the present media.
    pub(crate) fn offer_again(&mut self) -> Result<String, Fault> {
        self.client_waits = false;
        Ok(self.media.offer_again()?)
    }

    /// Holds or resumes the call. Returns the offer for the peer, if anything changes.
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

    /// Whether the call is held in this direction (not held with `None`), and the peer knows or
    /// will know.
    pub(crate) fn is_held_as(&self, direction: Option<Direction>) -> bool {
        self.media.held() == direction && !self.untold
    }

    pub(crate) fn is_held(&self) -> bool {
        self.media.held().is_some()
    }

    /// Discards the change that is under way.
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

    /// Moves the call to another page.
    pub(crate) fn move_to(&mut self, handle: &Handle, answer: &Jsep) {
        self.client_waits = false;
        self.media.move_to(handle.clone(), &answer.description);
    }

    /// Requests keyframes of the page and of the peer.
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

    /// Ends a forwarder. Returns whether it was there.
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

    /// Returns the statistics for administrators.
    pub(crate) fn figures(&self) -> Value {
        self.media.legs_json()
    }

    /// Returns the files of the running recordings.
    pub(crate) fn recordings(&self) -> Option<Value> {
        self.media.recordings()
    }
}
