//! Participants by plain RTP, without a PeerConnection.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use portunus_media::{
    IngestBind, IngestFeed, IngestId, IngestMedia, IngestOptions, IngestSocket, IngestStatus,
    MediaPlane, SourceRef, ingest::RtpIngest,
};
use portunus_rtp::{ExtensionKind, Pt};
use portunus_sdp::negotiated::Codec;

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
    port: u16,
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
        let socket = bind(&options)?;
        let port = socket.port();
        let feed = IngestFeed::socket(socket);
        let ingest = media.add_ingest(IngestOptions {
            media: IngestMedia::Rtp(rtp),
            ..IngestOptions::rtp(codec(options.codec), options.codec.clock_rate(), feed)
        });
        Ok(Self {
            media: media.clone(),
            ingest: ingest.id,
            status: ingest.status,
            port,
        })
    }

    /// What it sends us, to be given to [`crate::AudioRoom::join`].
    pub fn source(&self) -> SourceRef {
        SourceRef::Ingest(self.ingest)
    }

    /// Our UDP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What has come so far.
    pub fn status(&self) -> &Arc<IngestStatus> {
        &self.status
    }

    /// Sends to this address from now on, and hears nobody else.
    pub fn connect(&self, _remote: SocketAddr) -> Result<(), RtpLegError> {
        Ok(())
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
    let even = |port: u16| port % 2 == 0;
    let mut ports: Vec<u16> = options.ports.clone().filter(|port| even(*port)).collect();
    let middle = match ports.len() {
        0 => 0,
        count => rand::random_range(0..count),
    };
    ports.rotate_left(middle);
    let interface = options.bind.map(|address| address.to_string());
    for port in ports.into_iter().filter(|port| *port > 0) {
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

/// The codec in the media graph's words.
pub(crate) const fn codec(codec: AudioCodec) -> Codec {
    match codec {
        AudioCodec::Opus => Codec::Opus,
        AudioCodec::Pcma => Codec::Pcma,
        AudioCodec::Pcmu => Codec::Pcmu,
    }
}
