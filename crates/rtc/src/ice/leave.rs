//! When the pair in use is left: the peer has moved to another address, or wants another pair.
//!
//! The agent keeps a pair that was nominated until it has been unanswered for long. Here it is taken from it earlier,
//! so that it nominates another.

use std::time::{Duration, Instant};

use is::Candidate;

use super::candidate::peer_reflexive;
use super::{Ice, SelectedPair, address};
use crate::path::TransportAddress;

/// It is doubtful whether the peer is still where a pair leads that has not answered for this long.
const DOUBT: Duration = Duration::from_secs(8);

/// A pair that the peer has not nominated for this long is left if it nominates another, again and again: more than the
/// interval between two checks on a pair that works. Who nominates all that work does not mean that.
const REPEAL: Duration = Duration::from_secs(3);
/// A lite agent makes no checks. It leaves such a pair once no check of the peer has come there for so long: more than the interval
/// between those of browsers.
const LITE_REPEAL: Duration = Duration::from_secs(4);
/// How often it has to have nominated the other.
const NOMINATIONS: u32 = 2;

/// What the peer, if it controls, nominates since there is a pair in use.
#[derive(Debug, Default)]
pub(super) struct Nominations {
    /// When it last nominated that pair, or when that came into use.
    here: Option<Instant>,
    /// Another address that it nominated since then, and how often in a row.
    elsewhere: Option<(TransportAddress, u32)>,
}

impl Nominations {
    /// The pair in use is another since `now`.
    pub(super) fn begin(&mut self, now: Instant) {
        self.here = Some(now);
        self.elsewhere = None;
    }
}

impl Ice {
    /// The peer has nominated the pair to where it is `there`.
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

    /// Leaves the pair in use if the peer wants another. The agent would use the one of the highest priority of all that
    /// were ever nominated; browsers go to another network and expect to be followed.
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

    /// Whether there is a pair in use and no doubt that it works. A lite agent does not know.
    pub(crate) fn is_answered(&self, now: Instant) -> bool {
        let alive = self.alive.filter(|_| self.selected.is_some());
        let is_recent = |alive| now.saturating_duration_since(alive) < DOUBT;
        !self.agent.ice_lite() && alive.is_some_and(is_recent)
    }

    /// Nominates a pair in the place of the peer: many do that once and for all, and never learn that a NAT has given
    /// them another address.
    fn nominate(&mut self, now: Instant) {
        while let Some(datagram) = self.next_of_agent() {
            self.out.push_back(datagram);
        }
        self.agent.set_controlling(true);
        self.agent.handle_timeout(now);
        self.agent.set_controlling(false);
        // The peer would not understand a check that says so.
        while self.agent.poll_transmit().is_some() {}
        self.take_events(now);
    }

    /// Has the agent nominate another pair than those to these addresses, and check those anew.
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
        // The agent would take nothing more that comes from there.
        for candidate in left {
            let again = peer_reflexive(address(&candidate), candidate.prio());
            self.agent.add_remote_candidate(again);
        }
    }
}
