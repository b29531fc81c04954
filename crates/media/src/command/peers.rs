//! Commands that concern a peer.

use portunus_rtp::Mid;
use portunus_sdp::negotiated::{IceCredentials, Negotiated};
use tokio::sync::oneshot;

use crate::backlog::BacklogPlace;
use crate::capture::{Capturing, NewCapture};
use crate::{CaptureError, DataMessage, DataOptions, PeerStats, TalkDetection};

/// A command that concerns a peer.
#[derive(Debug)]
pub(crate) enum PeerCommand {
    Create {
        ice: IceCredentials,
        /// Our ICE agent is the controlling one.
        controlling: bool,
    },
    /// Applies the outcome of an offer/answer exchange.
    Negotiate(Box<Negotiated>),
    RestartIce(IceCredentials),
    AddCandidate(String),
    Close,
    /// Caps what the peer sends, in bit/s.
    SetBitrate(Option<u64>),
    /// Asks the peer for a keyframe on all its video.
    RequestKeyframe,
    /// The media of the peer is encrypted end to end.
    SetOpaque,
    /// Reports when the peer starts and stops talking on an m-line.
    DetectTalking {
        mid: Mid,
        detection: Option<TalkDetection>,
    },
    /// Reports how much is spoken on an m-line.
    MeasureSpeech {
        mid: Mid,
        wanted: bool,
    },
    /// Opens a data channel, if there is none with this label.
    OpenData {
        label: String,
        options: DataOptions,
    },
    SendData {
        message: DataMessage,
        /// The options of the channel, if it has to be opened.
        options: DataOptions,
        /// The place of the message among those that wait for the worker.
        held: BacklogPlace,
    },
    Stats(oneshot::Sender<PeerStats>),
    Capture {
        capture: Box<NewCapture>,
        reply: oneshot::Sender<Result<(), CaptureError>>,
    },
    StopCapture(oneshot::Sender<Result<Capturing, CaptureError>>),
}
