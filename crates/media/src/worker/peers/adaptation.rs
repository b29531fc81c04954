//! The state of bandwidth adaptation for a viewer.

use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::{Allocator, DataRate, Measure, Track};

use super::{Peer, Peers};

/// A peer that agreed to report, but has not done so this long after the first packets, is assumed
/// never to: an unknown link limits nothing.
const UNHEARD: Duration = Duration::from_secs(2);

/// The adaptation for a viewer that agreed to report on its link.
pub(in crate::worker) struct Adaptation {
    pub(in crate::worker) allocator: Allocator,
    /// There is something to adapt.
    pub(in crate::worker) is_active: bool,
    /// The peer reports on its link.
    pub(in crate::worker) is_heard: bool,
    pub(in crate::worker) next: Instant,
    /// When the first packets had left whose arrival can be reported.
    sent_since: Option<Instant>,
    /// The tracks of the allocator, and their routes. Kept for their memory.
    pub(in crate::worker) tracks: Vec<Track>,
    pub(in crate::worker) routes: Vec<usize>,
}

impl Adaptation {
    /// Returns the initial state.
    pub(in crate::worker) fn new(now: Instant) -> Self {
        Self {
            allocator: Allocator::default(),
            is_active: false,
            is_heard: false,
            next: now,
            sent_since: None,
            tracks: Vec::new(),
            routes: Vec::new(),
        }
    }

    /// Notes that routes have changed, so that a decision is due.
    pub(in crate::worker) fn look_again(&mut self, now: Instant) {
        self.next = now;
    }

    /// When a decision is due, if nothing happens before.
    pub(in crate::worker) fn poll_timeout(&self) -> Option<Instant> {
        // A peer without anything to adapt is checked when it is polled anyway.
        let next = self.is_active.then_some(self.next)?;
        let decides = self.allocator.poll_timeout().filter(|_| self.is_heard);
        Some(decides.map_or(next, |at| at.min(next)))
    }

    pub(in crate::worker) fn is_due(&self, now: Instant) -> bool {
        self.next <= now || self.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Whether the peer never reports, whatever was agreed.
    pub(in crate::worker) fn never_reports(&mut self, peer: &Peer, now: Instant) -> bool {
        let connection = &peer.connection;
        if connection.is_bandwidth_heard() {
            return false;
        }
        if self.sent_since.is_none() && connection.recorded() > 0 {
            self.sent_since = Some(now);
        }
        let waits = |since: Instant| now.saturating_duration_since(since) < UNHEARD;
        connection.measure() == Some(Measure::Receiver) || !self.sent_since.is_none_or(waits)
    }
}

impl Peers {
    /// Notes that the routes to a peer have changed.
    pub(in crate::worker) fn adapt_soon(&mut self, slot: usize, now: Instant) {
        let adaptation = self
            .slots
            .get_mut(slot)
            .and_then(|peer| peer.sending.adaptation_mut());
        if let Some(adaptation) = adaptation {
            adaptation.look_again(now);
            self.touch(slot);
        }
    }
}

impl Peer {
    /// What the link has for these routes, by their slots. `None` if that is unknown.
    pub(in crate::worker) fn spare_bandwidth(
        &self,
        is_one: impl Fn(usize) -> bool,
    ) -> Option<DataRate> {
        self.sending.pacer()?.limit()?;
        let adaptation = self.sending.adaptation()?;
        let budget = self.connection.bandwidth()?.budget;
        let decisions = adaptation.allocator.decisions();
        let taken = adaptation.routes.iter().zip(decisions);
        let taken = taken.filter(|(route, _)| !is_one(**route));
        let taken: DataRate = taken.map(|(_, decision)| decision.rate).sum();
        Some(budget - taken)
    }
}
