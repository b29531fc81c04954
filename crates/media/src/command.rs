//! What the control plane asks of a worker.

use std::sync::Arc;
use std::time::Duration;

use portunus_rtc::bandwidth::DataRate;
use portunus_rtc::streams::SenderClock;
use portunus_rtp::Mid;
use portunus_sdp::negotiated::{IceCredentials, Negotiated};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use tokio::sync::oneshot;

use crate::graph::SourceFormat;

use crate::capture::{Capturing, NewCapture};
use crate::ingest::{
    IngestId, IngestOptions, IngestStatus, Listening, ParameterSets, ThreadFeedEnd,
};
use crate::leg::{LegGates, LegId, LegRemote, LegStatus, LegTones, NewLeg};
use crate::outlet::NewOutlet;
use crate::turn::TurnServer;
use crate::waiting::Held;
use crate::worker::PassedPipe;
use crate::{
    CaptureError, DataMessage, LineStats, MediaIdentity, MediaSettings, PeerId, PeerStats, RouteId,
    TalkDetection,
};

/// An m-line of a peer, as a source (what the peer sends) or a sink (what it receives).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrackRef {
    /// The peer.
    pub peer: PeerId,
    /// The m-line.
    pub mid: Mid,
}

/// What a route begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceRef {
    /// What a peer sends on an m-line.
    Track(TrackRef),
    /// What comes in without a PeerConnection.
    Ingest(IngestId),
}

impl SourceRef {
    /// The track, if it is one.
    pub fn track(self) -> Option<TrackRef> {
        match self {
            SourceRef::Track(track) => Some(track),
            SourceRef::Ingest(_) => None,
        }
    }

    /// The worker that it lives on.
    pub(crate) fn worker(self) -> u16 {
        match self {
            SourceRef::Track(track) => track.peer.worker,
            SourceRef::Ingest(ingest) => ingest.worker,
        }
    }
}

impl From<TrackRef> for SourceRef {
    fn from(track: TrackRef) -> Self {
        SourceRef::Track(track)
    }
}

impl From<IngestId> for SourceRef {
    fn from(ingest: IngestId) -> Self {
        SourceRef::Ingest(ingest)
    }
}

/// What of a viewer's video is raised first, where its link does not carry all of it. The words are those of W3C's
/// `RTCPriorityType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// After all others.
    VeryLow,
    /// As usual.
    #[default]
    Low,
    /// Before what is usual.
    Medium,
    /// Before all others.
    High,
}

impl Priority {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Priority::VeryLow => "very-low",
            Priority::Low => "low",
            Priority::Medium => "medium",
            Priority::High => "high",
        }
    }
}

/// Reads the number of a simulcast, spatial or temporal layer, 0 to 2, for serde's `deserialize_with`.
pub fn layer_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    match Option::<u64>::deserialize(from)? {
        None => Ok(None),
        Some(layer @ 0..=2) => Ok(Some(layer as u8)),
        Some(_) => Err(D::Error::custom("should be 0, 1 or 2")),
    }
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
    /// What comes first where the link of the sink's peer does not carry all of its video.
    pub priority: Priority,
    /// Values for the playout-delay extension in units of 10 ms (0 to 4095): (minimum, maximum).
    pub playout_delay: Option<(u16, u16)>,
    /// Messages leave on the data channel of this label, which closes with the route; none: on that of the source, which
    /// stays.
    pub label: Option<Arc<str>>,
}

impl Default for RouteOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            substream: 2,
            spatial: 2,
            temporal: 2,
            fallback: Duration::from_millis(250),
            priority: Priority::default(),
            playout_delay: None,
            label: None,
        }
    }
}

/// When a video source is asked for keyframes although nobody needs one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyframeInterval {
    /// When none has come for so long. It is looked at every 100 ms at most.
    pub every: Duration,
    /// Keyframes cannot be told from other pictures, as with end-to-end encryption: only requests count.
    pub opaque: bool,
}

/// How much of a video source is kept for new sinks, from the last keyframe on. The keyframe itself is kept
/// whole; what follows it is kept up to both limits, of which zero means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyframeCache {
    /// The time from the keyframe on.
    pub max_age: Duration,
    /// Bytes, of 16 MiB at most.
    pub max_bytes: usize,
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
    /// To the source's worker, from the sink's: pass the packets of `from` on, for a new route.
    Subscribe {
        from: SourceRef,
        worker: u16,
    },
    /// To the source's worker, from the sink's: the route is gone.
    Unsubscribe {
        from: SourceRef,
        worker: u16,
    },
    /// To the sink's worker.
    AddRoute {
        route: RouteId,
        from: SourceRef,
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
    /// What it sends is encrypted end to end.
    SetOpaque {
        peer: PeerId,
    },
    DetectTalking {
        track: TrackRef,
        detection: Option<TalkDetection>,
    },
    MeasureSpeech {
        track: TrackRef,
        wanted: bool,
    },
    SendData {
        peer: PeerId,
        message: DataMessage,
        /// Its place among those that wait for the worker.
        held: Held,
    },
    Stats {
        peer: PeerId,
        reply: oneshot::Sender<PeerStats>,
    },
    LineStats {
        peers: Vec<PeerId>,
        reply: oneshot::Sender<Vec<(PeerId, LineStats)>>,
    },
    /// What all workers are told anew.
    Configure(MediaSettings),
    /// New peers present this certificate.
    SetIdentity(MediaIdentity),
    /// How peers that are created from now on reach the worker.
    Candidates,
    /// Allocates an address at a TURN server in the place of the one that there is; none: only gives that back.
    Turn(Option<Box<TurnServer>>),
    Capture {
        peer: PeerId,
        capture: Box<NewCapture>,
        reply: oneshot::Sender<Result<(), CaptureError>>,
    },
    StopCapture {
        peer: PeerId,
        reply: oneshot::Sender<Result<Capturing, CaptureError>>,
    },
    /// To the worker that relays `source` from another: what the sender's report said.
    SourceClock {
        source: SourceRef,
        encoding: u8,
        clock: SenderClock,
    },
    /// To the source's worker: a sink elsewhere needs a keyframe.
    SourceKeyframe {
        source: SourceRef,
        encoding: u8,
    },
    /// To the worker that relays `source` from another: what the source is like.
    SourceFormat {
        source: SourceRef,
        format: SourceFormat,
    },
    /// To the worker that relays `source` from another: it is gone.
    SourceGone {
        source: SourceRef,
    },
    /// To the source's worker.
    AddOutlet(Box<NewOutlet>),
    /// To the worker of the peer that has connected by TCP, from the worker that has accepted.
    TakePipe(Box<PassedPipe>),
    /// To the worker that the ingest is to live on.
    AddIngest(Box<NewIngest>),
    /// To the worker whose ingests it feeds.
    AddThreadFeed(ThreadFeedEnd),
    SetIngestEnabled {
        ingest: IngestId,
        enabled: bool,
    },
    SetIngestParameterSets {
        ingest: IngestId,
        sets: Option<ParameterSets>,
    },
    RemoveIngest {
        ingest: IngestId,
        /// Dropped once its sockets are closed.
        done: oneshot::Sender<()>,
    },
    Listen {
        ingest: IngestId,
        listening: Option<Listening>,
    },
    /// To the worker that the leg is to live on.
    AddLeg(Box<(LegId, NewLeg, Arc<LegStatus>)>),
    SetLegRemote {
        leg: LegId,
        remote: Box<LegRemote>,
    },
    SetLegGates {
        leg: LegId,
        gates: LegGates,
    },
    RouteToLeg {
        leg: LegId,
        from: Option<SourceRef>,
        options: Box<RouteOptions>,
    },
    KeysToLeg {
        leg: LegId,
        from: Option<SourceRef>,
    },
    SendTones {
        leg: LegId,
        tones: Box<LegTones>,
    },
    RemoveLeg {
        leg: LegId,
        /// Dropped once its sockets are closed.
        done: oneshot::Sender<()>,
    },
    /// To the source's worker.
    KeepKeyframe {
        source: SourceRef,
        keep: Option<KeyframeCache>,
    },
    /// To the source's worker: keyframes are wanted every so often.
    KeyframeInterval {
        source: SourceRef,
        interval: Option<KeyframeInterval>,
    },
    /// To the source's worker: keyframes of all its encodings are wanted.
    SourceKeyframes {
        source: SourceRef,
    },
    /// To the worker of an outlet: a keyframe is wanted of what it takes.
    OutletKeyframe {
        outlet: RouteId,
    },
    /// To the source's worker: what the viewers elsewhere can take at least, in bit/s.
    SourceBitrate {
        source: SourceRef,
        bitrate: u64,
    },
    /// To the source's worker: what the viewers on another can take; none: whatever it sends.
    SourceLimit {
        source: SourceRef,
        worker: u16,
        limit: Option<DataRate>,
    },
    Shutdown,
}

impl Command {
    /// The peer that is to be ended if carrying it out leads to a fault: what it brings comes from that peer.
    pub(crate) fn peer(&self) -> Option<PeerId> {
        match self {
            Command::CreatePeer { peer, .. }
            | Command::Negotiate { peer, .. }
            | Command::RestartIce { peer, .. }
            | Command::AddCandidate { peer, .. }
            | Command::ClosePeer { peer }
            | Command::SetBitrate { peer, .. }
            | Command::RequestKeyframe { peer }
            | Command::SetOpaque { peer }
            | Command::SendData { peer, .. }
            | Command::Stats { peer, .. }
            | Command::Capture { peer, .. }
            | Command::StopCapture { peer, .. } => Some(*peer),
            _ => None,
        }
    }
}

/// An ingest to be.
#[derive(Debug)]
pub(crate) struct NewIngest {
    pub(crate) id: IngestId,
    pub(crate) options: IngestOptions,
    pub(crate) status: Arc<IngestStatus>,
}
