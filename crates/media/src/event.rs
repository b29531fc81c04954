//! What the media plane tells the control plane.

use portunus_rtc::{IceAttempt, SelectedPair};
use portunus_rtp::Mid;

use crate::waiting::Held;
use crate::{LayerReason, PeerId, PeerStats, RouteId, SpeechActivity};

/// Something that happened to a peer, and to which one.
#[derive(Debug, Clone)]
pub struct PeerEvent {
    /// The peer.
    pub peer: PeerId,
    /// What happened.
    pub event: Event,
    /// Of the end of a peer that nobody has asked for: its last figures, see [`crate::MediaPlane::want_last_stats`].
    pub last: Option<Box<PeerStats>>,
    /// Of a message: its place among those of its worker that nobody has taken yet.
    _held: Option<Held>,
}

impl PeerEvent {
    /// Something that happened to a peer.
    pub fn new(peer: PeerId, event: Event) -> Self {
        PeerEvent {
            peer,
            event,
            last: None,
            _held: None,
        }
    }

    /// The same with the last figures of the peer.
    pub fn with_last(self, last: Option<Box<PeerStats>>) -> Self {
        PeerEvent { last, ..self }
    }

    /// The same, with a place that is free again once this is dropped.
    pub(crate) fn holding(self, held: Held) -> Self {
        PeerEvent {
            _held: Some(held),
            ..self
        }
    }
}

/// What happened to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The ICE agent changed its state.
    Ice(IceState),
    /// The pair of addresses that media uses from now on.
    SelectedPair(SelectedPair),
    /// The DTLS handshake changed its state.
    Dtls {
        /// The new state.
        state: DtlsState,
        /// Flights that had to be sent again so far.
        retransmissions: u32,
    },
    /// ICE and DTLS are done: media and data flow.
    Connected {
        /// The SRTP profile in use, by its OpenSSL name (`SRTP_AEAD_AES_128_GCM`).
        srtp_profile: &'static str,
    },
    /// The first packets of a medium arrived, or none did for the no-media time (1 s by default).
    Media {
        /// The m-line.
        mid: Mid,
        /// Whether it is audio (else video).
        audio: bool,
        /// Whether packets come in.
        receiving: bool,
        /// The simulcast layer that it concerns, where there are several (0 is the lowest).
        substream: Option<u8>,
    },
    /// Many packets were lost on a medium within a second.
    SlowLink {
        /// The m-line.
        mid: Mid,
        /// Whether it is audio (else video).
        audio: bool,
        /// True: packets that the peer sent to us; false: packets that we sent to it.
        uplink: bool,
        /// Packets lost.
        lost: u32,
    },
    /// Somebody has begun or ceased to talk, see [`crate::MediaPlane::detect_talking`].
    Talking {
        /// The m-line.
        mid: Mid,
        /// Which of the two.
        talking: bool,
        /// How loud it was on average, in hundredths of -dBov: 0 is the loudest, 12700 silence.
        average: u16,
    },
    /// How much is spoken, every 200 ms as long as it is not silent, see [`crate::MediaPlane::measure_speech`].
    Speech {
        /// The m-line.
        mid: Mid,
        /// How much.
        activity: SpeechActivity,
    },
    /// A route relays another layer than before, or its sender says that it sends another number of them.
    Layer {
        /// The route.
        route: RouteId,
        /// What it relays now.
        layer: Layer,
        /// Why these.
        reason: LayerReason,
    },
    /// The peer's estimate of what it can receive (REMB), in bit/s.
    Remb {
        /// bit/s
        bitrate: u64,
    },
    /// A data channel can be written to.
    DataChannel {
        /// Its label.
        label: String,
        /// Its subprotocol, empty if there is none.
        protocol: String,
    },
    /// A message on a data channel from which no route begins.
    Data(DataMessage),
    /// The peer is gone; nothing more comes of it and its id is free again.
    Closed(CloseReason),
}

/// A message of a data channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataMessage {
    /// The channel's label.
    pub label: String,
    /// The channel's subprotocol, empty if there is none.
    pub protocol: String,
    /// What it says.
    pub payload: DataPayload,
}

impl DataMessage {
    /// How long it is, with its channel's names, in bytes.
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
#[allow(missing_docs)]
pub enum DataPayload {
    Text(String),
    Binary(Vec<u8>),
}

/// The layers that a route relays; none where the stream has no such layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layer {
    /// Simulcast encoding, 0 the lowest.
    pub substream: Option<u8>,
    /// Spatial layer of an SVC stream.
    pub spatial: Option<u8>,
    /// Temporal layer.
    pub temporal: Option<u8>,
    /// How many spatial and temporal layers the sender says that it sends, where it says so and there are layers to choose from.
    pub sent: Option<SentLayers>,
}

/// How many layers a sender says that it sends (video-layers-allocation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentLayers {
    /// Spatial layers of the encoding that has most.
    pub spatial: u8,
    /// Temporal layers of the layer that has most.
    pub temporal: u8,
}

/// The states of an ICE agent, as the Janus API names them in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IceState {
    Gathering,
    Connecting,
    Connected,
    Ready,
    Disconnected,
    Failed,
}

/// The states of a DTLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DtlsState {
    Trying,
    Connected,
    Failed,
}

/// Why a peer is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// The control plane asked for it.
    Requested,
    /// The remote side closed DTLS.
    DtlsAlert,
    /// The handshake failed; the text says why.
    DtlsFailed(String),
    /// A fault of the server; it is logged, and other peers are not concerned.
    Internal,
    /// No pair worked.
    IceFailed(Box<IceAttempt>),
    /// Consent ran out after a pair had worked (RFC 7675), mostly because a page was closed.
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
