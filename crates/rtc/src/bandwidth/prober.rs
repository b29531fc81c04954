//! When to probe, and how fast.

use std::time::{Duration, Instant};

use super::probe::{Cluster, Padding, ProbeResult};
use super::{DataRate, PacketResult, SentLog};

/// From one attempt to the next, as long as more is wanted than the estimate gives. A link that has
/// recovered is found within this time; the probes cost some 2 % of the estimate.
const INTERVAL: Duration = Duration::from_secs(3);
/// After a decrease the queue is left alone for this time.
const AFTER_DECREASE: Duration = Duration::from_secs(2);
/// The first probe of a connection aims at this many times the estimate, later ones at less, ...
const FIRST_STEP: f64 = 3.0;
const STEP: f64 = 2.0;
/// ... but not further than this beyond what is wanted.
const ABOVE_WANTED: f64 = 1.25;
/// An attempt of which this share passed is followed by the next at once.
const GO_ON: f64 = 0.7;

/// Decides on probes: while the estimate is lower than what is wanted, at once at the beginning, then
/// regularly. It goes by the clock, not by packets: it probes as well while nothing else is sent.
#[derive(Debug)]
pub(super) struct Prober {
    wanted: DataRate,
    cluster: Option<Cluster>,
    next: Option<Instant>,
    first: bool,
    /// The last attempt went well.
    climbs: bool,
}

impl Prober {
    /// Nothing is wanted yet.
    pub fn new() -> Self {
        Self {
            wanted: DataRate::ZERO,
            cluster: None,
            next: None,
            first: true,
            climbs: false,
        }
    }

    /// The bitrate that would be used if it could.
    pub fn want(&mut self, wanted: DataRate, now: Instant) {
        self.wanted = wanted;
        self.next.get_or_insert(now);
    }

    /// The estimate was decreased: what is being probed is moot, and the queue has to empty first.
    pub fn decreased(&mut self, now: Instant) {
        self.cluster = None;
        self.climbs = false;
        self.next = Some(now + AFTER_DECREASE);
    }

    /// Whether a probe is under way or follows at once.
    pub fn is_probing(&self, estimate: DataRate) -> bool {
        self.cluster.is_some() || (self.climbs && self.wants_more(estimate))
    }

    /// When [`Prober::poll`] has something to do. `estimate` is the present one.
    pub fn poll_timeout(&self, estimate: DataRate) -> Option<Instant> {
        match &self.cluster {
            Some(cluster) => Some(cluster.poll_timeout()),
            None => self.next.filter(|_| self.wants_more(estimate)),
        }
    }

    /// Begins an attempt if it is time, and says what padding is due.
    pub fn poll(&mut self, estimate: DataRate, log: &SentLog, now: Instant) -> Option<Padding> {
        if self.cluster.is_none()
            && self.wants_more(estimate)
            && self.next.is_some_and(|next| next <= now)
        {
            let step = if self.first { FIRST_STEP } else { STEP };
            self.first = false;
            self.begin(estimate.times(step), log, now);
        }
        self.cluster.as_mut()?.padding(log, now)
    }

    /// Takes a packet that was reported.
    pub fn reported(&mut self, packet: &PacketResult) {
        if let Some(cluster) = &mut self.cluster {
            cluster.reported(packet);
        }
    }

    /// The outcome of the attempt, once it is known. If most of it passed, the next one follows.
    pub fn take_result(&mut self, now: Instant) -> Option<ProbeResult> {
        let result = self.cluster.as_ref()?.result(now)?;
        self.cluster = None;
        let passed = result.passed.unwrap_or_default();
        self.climbs = passed >= result.target.times(GO_ON);
        self.next = Some(if self.climbs { now } else { now + INTERVAL });
        Some(result)
    }

    fn begin(&mut self, target: DataRate, log: &SentLog, now: Instant) {
        let target = target.min(self.wanted.times(ABOVE_WANTED));
        self.cluster = Some(Cluster::begin(target, log, now));
    }

    fn wants_more(&self, estimate: DataRate) -> bool {
        self.wanted > estimate
    }
}
