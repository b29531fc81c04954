//! A participant before it runs: its socket, its side of the negotiation, its transport.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use portunus_rtc::data::DataConfig;
use portunus_rtc::{
    Identity, IdentityError, LocalCandidate, Transport, TransportConfig, TransportError,
    candidate_lines,
};
use portunus_rtp::ExtensionKind;
use portunus_sdp::{
    CodecName, Description, Direction, IceCredentials, Kind, LocalTransport, MediaOffer,
    Negotiated, OfferOptions, SdpError, SdpType, Session,
};
use portunus_srtp::Profile;

use super::answering::{Answering, Receives};
use super::sender::{Sender, Streams};
use super::voice::{Speaking, Voice};
use super::way::own_socket;
use crate::source::{AUDIO, Sent, SourceConfig, VIDEO, VideoCodec};

/// The names of simulcast layers in browsers, the highest first.
const RIDS: [&str; 3] = ["h", "m", "l"];

/// Creates participants.
#[derive(Debug)]
pub struct Factory {
    identity: Arc<Identity>,
    local: IpAddr,
    transport_feedback: bool,
    /// The codec of video to answer with where a server offers several.
    preferred: Option<VideoCodec>,
}

/// The reason why a participant could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// A socket cannot be opened.
    #[error("no UDP socket on {0}: {1}")]
    Socket(IpAddr, io::Error),
    /// The server's description is not acceptable.
    #[error("the server's SDP: {0}")]
    Sdp(#[from] SdpError),
    /// The server's transport is not acceptable.
    #[error("the server's transport: {0}")]
    Transport(#[from] TransportError),
    /// A certificate cannot be created.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// A participant that can run.
#[derive(Debug)]
pub struct Prepared {
    /// `None` if it uses its thread's socket.
    pub(super) socket: Option<UdpSocket>,
    pub(super) address: SocketAddr,
    pub(super) transport: Box<Transport>,
    /// The payload type and SSRC of each of a source's streams that it may send.
    streams: Streams,
    /// The header extensions that identify simulcast layers.
    layer_names: Option<LayerNames>,
    pub(super) sender: Option<Box<Sender>>,
    pub(super) voice: Option<Box<Voice>>,
    /// The header extension of a packet's level, if negotiated.
    level_by: Option<u8>,
    /// How received packets are read.
    pub(super) receives: Receives,
}

/// The ids of the header extensions for mid and rid, and the mid of the video.
#[derive(Debug)]
struct LayerNames {
    mid_id: u8,
    rid_id: u8,
    mid: String,
}

/// A participant that has answered the first of several offers.
#[derive(Debug)]
pub struct Answered {
    /// The participant.
    pub prepared: Prepared,
    /// Answers further offers.
    pub answering: Answering,
    /// The answer's text.
    pub text: String,
}

/// A participant that has offered and waits for the answer.
#[derive(Debug)]
pub struct Offered {
    prepared: Prepared,
    session: Session,
}

impl Factory {
    /// Creates a factory for participants on the address `local` with these SRTP profiles (empty
    /// means all). They share a certificate, since creating one for each would be hammer's own
    /// cost. With `transport_feedback`, viewers report each packet's arrival.
    pub fn new(
        local: IpAddr,
        profiles: &[Profile],
        transport_feedback: bool,
    ) -> Result<Self, PrepareError> {
        let identity = match profiles {
            [] => Identity::generate()?,
            some => Identity::generate_for(some)?,
        };
        Ok(Self {
            identity: Arc::new(identity),
            local,
            transport_feedback,
            preferred: None,
        })
    }

    /// Has offers of several codecs of video answered with this one, if it is among them.
    /// livekit-server offers all that it knows to each who watches, in an order of its own.
    #[must_use]
    pub fn preferring(self, codec: VideoCodec) -> Self {
        Self {
            preferred: Some(codec),
            ..self
        }
    }

    /// Returns whether viewers report each packet's arrival, if the server agrees.
    pub fn transport_feedback(&self) -> bool {
        self.transport_feedback
    }

    /// Answers a server's offer, and accepts all of it. Returns the answer's text. `address` comes
    /// from [`LoadThreads::address`](super::LoadThreads::address).
    pub fn answer(
        &self,
        offer: &str,
        address: Option<SocketAddr>,
    ) -> Result<(Prepared, String), PrepareError> {
        let answered = self.answer_first(offer, address)?;
        Ok((answered.prepared, answered.text))
    }

    /// Answers the first offer of a server that will offer again, like [`Factory::answer`].
    pub fn answer_first(
        &self,
        offer: &str,
        address: Option<SocketAddr>,
    ) -> Result<Answered, PrepareError> {
        let (mut prepared, session) = self.start(false, address)?;
        let address = prepared.address;
        let candidates = candidate_lines(&[LocalCandidate::udp(address, address)]);
        let mut answering = Answering::new(session, candidates, self.transport_feedback);
        answering.preferred = self.preferred.map(VideoCodec::codec_name);
        let (text, negotiated) = answering.negotiate(offer)?;
        prepared.agree(&negotiated)?;
        Ok(Answered {
            prepared,
            answering,
            text,
        })
    }

    /// Offers audio and video in `direction`, with `simulcast` by rid like browsers. Returns the
    /// offer's text. `address` comes from [`LoadThreads::address`](super::LoadThreads::address).
    pub fn offer(
        &self,
        address: Option<SocketAddr>,
        direction: Direction,
        audio: bool,
        video: Option<VideoCodec>,
        simulcast: bool,
    ) -> Result<(Offered, String), PrepareError> {
        let (prepared, mut session) = self.start(true, address)?;
        let mut media = Vec::new();
        let watches = direction == Direction::RecvOnly;
        let numbers =
            (watches && self.transport_feedback).then_some((ExtensionKind::TransportCc, 3));
        if audio {
            let mut line = MediaOffer::new(Kind::Audio, direction);
            line.add_codec(CodecName::Opus, None, None);
            line.extensions.extend(numbers);
            media.push(line);
        }
        if let Some(codec) = video {
            let mut line = MediaOffer::new(Kind::Video, direction);
            line.add_codec(codec.codec_name(), None, codec.fmtp().map(str::to_owned));
            line.extensions.extend(numbers);
            if simulcast {
                line.extensions = vec![(ExtensionKind::Mid, 1), (ExtensionKind::Rid, 2)];
            }
            media.push(line);
        }
        let offer = Description::offer(OfferOptions {
            media,
            ..OfferOptions::default()
        });
        let mut text = session.local_offer(offer)?;
        if simulcast {
            text = with_layers(&text);
        }
        Ok((Offered { prepared, session }, text))
    }

    /// Offers audio for an audio room with the level of each packet, like browsers. With `listens`,
    /// it only receives. `address` comes from
    /// [`LoadThreads::address`](super::LoadThreads::address).
    pub fn offer_voice(
        &self,
        address: Option<SocketAddr>,
        codec: CodecName,
        listens: bool,
    ) -> Result<(Offered, String), PrepareError> {
        let (prepared, mut session) = self.start(true, address)?;
        let direction = match listens {
            true => Direction::RecvOnly,
            false => Direction::SendRecv,
        };
        let mut line = MediaOffer::new(Kind::Audio, direction);
        let fmtp = (codec == CodecName::Opus).then(|| "minptime=10;useinbandfec=1".to_owned());
        line.add_codec(codec, None, fmtp);
        line.extensions = vec![(ExtensionKind::AudioLevel, 1)];
        let offer = Description::offer(OfferOptions {
            media: vec![line],
            ..OfferOptions::default()
        });
        let text = session.local_offer(offer)?;
        Ok((Offered { prepared, session }, text))
    }

    fn start(
        &self,
        controlling: bool,
        address: Option<SocketAddr>,
    ) -> Result<(Prepared, Session), PrepareError> {
        let failed = |error| PrepareError::Socket(self.local, error);
        let (socket, address) = match address {
            Some(address) => (None, address),
            None => {
                let socket = own_socket(self.local).map_err(failed)?;
                let address = socket.local_addr().map_err(failed)?;
                (Some(socket), address)
            }
        };
        let candidates = vec![LocalCandidate::udp(address, address)];
        let ice = credentials();
        let session = Session::new(
            LocalTransport {
                ice: ice.clone(),
                fingerprint: self.identity.fingerprint().clone(),
                candidates: candidate_lines(&candidates),
                full_trickle: false,
                ice_lite: false,
                address: address.ip(),
                session_id: u64::from(rand::random::<u32>()),
            },
            rand::random(),
        );
        let transport = Box::new(Transport::new(TransportConfig {
            local_ice: ice,
            identity: Arc::clone(&self.identity),
            controlling,
            ice_lite: false,
            candidates,
            tie_breaker: rand::random(),
        }));
        let prepared = Prepared {
            socket,
            address,
            transport,
            streams: Default::default(),
            layer_names: None,
            sender: None,
            voice: None,
            level_by: None,
            receives: Receives::default(),
        };
        Ok((prepared, session))
    }
}

impl Offered {
    /// Takes the text of the server's answer.
    pub fn accept(mut self, answer: &str) -> Result<Prepared, PrepareError> {
        let answer = self.session.parse(answer, SdpType::Answer)?;
        let negotiated = self.session.accept_answer(answer)?;
        self.prepared.agree(&negotiated)?;
        Ok(self.prepared)
    }
}

impl Prepared {
    /// Lets it send the negotiated streams of `config` when it is connected. `phase` (0 to 1)
    /// separates its frames from those of others.
    pub fn send(&mut self, config: &SourceConfig, phase: f64) {
        self.sender = Some(Box::new(self.sender(config, None, phase)));
    }

    /// Like `send`, for a source that others watch. Returns the count of sent packets.
    pub fn publish(&mut self, config: &SourceConfig, phase: f64) -> Arc<Sent> {
        let sent = Arc::new(Sent::default());
        let counted = Some(Arc::clone(&sent));
        self.sender = Some(Box::new(self.sender(config, counted, phase)));
        sent
    }

    /// Lets it speak, if it may send audio.
    pub(crate) fn speak(&mut self, speaking: Speaking) {
        let stream = self.streams.get(AUDIO).copied().flatten();
        self.voice = stream.map(|stream| Box::new(Voice::new(speaking, stream, self.level_by)));
    }

    fn sender(&self, config: &SourceConfig, counted: Option<Arc<Sent>>, phase: f64) -> Sender {
        let names = self.layer_names.as_ref().filter(|_| config.simulcast);
        let layers = names.map(|names| {
            RIDS.map(|rid| {
                vec![
                    (names.mid_id, names.mid.clone()),
                    (names.rid_id, rid.to_owned()),
                ]
            })
        });
        Sender::new(config, self.streams, layers, counted, phase)
    }

    fn agree(&mut self, negotiated: &Negotiated) -> Result<(), PrepareError> {
        for line in negotiated
            .media
            .iter()
            .filter(|line| !line.disabled && line.send)
        {
            let stream = match line.kind {
                Kind::Video => VIDEO,
                Kind::Audio => AUDIO,
                Kind::Data => continue,
            };
            if let (Some(place), Some(payload)) =
                (self.streams.get_mut(stream), line.payloads.first())
            {
                *place = Some((payload.pt, line.local_ssrc));
            }
            let id = |kind| line.extensions.id(kind);
            if stream == AUDIO {
                self.level_by = id(ExtensionKind::AudioLevel);
            }
            if stream == VIDEO
                && let Some((mid_id, rid_id)) = id(ExtensionKind::Mid).zip(id(ExtensionKind::Rid))
            {
                let mid = line.mid.to_string();
                self.layer_names = Some(LayerNames {
                    mid_id,
                    rid_id,
                    mid,
                });
            }
        }
        self.receives = Receives::of(negotiated);
        let now = Instant::now();
        self.transport.set_remote(&negotiated.transport, now)?;
        let mut lines = negotiated.media.iter();
        let data = lines.find(|line| line.kind == Kind::Data && !line.disabled);
        if let Some(line) = data {
            // Some servers wait for the channels that they offer.
            let config = DataConfig {
                remote_port: line.sctp_port,
                max_message_size: line.max_message_size,
            };
            self.transport.negotiate_data(config, now);
        }
        Ok(())
    }
}

/// Offers the video with layers: rids instead of SSRCs (RFC 8853).
fn with_layers(offer: &str) -> String {
    let mut text = String::new();
    let mut is_video = false;
    let end_of_video = |text: &mut String, is_video: bool| {
        if is_video {
            text.extend(RIDS.map(|rid| format!("a=rid:{rid} send\r\n")));
            *text += &format!("a=simulcast:send {}\r\n", RIDS.join(";"));
        }
    };
    for line in offer.lines() {
        if line.starts_with("m=") {
            end_of_video(&mut text, is_video);
            is_video = line.starts_with("m=video");
        }
        let names_ssrc = line.starts_with("a=ssrc");
        if !(is_video && names_ssrc) {
            text += line;
            text += "\r\n";
        }
    }
    end_of_video(&mut text, is_video);
    text
}

/// Returns new ICE credentials.
pub(super) fn credentials() -> IceCredentials {
    IceCredentials {
        ufrag: format!("{:08x}", rand::random::<u32>()),
        pwd: format!("{:032x}", rand::random::<u128>()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn layers_are_offered_by_rid_in_the_video_only() {
        let factory = Factory::new(IpAddr::from([127, 0, 0, 1]), &[], false).unwrap();
        let vp8 = Some(VideoCodec::Vp8);
        let (_, plain) = factory
            .offer(None, Direction::SendOnly, true, vp8, false)
            .unwrap();
        assert!(!plain.contains("a=simulcast") && plain.matches("a=ssrc:").count() >= 2);
        let (_, text) = factory
            .offer(None, Direction::SendOnly, true, vp8, true)
            .unwrap();
        let (audio, video) = text.split_once("m=video").unwrap();
        assert!(video.contains("a=simulcast:send h;m;l\r\n") && video.contains("a=rid:l send\r\n"));
        assert!(!video.contains("a=ssrc") && audio.contains("a=ssrc:"));
        assert!(!audio.contains("a=rid"));
    }
}
