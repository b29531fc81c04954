//! Claims: a worker tells others which addresses are those of its peers, if they share a port.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtc::{Carrier, SelectedPair};
use smallvec::SmallVec;

use super::{Peer, Peers};

/// The maximum number of addresses claimed for a peer.
const MOST: usize = 32;
/// The minimum time between two claims of one address by checks.
const REPEATED: Duration = Duration::from_secs(1);
/// The interval at which a claim is renewed by other datagrams.
const RENEWED: Duration = Duration::from_secs(5);

/// How certain it is that an address belongs to a peer, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::worker) enum Hold {
    /// An authentic check came from there. Its source may be forged.
    Checked,
    /// The peer is connected, or its selected pair leads there.
    Connected,
    /// The selected pair leads there, and the peer has answered a check lately.
    Answered,
}

/// A worker claims an address for a peer, or ends its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Claim {
    /// The worker.
    pub(in crate::worker) worker: u16,
    /// The address.
    pub(in crate::worker) address: SocketAddr,
    /// The certainty. `None` ends the claim.
    pub(in crate::worker) hold: Option<Hold>,
}

/// A claim as its peer remembers it.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct OwnClaim {
    address: SocketAddr,
    /// The worker that got it.
    to: u16,
    hold: Hold,
    at: Instant,
}

impl Peers {
    /// Returns how certain it is that `address` belongs to the peer in a slot.
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

    /// Claims the address of an authentic datagram that came by the socket of worker `to`. Only a
    /// check makes a claim; other datagrams renew it. Returns the claims to send.
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
        let is_it = |made: &OwnClaim| made.address == address && made.to == to;
        let made = peer.endpoints.claims().iter().position(is_it);
        let last = made.and_then(|at| peer.endpoints.claims().get(at)).copied();
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
        peer.endpoints.change_claims(|claims| {
            // The claim that was renewed last comes last.
            match made {
                Some(at) => drop(claims.remove(at)),
                None if claims.len() >= MOST => {
                    let oldest = claims.remove(0);
                    told.push((oldest.to, claim(oldest.address, None)));
                }
                None => {}
            }
            claims.push(OwnClaim {
                address,
                to,
                hold,
                at: now,
            });
        });
        told.push((to, claim(address, Some(hold))));
        told
    }

    /// Returns what ends the claims for a peer that is gone, except for addresses of other peers
    /// here.
    pub(in crate::worker) fn end_claims(&self, peer: &Peer) -> Vec<(u16, Claim)> {
        let ended = peer.endpoints.claims().iter();
        let ended = ended.filter(|made| self.by_address(made.address).is_none());
        let claim = |made: &OwnClaim| Claim {
            worker: self.setup.index,
            address: made.address,
            hold: None,
        };
        ended.map(|made| (made.to, claim(made))).collect()
    }
}
