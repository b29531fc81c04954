//! The bandwidth of a peer's link, and its best use.
//!
//! [`Bandwidth`] estimates it from transport-wide feedback or takes the receiver's own estimate
//! (REMB), and probes for more. An [`Allocator`] divides the estimate among the tracks of the peer.
//! A [`Pacer`] spreads packets over time. `docs/bandwidth.md` describes how they decide.

mod acknowledged_rate;
mod aimd;
mod allocator;
mod control;
mod estimator;
mod groups;
mod loss;
mod pacer;
mod probe;
mod prober;
mod queue;
mod rate;
mod sent_log;
mod trend;

use std::time::Duration;

use portunus_rtp::SeqNo;

pub use allocator::{
    Allocator, Decision, LAYERS, LayerMeter, LayerRates, Layering, Reason, Target, Track, TrackKind,
};
pub use control::{Bandwidth, Measure};
pub use pacer::{Lane, Pacer};
pub use probe::Padding;
pub use rate::DataRate;
pub use sent_log::{Reported, SentLog};

/// The known properties of the link to a peer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The rate that it carries.
    pub rate: DataRate,
    /// The rate that may be sent now: less than `rate` while a queue is emptied.
    pub budget: DataRate,
    /// The time that packets wait in queues on the way.
    pub queue: Duration,
    /// The share of recent packets lost, 0.0 to 1.0.
    pub loss: f64,
    /// The time from the sending of a packet to the report of its arrival.
    pub round_trip: Duration,
    /// The reason for the rate.
    pub limit: Limit,
    /// A probe is active, so the estimate may change soon.
    pub is_probing: bool,
}

impl Estimate {
    /// Returns whether a queue is being emptied.
    pub fn is_emptying(&self) -> bool {
        self.budget < self.rate
    }
}

/// The reason for an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Nothing is known yet.
    Start,
    /// The delay: a queue on the way did or did not grow.
    Delay,
    /// Losses.
    Loss,
    /// A successful probe.
    Probe,
    /// The receiver's estimate (REMB).
    Receiver,
    /// Missing feedback.
    NoFeedback,
}

impl Limit {
    /// Returns the name for statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::Start => "start",
            Limit::Delay => "delay",
            Limit::Loss => "loss",
            Limit::Probe => "probe",
            Limit::Receiver => "receiver",
            Limit::NoFeedback => "no-feedback",
        }
    }
}

/// The report on a packet.
#[derive(Debug, Clone, Copy, Default)]
struct PacketResult {
    seq: SeqNo,
    /// The time of sending, on the clock of the log.
    sent: Duration,
    /// The time of arrival, on the receiver's clock. `None` if the packet was lost.
    arrival: Option<Duration>,
    bytes: u32,
    /// Whether it was reported lost before.
    late: bool,
}

impl PacketResult {
    fn new(reported: Reported, arrival: Option<Duration>) -> Self {
        Self {
            seq: reported.seq,
            sent: reported.sent,
            arrival,
            bytes: reported.bytes,
            late: reported.late,
        }
    }
}
