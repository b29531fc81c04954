//! When to probe, and at which rate.

use std::time::{Duration, Instant};

use super::probe::{Cluster, Padding, ProbeResult, Seen};
use super::{DataRate, PacketResult, SentLog};

/// The time between attempts while more is wanted than the estimate. A recovered link is found
/// within this time. Probes cost about 2 % of the estimate.
const INTERVAL: Duration = Duration::from_secs(3);
/// The wait after an attempt without a result, and how often it is repeated so soon.
const AFTER_UNCLEAR: Duration = Duration::from_millis(300);
const MOST_UNCLEAR: u8 = 4;
/// The time without probes after a decrease.
const AFTER_DECREASE: Duration = Duration::from_secs(2);
/// The interval for a flow that follows the estimate at the limit of the link. It finds more by
/// itself, and its probes would only slow down other flows on the link.
const AT_LIMIT: Duration = Duration::from_secs(10);
/// The first cluster is as short as can be measured. Later ones last longer than a frame, so that a
/// frame of other traffic within does not look like the end of the link.
const FIRST_DURATION: Duration = Duration::from_millis(40);
const DURATION: Duration = Duration::from_millis(50);
/// The duration for senders that use little of the estimate: more than two frames. Beside other
/// video, a shorter cluster meets no frame, one or two, and so finds much more or much less than
/// its share. It costs others too much for senders that have their share.
const LONG_DURATION: Duration = Duration::from_millis(83);
/// The duration if only the receiver measures, which it does slowly.
const FOR_RECEIVER: Duration = Duration::from_secs(2);
/// The target as a factor of the estimate: for the first cluster of a connection, for one after a
/// success, and for one that only checks whether the link has changed.
const FIRST_STEP: f64 = 3.0;
const NEXT_STEP: f64 = 2.0;
const LOOK: f64 = 1.5;
/// The most that a target may exceed the wanted rate, as a factor.
const ABOVE_WANTED: f64 = 1.1;
/// If this share of an attempt passed, the next one follows at once, ...
const GO_ON: f64 = 0.7;
/// ... but only if it exceeded the estimate by this factor. Otherwise it was the end of the link.
const FURTHER: f64 = 1.05;
/// An attempt that found less than this share of the estimate says nothing.
const CREDIBLE: f64 = 0.8;
/// If the wanted rate has grown by this factor, the next attempt does not wait.
const GROWN: f64 = 1.2;

/// Decides on probes while the estimate is below the wanted rate: at once at the start, then
/// regularly. It follows the clock, not packets, so it probes also while nothing else is sent.
#[derive(Debug)]
pub(super) struct Prober {
    /// The receiver measures and reports its estimate.
    for_receiver: bool,
    wanted: DataRate,
    /// The sent rate follows the estimate at the limit of the link.
    at_limit: bool,
    /// The sender uses little of the estimate.
    small: bool,
    cluster: Option<Cluster>,
    /// Memory of the last cluster.
    room: Vec<Seen>,
    /// Attempts in a row without a result.
    unclear: u8,
    next: Option<Instant>,
    /// The end of the wait after a decrease.
    quiet_until: Option<Instant>,
    first: bool,
    /// The last attempt succeeded.
    climbs: bool,
}

impl Prober {
    /// Makes a prober without a wanted rate.
    pub fn new(for_receiver: bool) -> Self {
        Self {
            for_receiver,
            wanted: DataRate::ZERO,
            at_limit: false,
            small: false,
            cluster: None,
            room: Vec::new(),
            unclear: 0,
            next: None,
            quiet_until: None,
            first: true,
            climbs: false,
        }
    }

    /// Sets the rate that would be used if the link carried it.
    pub fn want(&mut self, wanted: DataRate, now: Instant) {
        if wanted > self.wanted.times(GROWN) {
            let quiet = self.quiet_until.filter(|until| *until > now);
            self.next = Some(quiet.unwrap_or(now));
        }
        self.wanted = wanted;
    }

    /// Sets whether the sent rate follows the estimate at the limit of the link.
    pub fn set_at_limit(&mut self, at_limit: bool, now: Instant) {
        if std::mem::replace(&mut self.at_limit, at_limit) && !at_limit {
            // The long pause was for a flow that finds more without probes.
            let longest = now + AFTER_DECREASE;
            self.quiet_until = self.quiet_until.map(|until| until.min(longest));
            self.next = self.next.map(|next| next.min(longest));
        }
    }

    /// Sets whether little of the estimate is sent.
    pub fn set_small(&mut self, small: bool) {
        self.small = small;
    }

    /// Ends the current probe after a decrease, and waits for the queue to empty.
    pub fn decreased(&mut self, now: Instant) {
        self.end_cluster();
        self.climbs = false;
        let quiet = if self.at_limit {
            AT_LIMIT
        } else {
            AFTER_DECREASE
        };
        self.quiet_until = Some(now + quiet);
        self.next = self.quiet_until;
    }

    /// Returns whether a probe is active or follows at once.
    pub fn is_probing(&self, estimate: DataRate) -> bool {
        self.cluster.is_some() || (self.climbs && self.wants_more(estimate))
    }

    /// Returns when [`Prober::poll`] is due. `estimate` is the current one.
    pub fn poll_timeout(&self, estimate: DataRate) -> Option<Instant> {
        match &self.cluster {
            Some(cluster) => Some(cluster.poll_timeout()),
            None => self.next.filter(|_| self.wants_more(estimate)),
        }
    }

    /// Starts an attempt if it is due, and returns the padding to send.
    pub fn poll(&mut self, estimate: DataRate, log: &SentLog, now: Instant) -> Option<Padding> {
        if self.cluster.is_none()
            && self.wants_more(estimate)
            && self.next.is_some_and(|next| next <= now)
        {
            self.begin(estimate, log, now);
        }
        self.cluster.as_mut()?.padding(log, now)
    }

    /// Takes a reported packet, and its waiting time if it arrived.
    pub fn reported(&mut self, packet: &PacketResult, waited: Option<Duration>) {
        if let Some(cluster) = &mut self.cluster {
            cluster.reported(packet, waited);
        }
    }

    /// Returns the result of the attempt once it is known. If most of it passed, and more than the
    /// estimate, the next attempt follows.
    pub fn take_result(&mut self, estimate: DataRate, now: Instant) -> Option<ProbeResult> {
        let result = self.cluster.as_mut()?.result(now)?;
        self.end_cluster();
        let passed = result.passed.unwrap_or_default();
        self.climbs = passed >= result.target.times(GO_ON) && passed > estimate.times(FURTHER);
        // Less than the estimate cannot be all that the link carries, or there would be a queue.
        let says_less = |passed: DataRate| passed < estimate.times(CREDIBLE);
        let is_unclear = result.is_unclear || result.passed.is_some_and(says_less);
        let again = !self.climbs && is_unclear && self.unclear < MOST_UNCLEAR;
        self.unclear = if again { self.unclear + 1 } else { 0 };
        let wait = match (self.climbs, again) {
            (true, _) => Duration::ZERO,
            (false, true) => AFTER_UNCLEAR,
            (false, false) if self.at_limit => AT_LIMIT,
            (false, false) => INTERVAL,
        };
        self.next = Some(now + wait);
        Some(result)
    }

    fn end_cluster(&mut self) {
        if let Some(cluster) = self.cluster.take() {
            self.room = cluster.into_room();
        }
    }

    fn begin(&mut self, estimate: DataRate, log: &SentLog, now: Instant) {
        let first = std::mem::take(&mut self.first);
        // A long cluster catches more of the time for which the receiver stood still.
        let is_long = self.small && self.unclear == 0;
        let usual = if is_long { LONG_DURATION } else { DURATION };
        let (duration, step) = match (self.for_receiver, first, self.climbs) {
            (true, ..) => (FOR_RECEIVER, LOOK),
            (false, true, _) => (FIRST_DURATION, FIRST_STEP),
            (false, false, true) => (DURATION, NEXT_STEP),
            (false, false, false) => (usual, LOOK),
        };
        let target = estimate.times(step).min(self.wanted.times(ABOVE_WANTED));
        let room = std::mem::take(&mut self.room);
        self.cluster = Some(Cluster::begin((target, duration), log, room, now));
    }

    fn wants_more(&self, estimate: DataRate) -> bool {
        self.wanted > estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESTIMATE: DataRate = DataRate::kbps(1_000);

    fn wanting(now: Instant) -> Prober {
        let mut prober = Prober::new(false);
        prober.want(ESTIMATE.times(2.0), now);
        prober
    }

    #[test]
    fn after_a_decrease_it_waits_longer_at_the_limit_of_the_link() {
        let now = Instant::now();
        for (at_limit, wait) in [(false, AFTER_DECREASE), (true, AT_LIMIT)] {
            let mut prober = wanting(now);
            prober.set_at_limit(at_limit, now);
            prober.decreased(now);
            assert_eq!(prober.poll_timeout(ESTIMATE), Some(now + wait));
        }
    }

    #[test]
    fn the_long_pause_ends_with_its_reason() {
        let now = Instant::now();
        let mut prober = wanting(now);
        prober.set_at_limit(true, now);
        prober.decreased(now);
        let later = now + Duration::from_secs(1);
        prober.set_at_limit(false, later);
        let next = Some(later + AFTER_DECREASE);
        assert_eq!(prober.poll_timeout(ESTIMATE), next);
        prober.want(ESTIMATE.times(4.0), later);
        assert_eq!(prober.poll_timeout(ESTIMATE), next, "a queue empties first");
    }
}
