//! Participants by plain RTP, without a PeerConnection.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use portunus_media::ingest::RtpIngest;
use portunus_media::{
    Encodings, ForwardOptions, IngestBind, IngestFeed, IngestId, IngestMedia, IngestOptions,
    IngestSocket, IngestStatus, MediaPlane, RouteId, RouteOptions, SharedSocket, SourceRef,
};
use portunus_rtp::{ExtensionKind, Pt, Ssrc};
use portunus_sdp::negotiated::Codec;

use crate::command::Clocks;
use crate::{AudioCodec, RtpLegError};

/// How somebody speaks plain RTP with us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpLegOptions {
    /// The address to bind; none: all.
    pub bind: Option<IpAddr>,
    /// Where an even port is taken from.
    pub ports: RangeInclusive<u16>,
    /// The only one who is heard, and where to send to; none: anybody is heard, and nothing is sent.
    pub remote: Option<SocketAddr>,
    /// What is sent both ways.
    pub codec: AudioCodec,
    /// The payload type of what is sent.
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
    socket: SharedSocket,
    /// To say where it sends.
    own: IngestSocket,
    ssrc: Ssrc,
    pt: Pt,
}

impl RtpLeg {
    /// Opens a port, which takes packets in from now on.
    pub fn open(media: &MediaPlane, options: RtpLegOptions) -> Result<Self, RtpLegError> {
        let mut rtp = RtpIngest::new(codec(options.codec), options.codec.clock_rate());
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
            ..IngestOptions::rtp(codec(options.codec), options.codec.clock_rate(), feed)
        });
        Ok(Self {
            media: media.clone(),
            ingest: ingest.id,
            status: ingest.status,
            socket: output.into(),
            own,
            ssrc: Ssrc(rand::random()),
            pt: options.pt,
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

    /// What has come so far.
    pub fn status(&self) -> &Arc<IngestStatus> {
        &self.status
    }

    /// Sends to this address from now on, and hears nobody else.
    pub fn connect(&self, remote: SocketAddr) -> Result<(), RtpLegError> {
        self.own.connect(remote).map_err(RtpLegError::Connect)
    }

    /// The worker that it lives on.
    pub(crate) fn worker(&self) -> usize {
        self.ingest.worker()
    }

    /// Sends what this ingest brings, which is on the same worker.
    pub(crate) fn forward(&self, from: IngestId) -> RouteId {
        let forward = ForwardOptions {
            encodings: Encodings::Best,
            pt: Some(self.pt),
            ssrc: Some(self.ssrc),
            socket: Some(self.socket.clone()),
            ..ForwardOptions::new(self.own.local())
        };
        self.media.forward(from, RouteOptions::default(), forward)
    }
}

impl Drop for RtpLeg {
    fn drop(&mut self) {
        // Nobody waits for the port.
        let _ = self.media.remove_ingest(self.ingest);
    }
}

/// An even port (RFC 3550 section 11) of the range, from a random one on.
fn bind(options: &RtpLegOptions) -> Result<IngestSocket, RtpLegError> {
    let (first, last) = (*options.ports.start(), *options.ports.end());
    let count = (u32::from(last) / 2 + 1).saturating_sub(u32::from(first).div_ceil(2));
    let from = match count {
        0 => 0,
        count => rand::random_range(0..count),
    };
    let even = |n: u32| u16::try_from((u32::from(first).div_ceil(2) + (from + n) % count) * 2);
    let interface = options.bind.map(|address| address.to_string());
    for port in (0..count)
        .filter_map(|n| even(n).ok())
        .filter(|port| *port > 0)
    {
        let bound = IngestSocket::bind(IngestBind {
            interface: interface.clone(),
            ..IngestBind::new(port)
        });
        if let Ok(socket) = bound {
            return Ok(socket);
        }
    }
    Err(RtpLegError::NoPort(first, last))
}

/// A mix as an ingest, on this worker if it is said.
pub(crate) fn mix_ingest(of: AudioCodec, clocks: Clocks, worker: Option<usize>) -> IngestOptions {
    let clock = match of {
        AudioCodec::Opus => clocks.opus,
        AudioCodec::Pcma | AudioCodec::Pcmu => clocks.g711,
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
    }
}
