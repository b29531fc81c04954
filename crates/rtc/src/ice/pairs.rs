//! The state of each pair of candidates, for inspection. The agent does not expose it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use is::Candidate;

use super::attempt::kind_name;
use super::candidate::address;
use super::{Ice, MAX_PAIRS, MAX_UNANSWERED};
use crate::Carrier;
use crate::path::TransportAddress;

/// A pair of candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairFigures {
    /// The announced address of this side.
    pub local: SocketAddr,
    /// The type of the local candidate: `host` or `relay`.
    pub local_kind: &'static str,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The type of the remote candidate: `host`, `prflx`, `srflx` or `relay`.
    pub remote_kind: &'static str,
    /// The carrier of datagrams between them.
    pub carrier: Carrier,
    /// The progress of the checks.
    pub progress: PairProgress,
    /// Whether it is the selected pair.
    pub is_selected: bool,
    /// The round trip of the last answered check.
    pub round_trip: Option<Duration>,
    /// Checks sent.
    pub checks_sent: u32,
    /// Checks answered.
    pub checks_answered: u32,
    /// Checks received from the peer.
    pub checks_received: u32,
}

/// The progress of a pair's checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairProgress {
    /// No check was made yet.
    Waiting,
    /// Checks were sent, and none was answered yet.
    InProgress,
    /// A check was answered. If this side makes none, the peer made one.
    Succeeded,
    /// Checks are unanswered.
    Failed,
}

/// The index of the local candidate, and the peer's address.
type Ends = (u8, TransportAddress);

/// The pairs with checks.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    known: Vec<Pair>,
}

#[derive(Debug, Clone, Copy)]
struct Pair {
    ends: Ends,
    sent: u32,
    answered: u32,
    received: u32,
    /// Checks since the last answered one.
    unanswered: u8,
    round_trip: Option<Duration>,
}

impl Pairs {
    /// Counts a check sent.
    pub(super) fn checked(&mut self, ends: Ends) {
        if let Some(pair) = self.pair(ends) {
            pair.sent = pair.sent.saturating_add(1);
            pair.unanswered = pair.unanswered.saturating_add(1);
        }
    }

    /// Counts a check of the peer, or the response to the check sent at `sent`.
    pub(super) fn heard(
        &mut self,
        ends: Ends,
        is_request: bool,
        sent: Option<Instant>,
        now: Instant,
    ) {
        let Some(pair) = self.pair(ends) else { return };
        if is_request {
            pair.received = pair.received.saturating_add(1);
        }
        if let Some(sent) = sent {
            pair.answered = pair.answered.saturating_add(1);
            pair.unanswered = 0;
            pair.round_trip = Some(now.saturating_duration_since(sent));
        }
    }

    pub(super) fn clear(&mut self) {
        self.known = Vec::new();
    }

    fn pair(&mut self, ends: Ends) -> Option<&mut Pair> {
        let known = self.known.iter().position(|pair| pair.ends == ends);
        let at = match known {
            Some(at) => at,
            None if self.known.len() >= MAX_PAIRS => return None,
            None => {
                // Most peers have one or two pairs, and a vector would reserve four.
                self.known.reserve_exact(1);
                self.known.push(Pair {
                    ends,
                    sent: 0,
                    answered: 0,
                    received: 0,
                    unanswered: 0,
                    round_trip: None,
                });
                self.known.len().checked_sub(1)?
            }
        };
        self.known.get_mut(at)
    }
}

impl Pair {
    fn progress(&self) -> PairProgress {
        if usize::from(self.unanswered) >= MAX_UNANSWERED {
            PairProgress::Failed
        } else if self.answered > 0 || self.sent == 0 && self.received > 0 {
            PairProgress::Succeeded
        } else if self.sent > 0 {
            PairProgress::InProgress
        } else {
            PairProgress::Waiting
        }
    }
}

impl Ice {
    pub(crate) fn is_controlling(&self) -> bool {
        self.agent.controlling()
    }

    /// Returns the candidates of the peer, as in SDP after `candidate:`.
    pub(crate) fn remote_candidates(&self) -> Vec<String> {
        let text = |candidate: Candidate| {
            let text = candidate.to_sdp_string();
            let text = text.trim_start_matches("a=");
            text.trim_start_matches("candidate:").to_owned()
        };
        self.agent.remote_candidates().map(text).collect()
    }

    /// Returns the pairs, the selected one first. Pairs with untried candidates of the peer are
    /// included.
    pub(crate) fn pairs(&self) -> Vec<PairFigures> {
        let remotes: Vec<(TransportAddress, &'static str)> = self
            .agent
            .remote_candidates()
            .map(|candidate| (address(&candidate), kind_name(candidate.kind())))
            .collect();
        let mut pairs: Vec<PairFigures> = Vec::new();
        for pair in &self.pairs.known {
            let known = remotes.iter().find(|(remote, _)| *remote == pair.ends.1);
            let kind = known.map_or("prflx", |(_, kind)| kind);
            pairs.extend(self.pair_figures(pair, kind));
        }
        let untried = (0..).zip(&self.locals).flat_map(|(index, local)| {
            let fits = |(remote, _): &&(TransportAddress, &str)| {
                remote.carrier == local.carrier()
                    && remote.address.is_ipv4() == local.address.is_ipv4()
            };
            let ends = remotes.iter().filter(fits);
            ends.map(move |(remote, kind)| ((index, *remote), *kind))
        });
        for (ends, kind) in untried.take(MAX_PAIRS) {
            if self.pairs.known.iter().any(|pair| pair.ends == ends) {
                continue;
            }
            let pair = Pair {
                ends,
                sent: 0,
                answered: 0,
                received: 0,
                unanswered: 0,
                round_trip: None,
            };
            pairs.extend(self.pair_figures(&pair, kind));
        }
        pairs.sort_by_key(|pair| !pair.is_selected);
        pairs
    }

    fn pair_figures(&self, pair: &Pair, remote_kind: &'static str) -> Option<PairFigures> {
        let (local, remote) = pair.ends;
        let local = self.locals.get(usize::from(local))?;
        let is_selected = self
            .selected
            .is_some_and(|selected| selected.local == local.base && selected.peer() == remote);
        Some(PairFigures {
            local: local.address,
            local_kind: local.kind(),
            remote: remote.address,
            remote_kind,
            carrier: remote.carrier,
            progress: pair.progress(),
            is_selected,
            round_trip: pair.round_trip,
            checks_sent: pair.sent,
            checks_answered: pair.answered,
            checks_received: pair.received,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
    use super::*;

    fn ends(n: u16) -> Ends {
        let address = TransportAddress {
            carrier: Carrier::Udp,
            address: ([192, 0, 2, 1], n).into(),
        };
        (0, address)
    }

    #[test]
    fn a_pair_goes_from_tried_to_answered_to_failed() {
        let start = Instant::now();
        let mut pairs = Pairs::default();
        pairs.checked(ends(1));
        assert_eq!(pairs.known[0].progress(), PairProgress::InProgress);
        let later = start + Duration::from_millis(30);
        pairs.heard(ends(1), false, Some(start), later);
        assert_eq!(pairs.known[0].progress(), PairProgress::Succeeded);
        assert_eq!(pairs.known[0].round_trip, Some(Duration::from_millis(30)));
        for _ in 0..MAX_UNANSWERED {
            pairs.checked(ends(1));
        }
        assert_eq!(pairs.known[0].progress(), PairProgress::Failed);
        pairs.heard(ends(2), true, None, later);
        assert_eq!(pairs.known[1].progress(), PairProgress::Succeeded, "lite");
    }

    #[test]
    fn no_more_pairs_are_kept_than_are_checked() {
        let mut pairs = Pairs::default();
        for n in 0..1_000 {
            pairs.checked(ends(n));
        }
        assert_eq!(pairs.known.len(), MAX_PAIRS);
    }
}
