//! What is particular to TCP: a path ends with its connection, and may begin again with another one.

use std::time::Instant;

use is::Candidate;
use is::stun::StunMessage;

use super::candidate::peer_reflexive;
use super::{Ice, address};
use crate::Path;
use crate::path::TransportAddress;

impl Ice {
    /// The connection that was `path` is closed: its pairs fail at once, and there is no other way to where it led.
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

    /// A message has come by another connection from where one was lost: the agent would take nothing more from there.
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
