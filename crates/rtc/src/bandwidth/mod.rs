//! How much a peer's link carries, and what is best sent over it.
//!
//! [`Bandwidth`] estimates from transport-wide feedback, or takes the receiver's own estimate (REMB),
//! and probes for more. An [`Allocator`] divides the estimate among the tracks of the peer. A [`Pacer`]
//! spreads what leaves over time. `docs/bandwidth.md` says how they decide.

mod acknowledged;
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
mod sent;
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
pub use sent::{Reported, SentLog};

/// What is known of the link to a peer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// What it carries.
    pub rate: DataRate,
    /// What may be sent at present: less than the rate while a queue is emptied.
    pub budget: DataRate,
    /// How long packets wait in queues on the way.
    pub queue: Duration,
    /// The share of packets lost lately, 0.0 to 1.0.
    pub loss: f64,
    /// From the sending of a packet to the news of its arrival.
    pub round_trip: Duration,
    /// What set the rate.
    pub limit: Limit,
    /// A probe is under way: more may be known in a moment.
    pub is_probing: bool,
}

impl Estimate {
    /// Whether a queue is emptied at present.
    pub fn is_emptying(&self) -> bool {
        self.budget < self.rate
    }
}

/// What set an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Nothing is known yet.
    Start,
    /// The delay: a queue on the way grew, or did not.
    Delay,
    /// Losses.
    Loss,
    /// A probe that passed.
    Probe,
    /// The receiver's word (REMB).
    Receiver,
    /// Feedback that did not come.
    NoFeedback,
}

impl Limit {
    /// A word for statistics.
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

/// What became of a packet.
#[derive(Debug, Clone, Copy, Default)]
struct PacketResult {
    seq: SeqNo,
    /// When it left, on the clock of the log.
    sent: Duration,
    /// When it arrived, on the receiver's clock; none if it was lost.
    arrival: Option<Duration>,
    bytes: u32,
    /// It had been reported lost before.
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
