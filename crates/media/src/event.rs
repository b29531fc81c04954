//! Events from the media plane to the control plane.

use portunus_graph::{Layer, LayerReason, PeerId, RouteId, SpeechActivity};
use portunus_rtc::{IceAttempt, SelectedPair};
use portunus_rtp::Mid;

use crate::backlog::BacklogPlace;
use crate::{DtlsState, IceState, PeerStats};

/// An event of a peer.
#[derive(Debug, Clone)]
pub struct PeerEvent {
    /// The peer.
    pub peer: PeerId,
    /// The event.
    pub event: Event,
    /// The last statistics of a peer that ended by itself, see
    /// [`crate::MediaPlane::want_last_stats`].
    pub last: Option<Box<PeerStats>>,
    /// The place of a message among those of its worker that wait for the control plane.
    _held: Option<BacklogPlace>,
}

impl PeerEvent {
    /// Returns an event of a peer.
    pub fn new(peer: PeerId, event: Event) -> Self {
        PeerEvent {
            peer,
            event,
            last: None,
            _held: None,
        }
    }

    /// Adds the last statistics of the peer.
    pub fn with_last(self, last: Option<Box<PeerStats>>) -> Self {
        PeerEvent { last, ..self }
    }

    /// Adds a place, which is freed when the event is dropped.
    pub(crate) fn holding(self, held: BacklogPlace) -> Self {
        PeerEvent {
            _held: Some(held),
            ..self
        }
    }
}

/// What happened to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The state of the ICE agent changed.
    Ice(IceState),
    /// Media uses this pair of addresses from now on.
    SelectedPair(SelectedPair),
    /// The state of the DTLS handshake changed.
    Dtls {
        /// The new state.
        state: DtlsState,
        /// Flights that were retransmitted so far.
        retransmissions: u32,
    },
    /// ICE and DTLS are done: media and data flow.
    Connected {
        /// The SRTP profile in use, by its OpenSSL name (`SRTP_AEAD_AES_128_GCM`).
        srtp_profile: &'static str,
    },
    /// The first packets of a medium arrived, or none arrived for the no-media time (1 s by
    /// default).
    Media {
        /// The m-line.
        mid: Mid,
        /// True for audio, false for video.
        audio: bool,
        /// Whether packets arrive.
        receiving: bool,
        /// The simulcast layer, if there are several (0 is the lowest).
        substream: Option<u8>,
    },
    /// Many packets were lost on a medium within a second.
    SlowLink {
        /// The m-line.
        mid: Mid,
        /// True for audio, false for video.
        audio: bool,
        /// True for packets from the peer, false for packets to it.
        uplink: bool,
        /// The number of lost packets.
        lost: u32,
    },
    /// The peer has started or stopped talking, see [`crate::MediaPlane::detect_talking`].
    Talking {
        /// The m-line.
        mid: Mid,
        /// Whether it talks now.
        talking: bool,
        /// The average level in hundredths of -dBov: 0 is the loudest, 12,700 is silence.
        average: u16,
    },
    /// The speech activity, every 200 ms unless it is silent, see
    /// [`crate::MediaPlane::measure_speech`].
    Speech {
        /// The m-line.
        mid: Mid,
        /// The activity.
        activity: SpeechActivity,
    },
    /// A route relays another layer, or its sender announces another number of layers.
    Layer {
        /// The route.
        route: RouteId,
        /// The layers that it relays now.
        layer: Layer,
        /// Why it relays these.
        reason: LayerReason,
    },
    /// A route that may pause has done so, because the link of the peer does not carry it, or goes
    /// on.
    Paused {
        /// The route.
        route: RouteId,
        /// Whether it is paused.
        paused: bool,
    },
    /// The peer's estimate of the bitrate that it can receive (REMB).
    Remb {
        /// The bitrate in bit/s.
        bitrate: u64,
    },
    /// A data channel is open for writing.
    DataChannel {
        /// Its label.
        label: String,
        /// Its subprotocol, empty if there is none.
        protocol: String,
    },
    /// A message on a data channel that no route relays.
    Data(DataMessage),
    /// The peer is gone. This is its last event.
    Closed(CloseReason),
}

/// A message of a data channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataMessage {
    /// The channel's label.
    pub label: String,
    /// The channel's subprotocol, empty if there is none.
    pub protocol: String,
    /// The content.
    pub payload: DataPayload,
}

impl DataMessage {
    /// The size of the message with its label and subprotocol, in bytes.
    pub fn size(&self) -> usize {
        let payload = match &self.payload {
            DataPayload::Text(text) => text.len(),
            DataPayload::Binary(bytes) => bytes.len(),
        };
        let names = self.label.len().saturating_add(self.protocol.len());
        payload.saturating_add(names)
    }
}

/// Text or bytes (RFC 8831 section 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataPayload {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// Why a peer was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// The control plane closed it.
    Requested,
    /// The remote side closed DTLS.
    DtlsAlert,
    /// The handshake failed. The text says why.
    DtlsFailed(String),
    /// A fault of the server, which is logged. Other peers are not affected.
    Internal,
    /// No pair of addresses worked.
    IceFailed(Box<IceAttempt>),
    /// Consent expired after a pair had worked (RFC 7675), mostly because a page was closed.
    ConsentLost(Box<IceAttempt>),
}

impl CloseReason {
    /// The `reason` of the Janus API's `hangup` event.
    pub fn as_str(&self) -> &'static str {
        match self {
            CloseReason::Requested => "Close PC",
            CloseReason::DtlsAlert => "DTLS alert",
            CloseReason::DtlsFailed(_) => "DTLS failed",
            CloseReason::IceFailed(_) | CloseReason::ConsentLost(_) => "ICE failed",
            CloseReason::Internal => "Internal error",
        }
    }
}
