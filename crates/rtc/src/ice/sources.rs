//! The addresses from which a peer has been heard.

use std::time::{Duration, Instant};

use crate::path::TransportAddress;

/// The most addresses kept.
pub(super) const MOST: usize = 64;
/// The silence after which an address may be replaced.
pub(super) const FORGETTABLE: Duration = Duration::from_secs(300);
/// The most addresses recorded between two restarts: the agent keeps some hundred bytes of each.
const MOST_EVER: usize = 2_048;

#[derive(Debug, Clone, Copy)]
struct Source {
    address: TransportAddress,
    heard: Instant,
    /// Whether the connection to it has closed.
    is_lost: bool,
}

/// The addresses from which authentic messages arrived.
#[derive(Debug, Default)]
pub(super) struct Sources {
    known: Vec<Source>,
    ever: usize,
}

impl Sources {
    pub(super) fn contains(&self, address: TransportAddress) -> bool {
        let mut known = self.known.iter();
        known.any(|source| source.address == address && !source.is_lost)
    }

    /// Returns whether the connection to `address` has closed.
    pub(super) fn is_lost(&self, address: TransportAddress) -> bool {
        let mut known = self.known.iter();
        known.any(|source| source.address == address && source.is_lost)
    }

    /// Returns whether `address` is known or can be recorded. Addresses for which `kept` is true
    /// are never replaced.
    pub(super) fn has_room_for(
        &self,
        now: Instant,
        address: TransportAddress,
        kept: impl Fn(TransportAddress) -> bool,
    ) -> bool {
        self.contains(address)
            || self.is_lost(address)
            || self.ever < MOST_EVER
                && (self.known.len() < MOST || self.forgettable(now, kept).is_some())
    }

    /// Records an authentic message from `address`, for which there is room.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        address: TransportAddress,
        kept: impl Fn(TransportAddress) -> bool,
    ) {
        let heard = Source {
            address,
            heard: now,
            is_lost: false,
        };
        let mut known = self.known.iter_mut();
        if let Some(source) = known.find(|source| source.address == address) {
            *source = heard;
            return;
        }
        if self.known.len() >= MOST
            && let Some(at) = self.forgettable(now, kept)
        {
            self.known.swap_remove(at);
        }
        self.ever += 1;
        self.known.push(heard);
    }

    /// Returns the addresses heard from less than `time` ago.
    pub(super) fn heard_within(
        &self,
        time: Duration,
        now: Instant,
    ) -> impl Iterator<Item = TransportAddress> {
        let recent = move |source: &&Source| {
            !source.is_lost && now.saturating_duration_since(source.heard) < time
        };
        self.known
            .iter()
            .filter(recent)
            .map(|source| source.address)
    }

    /// Marks the connection to `address` as closed. Another connection may reuse it. It is the
    /// first to be replaced.
    pub(super) fn lose(&mut self, address: TransportAddress) {
        let mut known = self.known.iter_mut();
        if let Some(source) = known.find(|source| source.address == address) {
            source.is_lost = true;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns a closed address, or the one that has been silent longest if that is long enough.
    fn forgettable(&self, now: Instant, kept: impl Fn(TransportAddress) -> bool) -> Option<usize> {
        let silent = |source: &Source| now.saturating_duration_since(source.heard);
        let lost = self.known.iter().position(|source| source.is_lost);
        if lost.is_some() {
            return lost;
        }
        let sources = self.known.iter().enumerate();
        let (at, _) = sources
            .filter(|(_, source)| silent(source) >= FORGETTABLE && !kept(source.address))
            .max_by_key(|(_, source)| silent(source))?;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Carrier;

    fn address(n: u16) -> TransportAddress {
        TransportAddress {
            carrier: Carrier::Udp,
            address: ([10, 0, 0, 2], n).into(),
        }
    }

    #[test]
    fn the_one_that_was_silent_longest_is_forgotten() {
        let start = Instant::now();
        let mut sources = Sources::default();
        let kept = |at: TransportAddress| at.address.port() < 2;
        for n in 0..MOST as u16 {
            let now = start + Duration::from_secs(n.into());
            assert!(sources.has_room_for(now, address(n), kept));
            sources.hear(now, address(n), kept);
        }
        let now = start + FORGETTABLE + Duration::from_secs(1);
        assert!(
            !sources.has_room_for(now, address(1_000), kept),
            "0 and 1 are kept"
        );
        assert!(sources.has_room_for(now, address(5), kept), "it is known");
        let now = start + FORGETTABLE + Duration::from_secs(3);
        assert!(sources.has_room_for(now, address(1_000), kept));
        sources.hear(now, address(1_000), kept);
        assert!(sources.contains(address(1_000)) && !sources.contains(address(2)));
        assert!(sources.contains(address(0)) && sources.contains(address(3)));
        assert_eq!(sources.known.len(), MOST);
    }

    #[test]
    fn where_a_connection_led_is_known_until_others_need_its_place() {
        let now = Instant::now();
        let mut sources = Sources::default();
        for n in 0..MOST as u16 {
            sources.hear(now, address(n), |_| false);
        }
        assert!(!sources.has_room_for(now, address(1_000), |_| false));
        sources.lose(address(7));
        assert!(sources.is_lost(address(7)) && !sources.contains(address(7)));
        assert!(sources.has_room_for(now, address(7), |_| false));
        sources.hear(now, address(7), |_| false);
        assert!(sources.contains(address(7)) && !sources.is_lost(address(7)));
        sources.lose(address(8));
        let heard = sources.heard_within(FORGETTABLE, now);
        assert_eq!(heard.filter(|at| *at == address(8)).count(), 0);
        sources.hear(now, address(1_000), |_| false);
        assert!(!sources.is_lost(address(8)) && sources.contains(address(1_000)));
        assert_eq!(sources.known.len(), MOST);
    }

    #[test]
    fn the_number_ever_noted_is_bounded() {
        let mut now = Instant::now();
        let mut sources = Sources::default();
        for n in 0..5_000 {
            now += FORGETTABLE;
            if sources.has_room_for(now, address(n), |_| false) {
                sources.hear(now, address(n), |_| false);
            }
        }
        assert_eq!(sources.ever, MOST_EVER);
        sources.clear();
        assert!(sources.has_room_for(now, address(1), |_| false));
    }
}
