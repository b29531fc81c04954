//! Datagrams that come to the socket of a worker that is not their peer's, where all workers share a port.
//!
//! The kernel chooses the socket by the addresses of a datagram, and knows no peers. So a worker hands datagrams to the worker of
//! their peer: checks by the user fragment, all else by the address, once that worker has claimed it ([`Claim`]). They are collected
//! in blocks, which leave when all that was there has been read. What a worker sends leaves by its own socket, which has the port, too.

mod block;
mod links;
#[cfg(all(test, feature = "testing"))]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use portunus_rtc::{Path, stun_answer};
use smallvec::SmallVec;

use super::Worker;
use super::datagrams::{DATAGRAMS_PER_TURN, is_stun};
use super::handshakes;
use super::others::OtherWorkers;
use super::peers::{Claim, Whose};
use block::Block;
pub(crate) use links::Links;

/// Checks and answers from addresses that nobody has claimed, which a turn hands over at most: anybody can send them.
const STRANGERS_PER_TURN: usize = 1_024;
/// Bytes of the longest of them: more than a check has.
const LONGEST_OF_STRANGER: usize = 2_048;

/// A worker's part in the handing over.
#[derive(Debug)]
pub(super) struct Handover {
    /// None where each worker has a port of its own.
    links: Option<Links>,
    /// Handed over in this turn for strangers.
    strangers: usize,
    /// Datagrams that were handed over since the start, and those that were to be and found no room.
    handed: u64,
    dropped: u64,
}

impl Handover {
    pub(super) fn new(links: Option<Links>) -> Self {
        Self {
            links,
            strangers: 0,
            handed: 0,
            dropped: 0,
        }
    }

    /// Whether workers share a port.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.links.is_some()
    }

    /// How many workers share the port.
    pub(super) fn workers(&self) -> u16 {
        let count = self.links.as_ref().map_or(0, |links| links.others.len());
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    /// Datagrams that were handed over, and those that were dropped instead, since the start.
    pub(super) fn counted(&self) -> (u64, u64) {
        (self.handed, self.dropped)
    }

    /// Puts a datagram into the block for `worker`.
    fn push(&mut self, worker: u16, (local, remote): (IpAddr, SocketAddr), datagram: &[u8]) {
        let others = self.links.as_mut().map(|links| &mut links.others);
        let Some(Some(link)) = others.and_then(|it| it.get_mut(usize::from(worker))) else {
            return;
        };
        link.filling.push(local, remote, datagram);
        if link.filling.is_full() {
            let next = link.emptied.pop().unwrap_or_default();
            let full = std::mem::replace(&mut link.filling, next);
            let count = full.len() as u64;
            match link.to.push(full) {
                Ok(()) => self.handed += count,
                Err(_) => self.dropped += count,
            }
        }
    }

    /// Says whether a turn hands over one more datagram of a stranger, and counts it.
    fn admit_stranger(&mut self, datagram: &[u8]) -> bool {
        let is_admitted =
            self.strangers < STRANGERS_PER_TURN && datagram.len() <= LONGEST_OF_STRANGER;
        self.strangers += usize::from(is_admitted);
        is_admitted
    }

    /// All that was there has been read: the blocks leave. Their workers have a turn.
    pub(super) fn send(&mut self, others: &OtherWorkers) {
        let Some(links) = &mut self.links else { return };
        self.strangers = 0;
        for (worker, link) in (0..).zip(&mut links.others) {
            let Some(link) = link else { continue };
            let count = link.filling.len() as u64;
            if count > 0 {
                let next = link.emptied.pop().unwrap_or_default();
                let block = std::mem::replace(&mut link.filling, next);
                match link.to.push(block) {
                    Ok(()) => self.handed += count,
                    Err(_) => self.dropped += count,
                }
                others.need(worker);
            }
        }
    }

    /// How many blocks each of the others has sent so far.
    pub(super) fn count_blocks(&self) -> SmallVec<[usize; 8]> {
        let others = self.links.iter().flat_map(|links| &links.others);
        others
            .map(|link| link.as_ref().map_or(0, |link| link.from.slots()))
            .collect()
    }

    fn take_block(&mut self, from: u16) -> Option<Block> {
        let others = &mut self.links.as_mut()?.others;
        others.get_mut(usize::from(from))?.as_mut()?.from.pop().ok()
    }

    /// Gives a block back to the worker that filled it.
    fn give_back(&mut self, from: u16, mut block: Block) {
        block.clear();
        let others = self.links.as_mut().map(|links| &mut links.others);
        if let Some(Some(link)) = others.and_then(|it| it.get_mut(usize::from(from))) {
            // If there is no room for it, its memory goes back.
            let _ = link.back.push(block);
        }
    }

    /// Tells `worker` of a claim. It is not woken: it looks for claims when it needs one.
    pub(super) fn tell(&self, worker: u16, claim: Claim) {
        let others = self.links.as_ref().map(|links| &links.others);
        if let Some(Some(link)) = others.and_then(|it| it.get(usize::from(worker))) {
            link.claims.push(claim);
        }
    }

    fn next_claim(&self) -> Option<Claim> {
        self.links.as_ref()?.claims.pop()
    }
}

impl Worker {
    /// Hands a datagram to the worker that has claimed its address.
    #[inline]
    pub(super) fn hand_to(
        &mut self,
        worker: u16,
        (local, remote): (SocketAddr, SocketAddr),
        datagram: &[u8],
    ) {
        self.handover.push(worker, (local.ip(), remote), datagram);
    }

    /// Hands a check or an answer to the worker that it is for, or a datagram that came from an unknown address.
    pub(super) fn hand_over(
        &mut self,
        now: Instant,
        path: (SocketAddr, SocketAddr),
        datagram: &mut [u8],
    ) {
        let (local, remote) = path;
        let mut whose = self.peers.sender(remote, datagram);
        // The claim may have come a moment ago.
        if whose == Whose::Nobody && self.take_claims(now) {
            whose = self.peers.sender(remote, datagram);
        }
        let ends = (local.ip(), remote);
        match whose {
            Whose::Peer(slot) => self.take_of(now, slot, Path::udp(local, remote), datagram),
            Whose::Worker(worker) => {
                let is_claimed = self.peers.claimant(remote) == Some(worker);
                if is_claimed || self.handover.admit_stranger(datagram) {
                    self.handover.push(worker, ends, datagram);
                } else {
                    self.counters.unknown_peer();
                }
            }
            // A peer whose ICE is lite is found by its answers to checks, and these are known to the worker that sent them.
            Whose::Nobody
                if stun_answer(datagram).is_some() && self.handover.admit_stranger(datagram) =>
            {
                for worker in 0..self.handover.workers() {
                    self.handover.push(worker, ends, datagram);
                }
            }
            Whose::Nobody => self.counters.unknown_peer(),
        }
    }

    /// Copies an answer to a check for the worker that has claimed the address, too, and in vain: its peer may be there.
    pub(super) fn copy_for_contender(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
        datagram: &[u8],
    ) {
        if stun_answer(datagram).is_some()
            && let Some(worker) = self.peers.contender(now, remote)
            && self.handover.admit_stranger(datagram)
        {
            self.handover.push(worker, (local.ip(), remote), datagram);
        }
    }

    /// Takes the datagrams that other workers handed over, up to `counts` blocks of each; says whether some are left.
    pub(crate) fn take_handed_over(&mut self, counts: &[usize]) -> bool {
        self.take_blocks(counts, Instant::now)
    }

    fn take_blocks(&mut self, counts: &[usize], now: impl Fn() -> Instant) -> bool {
        let port = self.network.local().port();
        let mut taken = 0;
        for (from, count) in (0..).zip(counts) {
            for _ in 0..*count {
                if taken >= DATAGRAMS_PER_TURN {
                    return true;
                }
                let Some(mut block) = self.handover.take_block(from) else {
                    break;
                };
                taken += block.len();
                let now = now();
                for (local, remote, datagram) in block.datagrams() {
                    let local = SocketAddr::new(local, port);
                    self.take_handed(now, from, (local, remote), datagram);
                }
                self.handover.give_back(from, block);
            }
        }
        false
    }

    /// Takes a datagram that came by the socket of the worker `by`.
    fn take_handed(
        &mut self,
        now: Instant,
        by: u16,
        (local, remote): (SocketAddr, SocketAddr),
        datagram: &mut [u8],
    ) {
        let Whose::Peer(slot) = self.peers.sender(remote, datagram) else {
            return self.counters.unknown_peer();
        };
        let path = Path::udp(local, remote);
        if handshakes::is_handshake(datagram) {
            return self.take_handshake(now, slot, path, datagram);
        }
        if self.give_datagram(now, slot, path, datagram) {
            let is_check = is_stun(datagram);
            for (worker, claim) in self.peers.claim(now, slot, (remote, by), is_check) {
                self.handover.tell(worker, claim);
            }
        }
    }

    /// Takes what other workers claim; says whether there was something.
    pub(super) fn take_claims(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(claim) = self.handover.next_claim() {
            self.peers.take_claim(now, &claim);
            any = true;
        }
        any
    }
}
