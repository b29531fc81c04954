//! The addresses of a peer whose datagrams come to another worker's socket, where all workers share a port: that worker is told of them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtc::{Carrier, SelectedPair};
use smallvec::SmallVec;

use super::{Peer, Peers};

/// Addresses that are claimed for a peer at a time.
const MOST: usize = 32;
/// How often a claim is repeated at most, when checks come from the address.
const REPEATED: Duration = Duration::from_secs(1);
/// How often it is repeated, when anything comes from there.
const RENEWED: Duration = Duration::from_secs(5);

/// How sure it is that an address is a peer's. The later is the surer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::worker) enum Hold {
    /// An authentic check came from there. Its source may be forged.
    Checked,
    /// The peer is connected, or its pair in use leads there.
    Connected,
    /// The pair in use leads there, and the peer has answered a check lately.
    Answered,
}

/// A worker says whether an address is that of a peer of its.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Claim {
    /// The worker.
    pub(in crate::worker) worker: u16,
    /// The address.
    pub(in crate::worker) address: SocketAddr,
    /// How sure it is. `None` ends the claim.
    pub(in crate::worker) hold: Option<Hold>,
}

/// A claim as its peer remembers it.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Made {
    address: SocketAddr,
    /// The worker that was told.
    to: u16,
    hold: Hold,
    at: Instant,
}

impl Peers {
    /// How sure it is that `address` is that of the peer in a slot.
    pub(super) fn hold(&self, slot: usize, address: SocketAddr, now: Instant) -> Hold {
        let Some(peer) = self.get(slot) else {
            return Hold::Checked;
        };
        let is_used = |pair: &SelectedPair| pair.carrier == Carrier::Udp && pair.remote == address;
        let transport = &peer.connection.transport;
        match transport.selected_pair().is_some_and(is_used) {
            true if transport.is_answered(now) => Hold::Answered,
            true => Hold::Connected,
            false if transport.is_connected() => Hold::Connected,
            false => Hold::Checked,
        }
    }

    /// An authentic datagram of a peer has come from an address by the socket of the worker `to`. Returns what that worker has to be
    /// told. Only a check makes a claim: other datagrams are handed over because there is one, and renew it.
    pub(in crate::worker) fn claim(
        &mut self,
        now: Instant,
        slot: usize,
        (address, to): (SocketAddr, u16),
        is_check: bool,
    ) -> SmallVec<[(u16, Claim); 1]> {
        let mut told = SmallVec::new();
        let pause = match is_check {
            true => REPEATED,
            false => RENEWED,
        };
        let Some(peer) = self.get(slot) else {
            return told;
        };
        let is_it = |made: &Made| made.address == address && made.to == to;
        let made = peer.claims.iter().position(is_it);
        let last = made.and_then(|at| peer.claims.get(at)).copied();
        let is_recent = last.is_some_and(|made| now.saturating_duration_since(made.at) < pause);
        if !is_check && (last.is_none() || is_recent) {
            return told;
        }
        let hold = self.hold(slot, address, now);
        if is_recent && last.is_some_and(|made| made.hold == hold) {
            return told;
        }
        let worker = self.setup.index;
        let Some(peer) = self.slots.get_mut(slot) else {
            return told;
        };
        let claim = |address, hold| Claim {
            worker,
            address,
            hold,
        };
        // The one renewed last stands last.
        let mut claims = std::mem::take(&mut peer.claims).into_vec();
        match made {
            Some(at) => drop(claims.remove(at)),
            None if claims.len() >= MOST => {
                let oldest = claims.remove(0);
                told.push((oldest.to, claim(oldest.address, None)));
            }
            None => {}
        }
        claims.push(Made {
            address,
            to,
            hold,
            at: now,
        });
        peer.claims = claims.into_boxed_slice();
        told.push((to, claim(address, Some(hold))));
        told
    }

    /// Ends the claims for a peer that is gone, but for addresses that another one has here. Returns who is to be told what.
    pub(in crate::worker) fn end_claims(&self, peer: &Peer) -> Vec<(u16, Claim)> {
        let ended = peer.claims.iter();
        let ended = ended.filter(|made| self.by_address(made.address).is_none());
        let claim = |made: &Made| Claim {
            worker: self.setup.index,
            address: made.address,
            hold: None,
        };
        ended.map(|made| (made.to, claim(made))).collect()
    }
}
