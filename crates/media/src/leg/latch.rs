//! The address of a far end: the one in its description, or behind a NAT the one that packets come
//! from.

use std::net::SocketAddr;

/// The address of a far end. Behind a NAT, the description may be wrong; then the first valid
/// packet decides. After that, only packets from there or from the address in the description are
/// accepted.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    /// The address in the description.
    said: Option<SocketAddr>,
    current: Option<SocketAddr>,
    /// Another address than the described one may be used.
    on: bool,
    /// A valid packet came from the present address.
    is_settled: bool,
    /// The first sender is accepted while there is no description.
    is_open: bool,
    /// The address of that sender.
    unknown: Option<SocketAddr>,
}

impl Latch {
    /// Returns the initial state. `is_open` accepts the first sender while there is no description,
    /// but sends nothing there.
    pub(crate) fn new(is_open: bool) -> Self {
        Self {
            is_open,
            ..Self::default()
        }
    }

    /// Applies a description. A new address replaces the one that was found.
    pub(crate) fn set(&mut self, said: Option<SocketAddr>, on: bool) {
        let said = said.map(canonical);
        let said = said.filter(|it| it.port() != 0 && !it.ip().is_unspecified());
        if said.is_some() {
            self.unknown = None;
        }
        if self.said != said || !on {
            self.is_settled &= self.current == said;
            self.current = said;
        }
        self.said = said;
        self.on = on;
    }

    /// The address to send to.
    pub(crate) fn current(&self) -> Option<SocketAddr> {
        self.current
    }

    /// Whether a datagram from this address may be of the far end.
    pub(crate) fn admits(&self, from: SocketAddr) -> bool {
        match self.said {
            Some(said) => {
                let is_known = self.current == Some(from) || said == from;
                is_known || self.on && !self.is_settled
            }
            None => self.is_open && self.unknown.is_none_or(|unknown| unknown == from),
        }
    }

    /// Notes a valid packet. Returns whether it came from another address than before.
    pub(crate) fn accept(&mut self, from: SocketAddr) -> bool {
        if self.said.is_none() {
            self.unknown = Some(from);
            return false;
        }
        let moves = self.current != Some(from);
        self.current = Some(from);
        self.is_settled = true;
        moves
    }
}

/// Returns IPv4-mapped addresses as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    fn at(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }

    #[test]
    fn the_first_valid_packet_says_where_the_far_end_is() {
        let (said, seen, other) = (at("10.0.0.9:4000"), at("192.0.2.7:999"), at("192.0.2.8:1"));
        let mut latch = Latch::default();
        assert!(!latch.admits(seen), "nobody is known yet");
        latch.set(Some(said), true);
        assert_eq!(latch.current(), Some(said));
        assert!(latch.admits(seen) && latch.admits(other));
        assert!(latch.accept(seen) && !latch.accept(seen));
        assert_eq!(latch.current(), Some(seen));
        assert!(latch.admits(seen) && !latch.admits(other));
        // The same description again changes nothing.
        latch.set(Some(said), true);
        assert_eq!(latch.current(), Some(seen));
        assert!(!latch.admits(other));
    }

    #[test]
    fn the_address_in_the_description_wins_over_one_that_was_quicker() {
        let (said, attacker) = (at("192.0.2.7:4000"), at("192.0.2.66:1"));
        let mut latch = Latch::default();
        latch.set(Some(said), true);
        assert!(latch.accept(attacker));
        assert!(latch.admits(said));
        assert!(latch.accept(said));
        assert!(!latch.admits(attacker));
        assert_eq!(latch.current(), Some(said));
    }

    #[test]
    fn another_description_counts_and_hold_stops_all() {
        let (one, two, seen) = (at("10.0.0.9:4000"), at("10.0.0.9:4002"), at("192.0.2.7:9"));
        let mut latch = Latch::default();
        latch.set(Some(one), true);
        latch.accept(seen);
        latch.set(Some(two), true);
        assert_eq!(latch.current(), Some(two));
        assert!(latch.admits(seen), "it may be found out again");
        for held in [None, Some(at("0.0.0.0:4002")), Some(at("10.0.0.9:0"))] {
            latch.set(held, true);
            assert_eq!(latch.current(), None);
            assert!(!latch.admits(seen) && !latch.admits(two));
        }
        latch.set(Some(one), false);
        assert!(latch.admits(one) && !latch.admits(seen));
        let mapped = at("[::ffff:10.0.0.9]:4000");
        latch.set(Some(mapped), false);
        assert!(latch.admits(one));
    }

    #[test]
    fn where_nothing_is_said_the_first_one_is_heard_if_that_is_wanted() {
        let (one, other, said) = (at("192.0.2.7:4000"), at("192.0.2.66:1"), at("192.0.2.8:2"));
        let mut latch = Latch::new(true);
        latch.set(None, false);
        assert!(latch.admits(one) && latch.admits(other));
        assert!(!latch.accept(one));
        assert!(latch.admits(one) && !latch.admits(other));
        assert_eq!(latch.current(), None);
        latch.set(Some(said), false);
        assert!(latch.admits(said) && !latch.admits(one));
        assert_eq!(latch.current(), Some(said));
    }

    #[test]
    fn latching_ends_when_it_is_switched_off() {
        let (said, seen) = (at("192.0.2.7:4000"), at("192.0.2.66:1"));
        let mut latch = Latch::default();
        latch.set(Some(said), true);
        latch.accept(seen);
        latch.set(Some(said), false);
        assert_eq!(latch.current(), Some(said));
        assert!(!latch.admits(seen) && latch.admits(said));
    }
}
