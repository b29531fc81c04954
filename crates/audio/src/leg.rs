//! Legs as audio rooms use them: participants without a PeerConnection.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use portunus_leg::{Leg, LegOptions, LegPayload, LegRemote, LegRtcp, Medium};
use portunus_media::ingest::RtpIngest;
use portunus_media::{
    IngestFeed, IngestId, IngestMedia, IngestOptions, MediaPlane, RouteId, SourceRef,
};
use portunus_rtp::{ExtensionKind, ExtensionMap, Pt, Ssrc};
use portunus_sdp::negotiated::Codec;
use tokio::sync::mpsc;

use crate::command::Clocks;
use crate::{AudioCodec, RtpLegError};

/// How somebody speaks plain RTP with us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpLegOptions {
    /// Where an even port is taken from, with the next one.
    pub ports: RangeInclusive<u16>,
    /// The only one who is heard, and where to send to; none: whoever speaks first is heard, and nothing is sent.
    pub remote: Option<SocketAddr>,
    /// What is sent both ways.
    pub codec: AudioCodec,
    /// The payload type of what is sent both ways; what comes with another one is refused.
    pub pt: Pt,
    /// The number of the audio-level extension (RFC 6464) in what comes.
    pub audio_level: Option<u8>,
}

/// What rooms send.
const CODECS: [Codec; 4] = [Codec::Opus, Codec::G722, Codec::Pcma, Codec::Pcmu];

/// A leg that hears rooms: what it is sent comes from one mix or another, or from nowhere, and stays one stream. It ends when
/// it is dropped.
#[derive(Debug)]
pub struct RtpLeg {
    media: MediaPlane,
    leg: Arc<Leg>,
    /// Where what it hears comes from while it hears nothing: nothing.
    rest: IngestId,
}

impl RtpLeg {
    /// Opens a port for somebody who speaks plain RTP, and no RTCP. It takes packets in from now on.
    pub fn open(media: &MediaPlane, options: RtpLegOptions) -> Result<Self, RtpLegError> {
        if let Some(id) = options.audio_level.filter(|id| !(1..=14).contains(id)) {
            return Err(RtpLegError::Extension(id));
        }
        // Nobody is told what happens.
        let (tell, _) = mpsc::channel(1);
        let leg = Leg::open(
            media,
            LegOptions {
                ports: options.ports.clone(),
                hears_unknown: true,
                ..LegOptions::new(Medium::Audio, tell)
            },
        )?;
        leg.set_remote(options.remote());
        Ok(Self::of(media, Arc::new(leg)))
    }

    /// Has a leg hear rooms; it hears none yet.
    pub fn of(media: &MediaPlane, leg: Arc<Leg>) -> Self {
        let rest = media.add_ingest(IngestOptions {
            worker: Some(leg.worker()),
            ..IngestOptions::rtp(Codec::Opus, 48_000, IngestFeed::Thread)
        });
        leg.route_from(Some(rest.id.into()));
        Self {
            media: media.clone(),
            leg,
            rest: rest.id,
        }
    }

    /// What it sends us, to be given to [`crate::AudioRoom::join`].
    pub fn source(&self) -> SourceRef {
        self.leg.source()
    }

    /// Our UDP port.
    pub fn port(&self) -> u16 {
        self.leg.port()
    }

    /// The SSRC of what we send.
    pub fn ssrc(&self) -> Ssrc {
        self.leg.ssrc()
    }

    /// The SSRC of what comes, once something has.
    pub fn remote_ssrc(&self) -> Option<Ssrc> {
        self.leg.status().incoming().ssrc()
    }

    /// Sends to where these options say from now on, and hears nobody else.
    pub fn connect(&self, options: &RtpLegOptions) {
        self.leg.set_remote(options.remote());
    }

    /// The worker that it lives on.
    pub(crate) fn worker(&self) -> usize {
        self.leg.worker()
    }

    /// The way from what it hears to the network, which begins at an ingest of the same worker.
    pub(crate) fn route(&self) -> RouteId {
        self.leg.route()
    }

    /// Where that begins while nothing is heard.
    pub(crate) fn rest(&self) -> IngestId {
        self.rest
    }
}

impl RtpLegOptions {
    fn remote(&self) -> LegRemote {
        let payload = LegPayload {
            pt: self.pt,
            codec: codec(self.codec),
            clock_rate: self.codec.clock_rate(),
        };
        let mut extensions = ExtensionMap::default();
        if let Some(id) = self.audio_level {
            extensions.set(ExtensionKind::AudioLevel, id);
        }
        LegRemote {
            rtcp: LegRtcp::Never,
            // The room chooses what is sent; it has this number.
            outgoing: CODECS.map(|codec| LegPayload { codec, ..payload }).to_vec(),
            extensions,
            // Whoever is to be heard has said where it is.
            latching: self.remote.is_none(),
            ..LegRemote::new(self.remote, vec![payload])
        }
    }
}

impl Drop for RtpLeg {
    fn drop(&mut self) {
        self.leg.route_from(None);
        // Nobody waits for it.
        let _ = self.media.remove_ingest(self.rest);
    }
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
