//! Participants by plain RTP, without a PeerConnection.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use portunus_media::ingest::RtpIngest;
use portunus_media::{
    Encodings, ForwardOptions, IngestBind, IngestFeed, IngestId, IngestMedia, IngestOptions,
    IngestSocket, IngestStatus, MediaPlane, RouteId, RouteOptions, SourceRef,
};
use portunus_rtp::{ExtensionKind, Pt, Ssrc};
use portunus_sdp::negotiated::Codec;

use crate::command::Clocks;
use crate::{AudioCodec, RtpLegError};

/// Ports that are tried before it is said that none is free.
const TRIES: u32 = 64;

/// How somebody speaks plain RTP with us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpLegOptions {
    /// Where an even port is taken from.
    pub ports: RangeInclusive<u16>,
    /// The only one who is heard, and where to send to; none: anybody is heard, and nothing is sent.
    pub remote: Option<SocketAddr>,
    /// What is sent both ways.
    pub codec: AudioCodec,
    /// The payload type of what is sent both ways; what comes with another one is refused.
    pub pt: Pt,
    /// The number of the audio-level extension (RFC 6464) in what comes.
    pub audio_level: Option<u8>,
}

/// A leg of plain RTP: a UDP port that one participant sends to, and that what it hears is sent from. It ends when it is
/// dropped.
#[derive(Debug)]
pub struct RtpLeg {
    media: MediaPlane,
    ingest: IngestId,
    status: Arc<IngestStatus>,
    /// What it sends while it hears nothing: nothing.
    rest: IngestId,
    /// The way from what it hears to the network: one for all rooms, so that numbers and timestamps go on.
    route: RouteId,
    /// To say where it sends.
    own: IngestSocket,
    ssrc: Ssrc,
}

impl RtpLeg {
    /// Opens a port, which takes packets in from now on.
    pub fn open(media: &MediaPlane, options: RtpLegOptions) -> Result<Self, RtpLegError> {
        let (codec, clock_rate) = (codec(options.codec), options.codec.clock_rate());
        let mut rtp = RtpIngest {
            pt: Some(options.pt),
            ..RtpIngest::new(codec, clock_rate)
        };
        if let Some(id) = options.audio_level {
            if !(1..=14).contains(&id) {
                return Err(RtpLegError::Extension(id));
            }
            rtp.extensions.set(ExtensionKind::AudioLevel, id);
        }
        let own = bind(&options)?;
        if let Some(remote) = options.remote {
            own.connect(remote).map_err(RtpLegError::Connect)?;
        }
        let copy = || own.try_clone().map_err(RtpLegError::Connect);
        let (input, output) = (copy()?, copy()?);
        let feed = IngestFeed::socket(input);
        let ingest = media.add_ingest(IngestOptions {
            media: IngestMedia::Rtp(rtp),
            ..IngestOptions::rtp(codec, clock_rate, feed)
        });
        let rest = media.add_ingest(IngestOptions {
            worker: Some(ingest.id.worker()),
            ..IngestOptions::rtp(codec, clock_rate, IngestFeed::Thread)
        });
        let ssrc = Ssrc(rand::random());
        let forward = ForwardOptions {
            encodings: Encodings::Best,
            pt: Some(options.pt),
            ssrc: Some(ssrc),
            socket: Some(output.into()),
            ..ForwardOptions::new(own.local())
        };
        let route = media.forward(rest.id, RouteOptions::default(), forward);
        Ok(Self {
            media: media.clone(),
            ingest: ingest.id,
            status: ingest.status,
            rest: rest.id,
            route,
            own,
            ssrc,
        })
    }

    /// What it sends us, to be given to [`crate::AudioRoom::join`].
    pub fn source(&self) -> SourceRef {
        SourceRef::Ingest(self.ingest)
    }

    /// Our UDP port.
    pub fn port(&self) -> u16 {
        self.own.port()
    }

    /// The SSRC of what we send.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// The SSRC of what comes, once something has.
    pub fn remote_ssrc(&self) -> Option<Ssrc> {
        self.status.ssrc()
    }

    /// Sends to this address from now on, and hears nobody else.
    pub fn connect(&self, remote: SocketAddr) -> Result<(), RtpLegError> {
        self.own.connect(remote).map_err(RtpLegError::Connect)
    }

    /// The worker that it lives on.
    pub(crate) fn worker(&self) -> usize {
        self.ingest.worker()
    }

    /// The way from what it hears to the network, which begins at an ingest of the same worker.
    pub(crate) fn route(&self) -> RouteId {
        self.route
    }

    /// Where that begins while nothing is heard.
    pub(crate) fn rest(&self) -> IngestId {
        self.rest
    }
}

impl Drop for RtpLeg {
    fn drop(&mut self) {
        self.media.remove_route(self.route);
        // Nobody waits for the port.
        let _ = self.media.remove_ingest(self.ingest);
        let _ = self.media.remove_ingest(self.rest);
    }
}

/// An even port (RFC 3550 section 11) of the range, from a random one on. Of a large range where many are taken not all are
/// tried: each costs a call of the system.
fn bind(options: &RtpLegOptions) -> Result<IngestSocket, RtpLegError> {
    let (first, last) = (*options.ports.start(), *options.ports.end());
    let count = (u32::from(last) / 2 + 1).saturating_sub(u32::from(first).div_ceil(2));
    let from = match count {
        0 => 0,
        count => rand::random_range(0..count),
    };
    let even = |n: u32| u16::try_from((u32::from(first).div_ceil(2) + (from + n) % count) * 2);
    let step = count.div_ceil(TRIES).max(1);
    let tried = (0..count).step_by(step as usize);
    let ports = tried.filter_map(|n| even(n).ok());
    for port in ports.filter(|port| *port > 0) {
        if let Ok(socket) = IngestSocket::bind(IngestBind::new(port)) {
            return Ok(socket);
        }
    }
    Err(RtpLegError::NoPort(first, last))
}

/// A mix as an ingest, on this worker if it is said.
pub(crate) fn mix_ingest(of: AudioCodec, clocks: Clocks, worker: Option<usize>) -> IngestOptions {
    let clock = match of {
        AudioCodec::Opus => clocks.opus,
        AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722 => clocks.g711,
    };
    let media = IngestMedia::Rtp(RtpIngest {
        clock: Some(clock),
        ..RtpIngest::new(codec(of), of.clock_rate())
    });
    IngestOptions {
        media,
        worker,
        ..IngestOptions::rtp(codec(of), of.clock_rate(), IngestFeed::Thread)
    }
}

/// The codec in the media graph's words.
pub(crate) const fn codec(codec: AudioCodec) -> Codec {
    match codec {
        AudioCodec::Opus => Codec::Opus,
        AudioCodec::Pcma => Codec::Pcma,
        AudioCodec::Pcmu => Codec::Pcmu,
        AudioCodec::G722 => Codec::G722,
    }
}
