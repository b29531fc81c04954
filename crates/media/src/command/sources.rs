//! Commands that concern a source.

use portunus_graph::{Demand, KeyframeCache, KeyframeInterval, SourceFormat};
use portunus_rtc::bandwidth::DataRate;
use portunus_rtc::streams::SenderClock;

/// A command that concerns a source. The first three go from the worker of a source to a worker
/// that relays it, the others to the worker of the source.
#[derive(Debug)]
pub(crate) enum SourceCommand {
    /// What the sender's report said.
    SetClock {
        encoding: u8,
        clock: SenderClock,
    },
    SetFormat(SourceFormat),
    /// The source is gone.
    End,
    /// A sink on another worker needs a keyframe.
    RequestKeyframe {
        encoding: u8,
    },
    /// Passes packets on to `worker`, for a new route there.
    Subscribe {
        worker: u16,
    },
    /// A route on `worker` is gone.
    Unsubscribe {
        worker: u16,
    },
    /// Keeps the last keyframe for new sinks.
    KeepKeyframe(Option<KeyframeCache>),
    /// Requests a keyframe whenever none has come for a time.
    SetKeyframeInterval(Option<KeyframeInterval>),
    /// Requests keyframes of all encodings.
    RequestKeyframes,
    /// The lowest bitrate that viewers on another worker can take, in bit/s.
    ReportBitrate(u64),
    /// What receivers on `worker` can see.
    SetDemand {
        worker: u16,
        demand: Demand,
    },
    /// The limit for viewers on `worker`. `None` means no limit.
    SetLimit {
        worker: u16,
        limit: Option<DataRate>,
    },
}
