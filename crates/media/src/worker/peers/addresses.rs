//! Who a datagram is from: by the user fragment in a check, by the check that it answers, by the address that it came from.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::{
    Carrier, Path, Protocol, SelectedPair, Transaction, stun_answer, stun_username,
};

use super::checks::Checks;
use super::{Peer, Peers};

/// Addresses by which a peer is found.
const MAX_ADDRESSES: usize = 32;
/// User fragments by which a peer is found: the present one, and those of the last restarts.
const MAX_UFRAGS: usize = 4;

/// Who has sent a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Whose {
    /// The peer in this slot.
    Peer(usize),
    /// A peer of another worker.
    Worker(u16),
    /// Nobody who is known.
    Nobody,
}

/// What leads to peers, by their slots.
#[derive(Default)]
pub(super) struct Addresses {
    pub(super) by_address: HashMap<SocketAddr, usize>,
    by_ufrag: HashMap<String, usize>,
    checks: Checks,
}

impl Addresses {
    /// A peer is found by one more user fragment, and no longer by the oldest of too many.
    pub(super) fn add_ufrag(&mut self, peer: &mut Peer, slot: usize, ufrag: String) {
        if peer.ufrags.len() >= MAX_UFRAGS {
            self.by_ufrag.remove(&peer.ufrags.remove(0));
        }
        peer.ufrags.push(ufrag.clone());
        self.by_ufrag.insert(ufrag, slot);
    }

    /// Nothing leads to a peer that is gone.
    pub(super) fn forget(&mut self, peer: &Peer, slot: usize) {
        for ufrag in &peer.ufrags {
            if self.by_ufrag.get(ufrag) == Some(&slot) {
                self.by_ufrag.remove(ufrag);
            }
        }
        for address in &peer.addresses {
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
    /// Who has sent a datagram.
    pub(in crate::worker) fn sender(&self, remote: SocketAddr, datagram: &[u8]) -> Whose {
        // What it says is more than an address: a NAT may give one to two peers in turn.
        let named = match Protocol::of(datagram) {
            Some(Protocol::Stun) => self.named_by_stun(remote, datagram),
            _ => None,
        };
        let known = || self.by_address(remote).map(Whose::Peer);
        let elsewhere = || self.claimant(remote).map(Whose::Worker);
        named
            .or_else(known)
            .or_else(elsewhere)
            .unwrap_or(Whose::Nobody)
    }

    /// The peer that is known by an address.
    #[inline]
    pub(in crate::worker) fn by_address(&self, remote: SocketAddr) -> Option<usize> {
        self.addresses.by_address.get(&remote).copied()
    }

    /// The peer whose user fragment this is.
    pub(in crate::worker) fn by_ufrag(&self, ufrag: &str) -> Option<usize> {
        self.addresses.by_ufrag.get(ufrag).copied()
    }

    /// The peer whose user fragment a check has, or whose own check is answered.
    fn named_by_stun(&self, remote: SocketAddr, datagram: &[u8]) -> Option<Whose> {
        if let Some(ufrag) = stun_username(datagram) {
            let here = self.by_ufrag(ufrag).map(Whose::Peer);
            return here.or_else(|| self.other_worker(ufrag).map(Whose::Worker));
        }
        let checks = &self.addresses.checks;
        let peer = checks.peer(stun_answer(datagram)?, remote)?;
        self.slot(peer).map(Whose::Peer)
    }

    /// A peer's check leaves. What comes from where the peer is known finds it by the address.
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

    /// Checks that are no longer answered are forgotten, and so are claims of other workers that were not renewed.
    pub(in crate::worker) fn expire_checks(&mut self, now: Instant) {
        self.addresses.checks.expire(now);
        self.elsewhere.expire(now);
    }

    /// An authentic check came from an address that was another's when it came first: that one may be gone.
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

    /// A peer's datagrams may come from `address`. A check may come with a forged one: the address of a peer that is
    /// connected stays with it, until another has answered from there and it does not.
    pub(in crate::worker) fn learn_address(
        &mut self,
        now: Instant,
        slot: usize,
        address: SocketAddr,
    ) {
        let is_used = |pair: &SelectedPair| pair.carrier == Carrier::Udp && pair.remote == address;
        // A lite agent asks nobody, and takes a forged check's word.
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
                // Both can be there, on a server that is lite. Only one can be told from the other.
                uses && transport.is_answered(now)
            } else {
                uses || transport.is_connected()
            }
        });
        if is_taken || !self.take_from_elsewhere(now, slot, address) {
            return;
        }
        let Some(peer) = self.slots.get_mut(slot) else {
            return;
        };
        if !peer.addresses.contains(&address) {
            if peer.addresses.len() >= MAX_ADDRESSES {
                let selected = peer.connection.transport.selected_pair();
                let used = selected.map(|pair| pair.remote);
                let oldest = peer.addresses.iter().position(|at| Some(*at) != used);
                let oldest = peer.addresses.remove(oldest.unwrap_or_default());
                self.addresses.forget_address(&oldest, slot);
            }
            peer.addresses.push(address);
        }
        self.addresses.by_address.insert(address, slot);
    }
}
