//! Finds the peer of a datagram: by the user fragment of a check, by the check that it answers, or
//! by its address.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::{
    Carrier, Path, Protocol, SelectedPair, Transaction, stun_answer, stun_username,
};

use super::checks::Checks;
use super::{Peer, Peers};

/// The sender of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum DatagramOwner {
    /// The peer in this slot.
    Peer(usize),
    /// A peer of another worker.
    Worker(u16),
    /// Unknown.
    Unknown,
}

/// Maps of what leads to peers, by their slots.
#[derive(Default)]
pub(super) struct Addresses {
    pub(super) by_address: HashMap<SocketAddr, usize>,
    by_ufrag: HashMap<String, usize>,
    checks: Checks,
}

impl Addresses {
    /// Adds a user fragment of a peer, and removes its oldest one if there are too many.
    pub(super) fn add_ufrag(&mut self, peer: &mut Peer, slot: usize, ufrag: String) {
        if let Some(oldest) = peer.endpoints.add_ufrag(ufrag.clone()) {
            self.by_ufrag.remove(&oldest);
        }
        self.by_ufrag.insert(ufrag, slot);
    }

    /// Removes what leads to a peer that is gone.
    pub(super) fn forget(&mut self, peer: &Peer, slot: usize) {
        for ufrag in peer.endpoints.ufrags() {
            if self.by_ufrag.get(ufrag) == Some(&slot) {
                self.by_ufrag.remove(ufrag);
            }
        }
        for address in peer.endpoints.addresses() {
            self.forget_address(address, slot);
        }
    }

    fn forget_address(&mut self, address: &SocketAddr, slot: usize) {
        if self.by_address.get(address) == Some(&slot) {
            self.by_address.remove(address);
        }
    }

    #[cfg(all(test, feature = "testing"))]
    pub(super) fn known(&self) -> (usize, usize) {
        (self.by_address.len(), self.checks.len())
    }
}

impl Peers {
    /// Returns the sender of a datagram.
    pub(in crate::worker) fn sender(&self, remote: SocketAddr, datagram: &[u8]) -> DatagramOwner {
        // Its content counts more than its address, which a NAT may give to two peers in turn.
        let named = match Protocol::of(datagram) {
            Some(Protocol::Stun) => self.named_by_stun(remote, datagram),
            _ => None,
        };
        let known = || self.by_address(remote).map(DatagramOwner::Peer);
        let elsewhere = || self.claimant(remote).map(DatagramOwner::Worker);
        named
            .or_else(known)
            .or_else(elsewhere)
            .unwrap_or(DatagramOwner::Unknown)
    }

    /// Returns the peer at an address.
    #[inline]
    pub(in crate::worker) fn by_address(&self, remote: SocketAddr) -> Option<usize> {
        self.addresses.by_address.get(&remote).copied()
    }

    /// Returns the peer with this user fragment.
    pub(in crate::worker) fn by_ufrag(&self, ufrag: &str) -> Option<usize> {
        self.addresses.by_ufrag.get(ufrag).copied()
    }

    /// Returns the peer whose user fragment a check has, or whose own check is answered.
    fn named_by_stun(&self, remote: SocketAddr, datagram: &[u8]) -> Option<DatagramOwner> {
        if let Some(ufrag) = stun_username(datagram) {
            let here = self.by_ufrag(ufrag).map(DatagramOwner::Peer);
            return here.or_else(|| self.other_worker(ufrag).map(DatagramOwner::Worker));
        }
        let checks = &self.addresses.checks;
        let peer = checks.peer(stun_answer(datagram)?, remote)?;
        self.slot(peer).map(DatagramOwner::Peer)
    }

    /// Notes a check of a peer to an address at which it is not known yet.
    pub(in crate::worker) fn note_check(
        &mut self,
        now: Instant,
        slot: usize,
        check: Transaction,
        to: SocketAddr,
    ) {
        if self.by_address(to) != Some(slot)
            && let Some(peer) = self.slots.get(slot)
        {
            self.addresses.checks.note(now, check, peer.id, to);
        }
    }

    /// Forgets checks that can no longer be answered, and claims of other workers that have
    /// expired.
    pub(in crate::worker) fn expire_checks(&mut self, now: Instant) {
        self.addresses.checks.expire(now);
        self.foreign_claims.expire(now);
    }

    /// Learns the address of an authentic check again, if it belonged to another peer at first.
    pub(in crate::worker) fn learn_again(
        &mut self,
        now: Instant,
        slot: usize,
        path: Path,
        datagram: &[u8],
    ) {
        let is_stun = datagram.first().is_some_and(|first| *first < 4);
        let is_new = is_stun && self.by_address(path.remote) != Some(slot);
        if is_new && path.carrier == Carrier::Udp {
            self.learn_address(now, slot, path.remote);
        }
    }

    /// Learns an address of a peer. As the sources of checks can be forged, the address of a
    /// connected peer stays with it until another peer answers from there and it does not.
    pub(in crate::worker) fn learn_address(
        &mut self,
        now: Instant,
        slot: usize,
        address: SocketAddr,
    ) {
        let is_used = |pair: &SelectedPair| pair.carrier == Carrier::Udp && pair.remote == address;
        // An ICE-lite agent sends no checks, so it has to believe a forged one.
        let asks = !self.setup.ice_lite;
        let newcomer = self.slots.get(slot).map(|peer| &peer.connection.transport);
        let answered = newcomer.and_then(|new| new.selected_pair().filter(|_| asks));
        let is_sure = answered.is_some_and(is_used);
        let owner = self.by_address(address);
        let owner = owner.filter(|owner| *owner != slot);
        let owner = owner.and_then(|owner| self.slots.get(owner));
        let is_taken = owner.is_some_and(|owner| {
            let transport = &owner.connection.transport;
            let uses = transport.selected_pair().is_some_and(is_used);
            if is_sure {
                // Both may be there if the server is lite. Only one can be told from the other.
                uses && transport.is_answered(now)
            } else {
                uses || transport.is_connected()
            }
        });
        if is_taken || !self.take_from_other_worker(now, slot, address) {
            return;
        }
        let Some(peer) = self.slots.get_mut(slot) else {
            return;
        };
        let used = peer.connection.transport.selected_pair();
        let used = used.map(|pair| pair.remote);
        if let Some(oldest) = peer.endpoints.add_address(address, used) {
            self.addresses.forget_address(&oldest, slot);
        }
        self.addresses.by_address.insert(address, slot);
    }
}
