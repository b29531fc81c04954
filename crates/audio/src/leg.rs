//! Legs in audio rooms: participants without a PeerConnection.

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

use crate::clocks::Clocks;
use crate::{AudioCodec, RtpLegError};

/// The options of a leg of plain RTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpLegOptions {
    /// The range from which an even port is taken, with the next one for RTCP.
    pub ports: RangeInclusive<u16>,
    /// The only address that is heard and sent to. `None`: the first sender is heard, and nothing
    /// is sent.
    pub remote: Option<SocketAddr>,
    /// The codec in both directions.
    pub codec: AudioCodec,
    /// The payload type in both directions. Packets with another one are refused.
    pub pt: Pt,
    /// The number of the audio-level extension (RFC 6464) in received packets.
    pub audio_level: Option<u8>,
}

/// The codecs that rooms send.
const CODECS: [Codec; 4] = [Codec::Opus, Codec::G722, Codec::Pcma, Codec::Pcmu];

/// A leg that hears rooms. The mixes that it hears, and the pauses between them, are one stream. It
/// ends when it is dropped.
#[derive(Debug)]
pub struct RtpLeg {
    media: MediaPlane,
    leg: Arc<Leg>,
    /// The ingest that it hears while it hears no mix. It is silent.
    rest: IngestId,
}

impl RtpLeg {
    /// Opens a port for plain RTP without RTCP. Packets are received from now on.
    pub fn open(media: &MediaPlane, options: RtpLegOptions) -> Result<Self, RtpLegError> {
        if let Some(id) = options.audio_level.filter(|id| !(1..=14).contains(id)) {
            return Err(RtpLegError::Extension(id));
        }
        // Nobody needs the leg's events.
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

    /// Prepares a leg to hear rooms. It hears none yet.
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

    /// Returns its source, for [`crate::AudioRoom::join`].
    pub fn source(&self) -> SourceRef {
        self.leg.source()
    }

    /// Returns the local UDP port.
    pub fn port(&self) -> u16 {
        self.leg.port()
    }

    /// Returns the SSRC of sent packets.
    pub fn ssrc(&self) -> Ssrc {
        self.leg.ssrc()
    }

    /// Returns the SSRC of received packets, once there is one.
    pub fn remote_ssrc(&self) -> Option<Ssrc> {
        self.leg.status().incoming().ssrc()
    }

    /// Sends to the address in these options from now on, and hears no other.
    pub fn connect(&self, options: &RtpLegOptions) {
        self.leg.set_remote(options.remote());
    }

    /// Returns its worker.
    pub(crate) fn worker(&self) -> usize {
        self.leg.worker()
    }

    /// Returns the route to the network. It starts at an ingest of the same worker.
    pub(crate) fn route(&self) -> RouteId {
        self.leg.route()
    }

    /// Returns the ingest that the route starts at while nothing is heard.
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
            // The room chooses the codec; all have this payload type.
            outgoing: CODECS.map(|codec| LegPayload { codec, ..payload }).to_vec(),
            extensions,
            // With an address, nobody else is heard.
            latching: self.remote.is_none(),
            ..LegRemote::new(self.remote, vec![payload])
        }
    }
}

impl Drop for RtpLeg {
    fn drop(&mut self) {
        self.leg.route_from(None);
        // Nobody waits for its end.
        let _ = self.media.remove_ingest(self.rest);
    }
}

/// Returns the options of an ingest for a mix, on this worker if given.
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

/// Returns the codec for the media graph.
pub(crate) const fn codec(codec: AudioCodec) -> Codec {
    match codec {
        AudioCodec::Opus => Codec::Opus,
        AudioCodec::Pcma => Codec::Pcma,
        AudioCodec::Pcmu => Codec::Pcmu,
        AudioCodec::G722 => Codec::G722,
    }
}
