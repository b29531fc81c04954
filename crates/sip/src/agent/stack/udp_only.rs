//! Far ends without TCP.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The maximum number to remember.
const MOST: usize = 256;
/// The time to remember them for.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// The addresses that get large requests by UDP at once, because TCP failed.
#[derive(Debug, Default)]
pub(super) struct UdpOnly {
    /// The oldest first.
    known: VecDeque<(SocketAddr, Instant)>,
}

impl UdpOnly {
    pub(super) fn add(&mut self, now: Instant, remote: SocketAddr) {
        self.known.retain(|(other, _)| *other != remote);
        if self.known.len() >= MOST {
            self.known.pop_front();
        }
        self.known.push_back((remote, now));
    }

    pub(super) fn has(&self, now: Instant, remote: SocketAddr) -> bool {
        let is_young = |since: Instant| now.saturating_duration_since(since) < LIFETIME;
        self.known
            .iter()
            .any(|(other, since)| *other == remote && is_young(*since))
    }
}
