//! ICE-TCP: a path ends with its connection, and may start again with another one.

use std::time::Instant;

use is::Candidate;
use is::stun::StunMessage;

use super::Ice;
use super::candidate::{address, peer_reflexive};
use crate::Path;
use crate::path::TransportAddress;

impl Ice {
    /// Fails the pairs of a closed connection.
    pub(crate) fn lose(&mut self, path: Path, now: Instant) {
        let peer = path.peer();
        let candidates = self.agent.remote_candidates();
        let lost: Vec<Candidate> = candidates.filter(|c| address(c) == peer).collect();
        for candidate in &lost {
            self.agent.invalidate_candidate(candidate);
        }
        self.sources.lose(peer);
        if self.selected.is_some_and(|pair| Path::from(&pair) == path) {
            self.selected = None;
            self.was_connected = true;
            self.media_heard = None;
        }
        self.handle_timeout(now);
    }

    /// Makes an address known to the agent again after its connection closed, since a message
    /// arrived by another connection. Otherwise, the agent would ignore it.
    pub(super) fn find_again(&mut self, peer: TransportAddress, message: &StunMessage<'_>) {
        if let Some(priority) = message.prio()
            && self.sources.is_lost(peer)
            && self.agent.accepts_message(message)
        {
            let again = peer_reflexive(peer, priority);
            self.agent.add_remote_candidate(again);
        }
    }
}
