//! Hands datagrams over to the workers of their peers, and takes those of other workers.

use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::{Path, stun_answer};

use super::Worker;
use super::budget::DATAGRAMS_PER_TURN;
use super::handshakes;
use super::peers::DatagramOwner;

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

    /// Hands a check, an answer, or a datagram from an unknown address to the worker that it is
    /// for.
    pub(super) fn hand_over(
        &mut self,
        now: Instant,
        path: (SocketAddr, SocketAddr),
        datagram: &mut [u8],
    ) {
        let (local, remote) = path;
        let mut whose = self.peers.sender(remote, datagram);
        // The claim may have arrived a moment ago.
        if whose == DatagramOwner::Unknown && self.take_claims(now) {
            whose = self.peers.sender(remote, datagram);
        }
        let ends = (local.ip(), remote);
        match whose {
            DatagramOwner::Peer(slot) => {
                self.take_of(now, slot, Path::udp(local, remote), datagram)
            }
            DatagramOwner::Worker(worker) => {
                let is_claimed = self.peers.claimant(remote) == Some(worker);
                if is_claimed || self.handover.admit_stranger(datagram) {
                    self.handover.push(worker, ends, datagram);
                } else {
                    self.counters.unknown_peer();
                }
            }
            // A peer with ICE-lite is recognized by its answers to checks, which only the worker
            // that sent them knows.
            DatagramOwner::Unknown
                if stun_answer(datagram).is_some() && self.handover.admit_stranger(datagram) =>
            {
                for worker in 0..self.handover.workers() {
                    self.handover.push(worker, ends, datagram);
                }
            }
            DatagramOwner::Unknown => self.counters.unknown_peer(),
        }
    }

    /// Copies an answer to a check for a worker that has claimed the address in vain, as its peer
    /// may be there.
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

    /// Takes up to `counts` blocks of datagrams from each other worker. Returns whether some are
    /// left.
    pub(crate) fn take_handed_over(&mut self, counts: &[usize]) -> bool {
        self.take_blocks(counts, Instant::now)
    }

    pub(super) fn take_blocks(&mut self, counts: &[usize], now: impl Fn() -> Instant) -> bool {
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
                for handed in block.datagrams() {
                    let ends = (SocketAddr::new(handed.local, port), handed.remote);
                    self.take_handed(now, from, ends, handed.datagram);
                }
                self.handover.give_back(from, block);
            }
        }
        false
    }

    /// Takes a datagram that came by the socket of worker `by`.
    fn take_handed(
        &mut self,
        now: Instant,
        by: u16,
        (local, remote): (SocketAddr, SocketAddr),
        datagram: &mut [u8],
    ) {
        let DatagramOwner::Peer(slot) = self.peers.sender(remote, datagram) else {
            return self.counters.unknown_peer();
        };
        let path = Path::udp(local, remote);
        if handshakes::is_handshake(datagram) {
            return self.take_handshake(now, slot, path, datagram);
        }
        if self.give_datagram(now, slot, path, datagram) {
            let is_check = is_stun(datagram);
            for (worker, claim) in self.peers.claim(now, slot, (remote, by), is_check) {
                self.handover.send_claim(worker, claim);
            }
        }
    }

    /// Takes the claims of other workers. Returns whether there were any.
    pub(super) fn take_claims(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(claim) = self.handover.next_claim() {
            self.peers.take_claim(now, &claim);
            any = true;
        }
        any
    }
}

/// Whether a datagram is a message of STUN (RFC 7983 section 7).
#[inline]
pub(super) fn is_stun(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| *first < 4)
}
