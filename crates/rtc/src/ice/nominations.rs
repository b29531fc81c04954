//! Leaving the selected pair because the peer has moved to another address or wants another pair.
//!
//! The agent keeps a nominated pair until it has been unanswered for long. Here, it is invalidated
//! earlier, so that the agent nominates another.

use std::time::{Duration, Instant};

use is::Candidate;

use super::candidate::{address, peer_reflexive};
use super::{Ice, SelectedPair};
use crate::path::TransportAddress;

/// After this time without a response, it is in doubt whether the pair works.
const DOUBT: Duration = Duration::from_secs(8);

/// A pair that the peer has not nominated for this time is left if it nominates another one
/// repeatedly. The time exceeds the interval of checks on a working pair. Peers that nominate all
/// working pairs do not mean to change.
const REPEAL: Duration = Duration::from_secs(3);
/// A lite agent makes no checks. It leaves such a pair after this time without a check of the peer,
/// which exceeds the interval of browsers' checks.
const LITE_REPEAL: Duration = Duration::from_secs(4);
/// The nominations of another pair before it is followed.
const NOMINATIONS: u32 = 2;

/// Nominations of a controlling peer since the pair was selected.
#[derive(Debug, Default)]
pub(super) struct Nominations {
    /// When it last nominated the selected pair, or when that was selected.
    here: Option<Instant>,
    /// Another address that it nominated since, and how often in a row.
    elsewhere: Option<(TransportAddress, u32)>,
}

impl Nominations {
    /// Starts with a new selected pair.
    pub(super) fn begin(&mut self, now: Instant) {
        self.here = Some(now);
        self.elsewhere = None;
    }
}

impl Ice {
    /// Records that the peer nominated the pair to its address `there`.
    pub(super) fn note_nomination(&mut self, there: TransportAddress, now: Instant) {
        let Some(pair) = self.selected.filter(|_| !self.agent.controlling()) else {
            return;
        };
        if there == pair.peer() {
            return self.nominations.begin(now);
        }
        let count = match self.nominations.elsewhere {
            Some((address, count)) if address == there => count.saturating_add(1),
            _ => 1,
        };
        self.nominations.elsewhere = Some((there, count));
    }

    /// Leaves the selected pair if the peer wants another. The agent alone would use the nominated
    /// pair with the highest priority, but browsers that change networks expect to be followed.
    pub(super) fn follow_nomination(&mut self, now: Instant) {
        let (Some(pair), Some((address, count))) = (self.selected, self.nominations.elsewhere)
        else {
            return;
        };
        let here = self.nominations.here;
        let is_repealed = here.is_none_or(|at| now.saturating_duration_since(at) >= REPEAL);
        let heard = || self.sources.heard_within(LITE_REPEAL, now);
        let is_silent = || heard().all(|there| there != pair.peer());
        let may = !self.agent.ice_lite() || is_silent();
        let is_wanted = is_repealed && count >= NOMINATIONS && may;
        if is_wanted && self.is_valid(address) && self.is_valid(pair.peer()) {
            self.leave(&[pair.peer()], now);
        }
    }

    /// Returns whether there is a selected pair that works without doubt. A lite agent does not
    /// know.
    pub(crate) fn is_answered(&self, now: Instant) -> bool {
        let alive = self.alive.filter(|_| self.selected.is_some());
        let is_recent = |alive| now.saturating_duration_since(alive) < DOUBT;
        !self.agent.ice_lite() && alive.is_some_and(is_recent)
    }

    /// Nominates a pair instead of the peer. Many peers nominate only once, and never notice that a
    /// NAT has given them another address.
    fn nominate(&mut self, now: Instant) {
        while let Some(datagram) = self.next_of_agent() {
            self.out.push_back(datagram);
        }
        self.agent.set_controlling(true);
        self.agent.handle_timeout(now);
        self.agent.set_controlling(false);
        // The peer would not understand a check with this role.
        while self.agent.poll_transmit().is_some() {}
        self.take_events(now);
    }

    /// Makes the agent nominate another pair than those to `addresses`, and check these again.
    pub(super) fn leave(&mut self, addresses: &[TransportAddress], now: Instant) {
        let candidates = self.agent.remote_candidates();
        let is_left = |candidate: &Candidate| addresses.contains(&address(candidate));
        let left: Vec<Candidate> = candidates.filter(is_left).collect();
        for candidate in &left {
            self.agent.invalidate_candidate(candidate);
        }
        self.agent.handle_timeout(now);
        self.take_events(now);
        let is_in_use = |pair: SelectedPair| addresses.contains(&pair.peer());
        if self.selected.is_some_and(is_in_use) && !self.agent.controlling() {
            self.nominate(now);
        }
        // Otherwise, the agent would ignore packets from there.
        for candidate in left {
            let again = peer_reflexive(address(&candidate), candidate.prio());
            self.agent.add_remote_candidate(again);
        }
    }
}
