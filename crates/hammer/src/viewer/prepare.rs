//! A participant before it runs: its socket, its side of the negotiation, its transport.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use nix::sys::socket::{setsockopt, sockopt};
use portunus_rtc::{
    Identity, IdentityError, LocalCandidate, Transport, TransportConfig, TransportError,
    candidate_lines,
};
use portunus_rtp::{Pt, Ssrc};
use portunus_sdp::{
    AnswerOptions, CodecName, Description, Direction, IceCredentials, Kind, LocalTransport,
    MediaOffer, Negotiated, OfferOptions, SdpError, SdpType, Session, Setup,
};
use portunus_srtp::Profile;
use portunus_udp::enable_gro;

use super::send::Sender;
use crate::source::{AUDIO, STREAMS, Sent, SourceConfig, VIDEO, VideoCodec};

/// Asked of the kernel for each socket: holds a second of 8 Mbit/s with what the kernel adds to it.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Makes participants.
#[derive(Debug)]
pub struct Factory {
    identity: Arc<Identity>,
    local: IpAddr,
}

/// Why a participant could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// No socket.
    #[error("no UDP socket on {0}: {1}")]
    Socket(IpAddr, io::Error),
    /// The server's description is not acceptable.
    #[error("the server's SDP: {0}")]
    Sdp(#[from] SdpError),
    /// The server's transport is not acceptable.
    #[error("the server's transport: {0}")]
    Transport(#[from] TransportError),
    /// No certificate.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// A participant that can run.
#[derive(Debug)]
pub struct Prepared {
    pub(super) socket: UdpSocket,
    pub(super) address: SocketAddr,
    pub(super) transport: Box<Transport>,
    /// What it may send: payload type and SSRC for each of a source's streams.
    streams: [Option<(Pt, Ssrc)>; STREAMS],
    pub(super) sender: Option<Box<Sender>>,
}

/// A participant that has offered and waits for the answer.
#[derive(Debug)]
pub struct Offered {
    prepared: Prepared,
    session: Session,
}

impl Factory {
    /// Participants on the address `local` that accept these SRTP profiles, all if there are none.
    /// They share a certificate: making one for each would be hammer's own cost.
    pub fn new(local: IpAddr, profiles: &[Profile]) -> Result<Self, PrepareError> {
        let identity = match profiles {
            [] => Identity::generate()?,
            some => Identity::generate_for(some)?,
        };
        Ok(Self {
            identity: Arc::new(identity),
            local,
        })
    }

    /// Answers a server's offer, taking all that it offers; gives the answer's text.
    pub fn answer(&self, offer: &str) -> Result<(Prepared, String), PrepareError> {
        let (mut prepared, mut session) = self.start(false)?;
        let mut offer = session.parse(offer, SdpType::Offer)?;
        // As browsers do: the side that answers starts the handshake (RFC 8842 section 5.3).
        if offer.transport.setup != Some(Setup::Active) {
            offer.transport.setup = Some(Setup::Passive);
        }
        let mut options = AnswerOptions::default();
        options.audio.direction = Direction::RecvOnly;
        options.video.direction = Direction::RecvOnly;
        let answer = Description::answer(&offer.description, &options);
        session.set_remote_offer(offer)?;
        let (text, negotiated) = session.local_answer(answer)?;
        prepared.agree(&negotiated)?;
        Ok((prepared, text))
    }

    /// Offers audio and video in `direction`; gives the offer's text.
    pub fn offer(
        &self,
        direction: Direction,
        audio: bool,
        video: Option<VideoCodec>,
    ) -> Result<(Offered, String), PrepareError> {
        let (prepared, mut session) = self.start(true)?;
        let mut media = Vec::new();
        if audio {
            let mut line = MediaOffer::new(Kind::Audio, direction);
            line.add_codec(CodecName::Opus, None, None);
            media.push(line);
        }
        if let Some(codec) = video {
            let mut line = MediaOffer::new(Kind::Video, direction);
            let name = match codec {
                VideoCodec::Vp8 => CodecName::Vp8,
                VideoCodec::H264 => CodecName::H264,
            };
            line.add_codec(name, None, codec.fmtp().map(str::to_owned));
            media.push(line);
        }
        let offer = Description::offer(OfferOptions {
            media,
            ..OfferOptions::default()
        });
        let text = session.local_offer(offer)?;
        Ok((Offered { prepared, session }, text))
    }

    fn start(&self, controlling: bool) -> Result<(Prepared, Session), PrepareError> {
        let failed = |error| PrepareError::Socket(self.local, error);
        let socket = UdpSocket::bind((self.local, 0)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        tune(&socket);
        let candidates = vec![LocalCandidate {
            address,
            base: address,
        }];
        let ice = credentials();
        let session = Session::new(
            LocalTransport {
                ice: ice.clone(),
                fingerprint: self.identity.fingerprint().clone(),
                candidates: candidate_lines(&candidates),
                full_trickle: false,
                ice_lite: false,
                address: self.local,
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
            sender: None,
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
    /// Lets it send what was agreed on, as `config` says, as soon as it is connected; `phase` (0 to 1)
    /// tells its frames from those of others.
    pub fn send(&mut self, config: &SourceConfig, phase: f64) {
        self.sender = Some(Box::new(Sender::new(config, self.streams, None, phase)));
    }

    /// The same for a source that others watch; gives the count of what it sends.
    pub fn publish(&mut self, config: &SourceConfig, phase: f64) -> Arc<Sent> {
        let sent = Arc::new(Sent::default());
        let counted = Some(Arc::clone(&sent));
        self.sender = Some(Box::new(Sender::new(config, self.streams, counted, phase)));
        sent
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
        }
        self.transport
            .set_remote(&negotiated.transport, Instant::now())?;
        Ok(())
    }
}

/// Sets what is of use and no harm if the kernel refuses it.
fn tune(socket: &UdpSocket) {
    enable_gro(socket);
    // The second is for those who may go beyond net.core.rmem_max.
    let _ = setsockopt(socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES);
    let _ = setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES);
}

fn credentials() -> IceCredentials {
    IceCredentials {
        ufrag: format!("{:08x}", rand::random::<u32>()),
        pwd: format!("{:032x}", rand::random::<u128>()),
    }
}
