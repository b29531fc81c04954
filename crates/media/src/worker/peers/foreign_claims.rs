//! Addresses that other workers have claimed, if all workers share a port.
//!
//! A claim rests on an authentic check, whose source may be forged by the owner of any peer. So a
//! claim gives way to a more certain one, and a peer keeps an address that it uses as long as it
//! answers: see [`Peers::learn_address`] for the same between peers of one worker.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::Peers;
use super::claims::{Claim, Hold};
use crate::user_fragment::worker_of;

/// The maximum number of addresses. Those claimed by mere checks have half of them.
const MOST: usize = 1 << 16;
/// A claim that was not renewed for this time expires.
const EXPIRY: Duration = Duration::from_secs(60);
/// How often claims are checked for expiry.
const SWEEP: Duration = Duration::from_secs(10);
/// A peer that has not answered for this time may lose its address to one that does.
const DOUBT: Duration = Duration::from_secs(10);
/// The maximum number of failed claims that are remembered, and for how long.
const MOST_CONTENDERS: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Claimed {
    worker: u16,
    hold: Hold,
    renewed: Instant,
}

impl Claimed {
    /// Whether the address stays, although `by` is how certain another claim is.
    fn resists(&self, by: Hold, now: Instant) -> bool {
        let silent = now.saturating_duration_since(self.renewed);
        match by {
            Hold::Answered => self.hold == Hold::Answered && silent < DOUBT,
            Hold::Checked | Hold::Connected => self.hold > Hold::Checked && silent < EXPIRY,
        }
    }
}

/// A worker that claimed an address in vain.
#[derive(Debug, Clone, Copy)]
struct Contender {
    address: SocketAddr,
    worker: u16,
    at: Instant,
}

/// The claims of other workers.
#[derive(Debug, Default)]
pub(super) struct ForeignClaims {
    claimed: HashMap<SocketAddr, Claimed>,
    /// The number of claims by mere checks.
    checked: usize,
    contenders: Vec<Contender>,
    sweep_at: Option<Instant>,
}

impl ForeignClaims {
    fn remove(&mut self, address: SocketAddr) {
        if let Some(claimed) = self.claimed.remove(&address) {
            self.checked -= usize::from(claimed.hold == Hold::Checked);
        }
    }

    /// Adds a claim that nothing stands against, if there is room.
    fn insert(&mut self, now: Instant, claim: &Claim, hold: Hold) {
        self.remove(claim.address);
        let is_full = self.claimed.len() >= MOST;
        if is_full || hold == Hold::Checked && self.checked >= MOST / 2 {
            return;
        }
        self.checked += usize::from(hold == Hold::Checked);
        let claimed = Claimed {
            worker: claim.worker,
            hold,
            renewed: now,
        };
        self.claimed.insert(claim.address, claimed);
        self.sweep_at.get_or_insert(now + SWEEP);
    }

    fn contend(&mut self, now: Instant, claim: &Claim) {
        self.contenders.retain(|it| {
            it.address != claim.address && now.saturating_duration_since(it.at) < EXPIRY
        });
        if self.contenders.len() >= MOST_CONTENDERS {
            self.contenders.remove(0);
        }
        self.contenders.push(Contender {
            address: claim.address,
            worker: claim.worker,
            at: now,
        });
    }

    /// Removes expired claims, if it is time to check.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.sweep_at.is_none_or(|at| now < at) {
            return;
        }
        let is_alive = |_: &SocketAddr, claimed: &mut Claimed| {
            now.saturating_duration_since(claimed.renewed) < EXPIRY
        };
        self.claimed.retain(is_alive);
        let checked = self.claimed.values().filter(|it| it.hold == Hold::Checked);
        self.checked = checked.count();
        self.contenders
            .retain(|it| now.saturating_duration_since(it.at) < EXPIRY);
        self.sweep_at = (!self.claimed.is_empty()).then(|| now + SWEEP);
    }
}

impl Peers {
    /// Returns the worker that has claimed an address.
    pub(in crate::worker) fn claimant(&self, address: SocketAddr) -> Option<u16> {
        let claimed = &self.foreign_claims.claimed;
        if claimed.is_empty() {
            return None;
        }
        Some(claimed.get(&address)?.worker)
    }

    /// Returns the worker that has lately claimed an address in vain.
    pub(in crate::worker) fn contender(&self, now: Instant, address: SocketAddr) -> Option<u16> {
        let mut contenders = self.foreign_claims.contenders.iter();
        let found = contenders.find(|it| it.address == address)?;
        let is_recent = now.saturating_duration_since(found.at) < DOUBT;
        is_recent.then_some(found.worker)
    }

    /// Returns the other worker that a user fragment names.
    pub(in crate::worker) fn other_worker(&self, ufrag: &str) -> Option<u16> {
        let setup = &self.setup;
        let worker = worker_of(ufrag).filter(|worker| *worker < setup.sharing)?;
        (worker != setup.index).then_some(worker)
    }

    /// Takes a claim of another worker.
    pub(in crate::worker) fn take_claim(&mut self, now: Instant, claim: &Claim) {
        let address = claim.address;
        let before = self.foreign_claims.claimed.get(&address).copied();
        let is_its_own = before.is_some_and(|before| before.worker == claim.worker);
        let Some(hold) = claim.hold else {
            if is_its_own {
                self.foreign_claims.remove(address);
            }
            let contenders = &mut self.foreign_claims.contenders;
            contenders.retain(|it| it.address != address || it.worker != claim.worker);
            return;
        };
        let here = self.by_address(address);
        let here = here.map(|slot| Claimed {
            worker: self.setup.index,
            hold: self.hold(slot, address, now),
            renewed: now,
        });
        let others = before.filter(|_| !is_its_own);
        let mut in_the_way = here.into_iter().chain(others);
        if in_the_way.any(|claimed| claimed.resists(hold, now)) {
            return self.foreign_claims.contend(now, claim);
        }
        self.addresses.by_address.remove(&address);
        self.foreign_claims.insert(now, claim, hold);
    }

    /// Takes an address for a peer of this worker. Returns false if it stays with another worker.
    pub(super) fn take_from_other_worker(
        &mut self,
        now: Instant,
        slot: usize,
        address: SocketAddr,
    ) -> bool {
        if self.foreign_claims.claimed.is_empty() {
            return true;
        }
        let Some(claimed) = self.foreign_claims.claimed.get(&address) else {
            return true;
        };
        let is_free = !claimed.resists(self.hold(slot, address, now), now);
        if is_free {
            self.foreign_claims.remove(address);
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(n: u32) -> SocketAddr {
        let [_, a, b, c] = n.to_be_bytes();
        SocketAddr::from(([10, a, b, c], 7))
    }

    fn claim(worker: u16, n: u32) -> Claim {
        Claim {
            worker,
            address: address(n),
            hold: None,
        }
    }

    #[test]
    fn the_surer_claim_wins_and_of_two_sure_ones_that_which_is_alive() {
        use Hold::{Answered, Checked, Connected};
        let now = Instant::now();
        let old = |hold| Claimed {
            worker: 1,
            hold,
            renewed: now,
        };
        for (there, by, after, resists) in [
            (Checked, Checked, 0, false),
            (Checked, Connected, 0, false),
            (Checked, Answered, 0, false),
            // A forged check takes nothing from who is connected.
            (Connected, Checked, 0, true),
            (Answered, Checked, 0, true),
            (Answered, Connected, 30, true),
            // A check that was forged by who is connected elsewhere keeps nobody out who answers.
            (Connected, Answered, 0, false),
            (Answered, Answered, 9, true),
            (Answered, Answered, 10, false),
            (Answered, Checked, 60, false),
        ] {
            let resisted = old(there).resists(by, now + after * SECOND);
            assert_eq!(resisted, resists, "{there:?} {by:?} {after}");
        }
    }

    #[test]
    fn claims_are_bounded_and_those_of_mere_checks_leave_room_for_others() {
        let now = Instant::now();
        let mut elsewhere = ForeignClaims::default();
        for n in 0..MOST as u32 {
            elsewhere.insert(now, &claim(1, n), Hold::Checked);
        }
        assert_eq!(elsewhere.claimed.len(), MOST / 2);
        for n in 0..2 * MOST as u32 {
            elsewhere.insert(now, &claim(1, 1_000_000 + n), Hold::Answered);
        }
        assert_eq!(elsewhere.claimed.len(), MOST);
        // A claim that becomes surer makes room among those of checks.
        elsewhere.insert(now, &claim(1, 0), Hold::Connected);
        assert_eq!(elsewhere.checked, MOST / 2 - 1);
        for n in 0..1_000 {
            elsewhere.contend(now, &claim(1, n));
        }
        assert_eq!(elsewhere.contenders.len(), MOST_CONTENDERS);
    }

    #[test]
    fn what_is_not_renewed_expires() {
        let now = Instant::now();
        let mut elsewhere = ForeignClaims::default();
        for n in 0..3 {
            elsewhere.insert(now, &claim(1, n), Hold::Checked);
        }
        elsewhere.insert(now + EXPIRY / 2, &claim(1, 2), Hold::Answered);
        elsewhere.expire(now + EXPIRY - SECOND);
        assert_eq!((elsewhere.claimed.len(), elsewhere.checked), (3, 2));
        elsewhere.expire(now + EXPIRY + SWEEP);
        assert_eq!((elsewhere.claimed.len(), elsewhere.checked), (1, 0));
        elsewhere.expire(now + 2 * EXPIRY);
        assert_eq!((elsewhere.claimed.len(), elsewhere.sweep_at), (0, None));
    }
}
