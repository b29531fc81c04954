//! What the control plane asks of a worker.

use std::time::Duration;

use portunus_rtc::streams::SenderClock;
use portunus_rtp::Mid;
use portunus_sdp::negotiated::{IceCredentials, Negotiated};
use tokio::sync::oneshot;

use crate::graph::SourceFormat;

use crate::{DataMessage, PeerId, PeerStats, RouteId};

/// One end of a route: an m-line of a peer, as a source (what the peer sends) or a sink (what it receives).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrackRef {
    /// The peer.
    pub peer: PeerId,
    /// The m-line.
    pub mid: Mid,
}

/// How a route selects and relays; a plugin changes it at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteOptions {
    /// The gate: false relays nothing. Opening it asks a video source for a keyframe.
    pub enabled: bool,
    /// The simulcast encoding wanted, 0 (lowest) to 2.
    pub substream: u8,
    /// The SVC spatial layer wanted, 0 to 2.
    pub spatial: u8,
    /// The temporal layer wanted, 0 to 2.
    pub temporal: u8,
    /// How long the wanted encoding may be silent before a lower one is relayed.
    pub fallback: Duration,
    /// Values for the playout-delay extension in units of 10 ms (0 to 4095): (minimum, maximum).
    pub playout_delay: Option<(u16, u16)>,
}

impl Default for RouteOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            substream: 2,
            spatial: 2,
            temporal: 2,
            fallback: Duration::from_millis(250),
            playout_delay: None,
        }
    }
}

/// What a worker is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    CreatePeer {
        peer: PeerId,
        ice: IceCredentials,
        controlling: bool,
    },
    Negotiate {
        peer: PeerId,
        negotiated: Box<Negotiated>,
    },
    RestartIce {
        peer: PeerId,
        ice: IceCredentials,
    },
    AddCandidate {
        peer: PeerId,
        candidate: String,
    },
    ClosePeer {
        peer: PeerId,
    },
    /// To the source's worker: pass the packets of `from` to another worker, for this route.
    Subscribe {
        from: TrackRef,
        worker: u16,
    },
    /// To the source's worker, from the sink's: the route is gone.
    Unsubscribe {
        from: TrackRef,
        worker: u16,
    },
    /// To the sink's worker.
    AddRoute {
        route: RouteId,
        from: TrackRef,
        to: TrackRef,
        options: RouteOptions,
    },
    SetRoute {
        route: RouteId,
        options: RouteOptions,
    },
    RemoveRoute {
        route: RouteId,
    },
    SetBitrate {
        peer: PeerId,
        bitrate: Option<u64>,
    },
    RequestKeyframe {
        peer: PeerId,
    },
    SendData {
        peer: PeerId,
        message: DataMessage,
    },
    Stats {
        peer: PeerId,
        reply: oneshot::Sender<PeerStats>,
    },
    /// To the worker that relays `track` from another: what the sender's report said.
    SourceClock {
        track: TrackRef,
        encoding: u8,
        clock: SenderClock,
    },
    /// To the source's worker: a sink elsewhere needs a keyframe.
    SourceKeyframe {
        track: TrackRef,
        encoding: u8,
    },
    /// To the worker that relays `track` from another: what the source is like.
    SourceFormat {
        track: TrackRef,
        format: SourceFormat,
    },
    /// To the worker that relays `track` from another: its peer is gone.
    SourceGone {
        track: TrackRef,
    },
    Shutdown,
}
