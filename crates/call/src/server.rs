//! The media of a call that ends in the server: no client, and audio only.

use std::net::IpAddr;
use std::sync::Arc;

use portunus_audio::AudioCodec;
use portunus_core::Pt;
use portunus_core::media::SourceRef;
use portunus_core::sdp::negotiated::Codec;
use portunus_core::sdp::plain::{
    FarSession, LocalEnd, LocalPorts, PlainError, PlainSession, Ports,
};
use portunus_core::sdp::{
    AnswerOptions, CodecName, Description, Direction, Kind, MediaOffer, OfferOptions,
};
use portunus_leg::{Leg, LegGates, LegNews, LegOptions, Medium};
use tokio::sync::mpsc;

use crate::media::fill;
use crate::side::{first_codec, remote};
use crate::{CallError, CallSettings};

/// The accepted codecs of telephones, the best first.
const CODECS: [AudioCodec; 4] = [
    AudioCodec::Opus,
    AudioCodec::G722,
    AudioCodec::Pcma,
    AudioCodec::Pcmu,
];

/// The payload types of telephone events in our offers, with their clock rates: those of the codecs
/// (RFC 4733 section 2.1).
const DTMF: [(Pt, u32); 2] = [(Pt(101), 8_000), (Pt(102), 48_000)];

/// The maximum number of a leg's events that wait.
const NEWS: usize = 64;

/// The media of a call between a far end and the server itself, such as a caller in an audio room.
/// Dropping it ends the call, once nobody else has its leg.
#[derive(Debug)]
pub struct ServerCall {
    settings: Arc<CallSettings>,
    session: PlainSession,
    leg: Arc<Leg>,
    /// The address that the far end gets.
    address: IpAddr,
}

impl ServerCall {
    /// Opens a leg for a call. The receiver gets the events of the leg.
    pub fn new(settings: Arc<CallSettings>) -> Result<(Self, mpsc::Receiver<LegNews>), CallError> {
        let (tell, news) = mpsc::channel(NEWS);
        let options = LegOptions {
            ports: settings.ports.first()..=settings.ports.last(),
            interface: settings.interface.clone(),
            dscp: settings.dscp_audio,
            silence: settings.silence,
            ..LegOptions::new(Medium::Audio, tell)
        };
        let leg = Leg::open(&settings.media, options)?;
        let call = ServerCall {
            session: PlainSession::new(true, false),
            address: settings.address,
            settings,
            leg: Arc::new(leg),
        };
        Ok((call, news))
    }

    /// Returns the leg, for an audio room.
    pub fn leg(&self) -> &Arc<Leg> {
        &self.leg
    }

    /// Returns the source of the far end's media.
    pub fn source(&self) -> SourceRef {
        self.leg.source()
    }

    /// Sets the presumed address of the far end, which is offered an address of the same family if
    /// there is one.
    pub fn expect_at(&mut self, far: IpAddr) {
        self.address = self.settings.address_towards(far).unwrap_or(self.address);
    }

    /// Returns the negotiated codec, or `None` if there is none in common.
    pub fn codec(&self) -> Option<AudioCodec> {
        let agreed = self.session.agreed_on(Kind::Audio)?;
        audio_codec(first_codec(agreed)?.codec)
    }

    /// Takes the far end's offer, and returns the answer: with the best codec that both have, if
    /// there is one, and telephone events. Within a call a common codec is required.
    pub fn answer(&mut self, offer: &str) -> Result<String, CallError> {
        let far = self.check_far(offer)?;
        let address = self.settings.address_for(&far, self.address)?;
        let mut session = self.session.clone();
        let taken = session.take_offer(offer, None)?;
        let mut options = AnswerOptions::default();
        options.audio.codecs = self.codecs().map(name).collect();
        options.audio.dtmf = true;
        options.video.codecs = Vec::new();
        options.data = false;
        let said = Description::answer(&taken.description, &options);
        let answer = session.answer(&said, &self.local(address), None, &mut fill)?;
        // A running call needs sound.
        if self.codec().is_some() && session.agreed_on(Kind::Audio).is_none() {
            return Err(PlainError::NoMedia.into());
        }
        self.session = session;
        self.address = address;
        self.apply();
        Ok(answer)
    }

    /// Makes an offer to the far end.
    pub fn offer(&mut self) -> Result<String, CallError> {
        let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
        for codec in self.codecs() {
            audio.add_codec(name(codec), None, None);
        }
        for (pt, clock_rate) in DTMF {
            audio.add_dtmf(pt, clock_rate);
        }
        let said = Description::offer(OfferOptions {
            name: "Portunus".to_owned(),
            session_id: String::new(),
            media: vec![audio],
        });
        let local = self.local(self.address);
        Ok(self.session.offer(&said, &local, None, &mut fill)?)
    }

    /// Takes the far end's answer. It may be repeated, as after early media.
    pub fn accept_answer(&mut self, sdp: &str) -> Result<(), CallError> {
        self.check_far(sdp)?;
        self.session.accept_answer(sdp, None)?;
        self.apply();
        Ok(())
    }

    /// Returns the accepted codecs, the best first: the present one stays, if it can.
    fn codecs(&self) -> impl Iterator<Item = AudioCodec> + use<> {
        let now = self.codec();
        let others = CODECS.into_iter().filter(move |codec| Some(*codec) != now);
        now.into_iter().chain(others)
    }

    /// Applies the negotiation to the leg.
    fn apply(&self) {
        let Some(agreed) = self.session.agreed_on(Kind::Audio) else {
            return self.leg.set_gates(LegGates {
                send: false,
                receive: false,
            });
        };
        self.leg.set_remote(remote(agreed, self.settings.latching));
        // A far end that holds the call and announces silence is not missed.
        self.leg.set_gates(LegGates {
            send: agreed.far_direction.receives(),
            receive: agreed.far_direction.sends(),
        });
    }

    fn local(&self, address: IpAddr) -> LocalEnd {
        LocalEnd {
            address,
            ports: Ports {
                audio: Some(LocalPorts {
                    rtp: self.leg.port(),
                    rtcp: self.leg.rtcp_port(),
                }),
                video: None,
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

const fn name(codec: AudioCodec) -> CodecName {
    match codec {
        AudioCodec::Opus => CodecName::Opus,
        AudioCodec::G722 => CodecName::G722,
        AudioCodec::Pcma => CodecName::Pcma,
        AudioCodec::Pcmu => CodecName::Pcmu,
    }
}

const fn audio_codec(codec: Codec) -> Option<AudioCodec> {
    match codec {
        Codec::Opus => Some(AudioCodec::Opus),
        Codec::G722 => Some(AudioCodec::G722),
        Codec::Pcma => Some(AudioCodec::Pcma),
        Codec::Pcmu => Some(AudioCodec::Pcmu),
        _ => None,
    }
}
