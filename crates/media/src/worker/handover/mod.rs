//! Hands datagrams to the worker of their peer, if all workers share a port.
//!
//! The kernel chooses the socket by the addresses of a datagram, and knows no peers. So a worker
//! hands over checks by the user fragment, and other datagrams by the address, once their worker
//! has claimed it ([`Claim`]). Datagrams are collected in blocks, which leave after reading. What a
//! worker sends leaves by its own socket, which has the port, too.

mod block;
mod links;
#[cfg(all(test, feature = "testing"))]
mod tests;

use std::net::{IpAddr, SocketAddr};

use smallvec::SmallVec;

use super::other_workers::OtherWorkers;
use super::peers::Claim;
use block::Block;
pub(crate) use links::Links;

/// The maximum number of checks and answers per turn from addresses that nobody has claimed, as
/// anybody can send them.
const STRANGERS_PER_TURN: usize = 1_024;
/// The maximum length of such a datagram: more than that of a check.
const LONGEST_OF_STRANGER: usize = 2_048;

/// A worker's part in the handover.
#[derive(Debug)]
pub(super) struct Handover {
    /// `None` if each worker has a port of its own.
    links: Option<Links>,
    /// Datagrams of strangers in this turn.
    strangers: usize,
    /// Datagrams handed over since the start, and those for which there was no room.
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

    /// The number of workers that share the port.
    pub(super) fn workers(&self) -> u16 {
        let count = self.links.as_ref().map_or(0, |links| links.others.len());
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    /// The number of datagrams handed over and of those dropped, since the start.
    pub(super) fn counted(&self) -> (u64, u64) {
        (self.handed, self.dropped)
    }

    /// Adds a datagram to the block for `worker`.
    pub(super) fn push(
        &mut self,
        worker: u16,
        (local, remote): (IpAddr, SocketAddr),
        datagram: &[u8],
    ) {
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

    /// Counts a datagram of a stranger. Returns whether it may be handed over.
    pub(super) fn admit_stranger(&mut self, datagram: &[u8]) -> bool {
        let is_admitted =
            self.strangers < STRANGERS_PER_TURN && datagram.len() <= LONGEST_OF_STRANGER;
        self.strangers += usize::from(is_admitted);
        is_admitted
    }

    /// Sends the blocks after reading. Their workers have a turn.
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

    /// The number of blocks that each other worker has sent.
    pub(super) fn count_blocks(&self) -> SmallVec<[usize; 8]> {
        let others = self.links.iter().flat_map(|links| &links.others);
        others
            .map(|link| link.as_ref().map_or(0, |link| link.from.slots()))
            .collect()
    }

    pub(super) fn take_block(&mut self, from: u16) -> Option<Block> {
        let others = &mut self.links.as_mut()?.others;
        others.get_mut(usize::from(from))?.as_mut()?.from.pop().ok()
    }

    /// Returns a block to the worker that filled it.
    pub(super) fn give_back(&mut self, from: u16, mut block: Block) {
        block.clear();
        let others = self.links.as_mut().map(|links| &mut links.others);
        if let Some(Some(link)) = others.and_then(|it| it.get_mut(usize::from(from))) {
            // It is freed if there is no room for it.
            let _ = link.back.push(block);
        }
    }

    /// Sends a claim to `worker`, without waking it: it looks for claims when it needs one.
    pub(super) fn send_claim(&self, worker: u16, claim: Claim) {
        let others = self.links.as_ref().map(|links| &links.others);
        if let Some(Some(link)) = others.and_then(|it| it.get(usize::from(worker))) {
            link.claims.push(claim);
        }
    }

    pub(super) fn next_claim(&self) -> Option<Claim> {
        self.links.as_ref()?.claims.pop()
    }
}
