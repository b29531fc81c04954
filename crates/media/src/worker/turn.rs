//! How a worker uses its allocation at a TURN server.
//!
//! What a peer sends to the relayed address comes from the server. It is taken as if it had come
//! from the peer to that address.

use std::time::Instant;

use super::Worker;
use super::budget::DATAGRAMS_PER_TURN;
use crate::sys::ReceiveBatch;
use crate::turn::TurnServer;

impl Worker {
    /// Allocates an address at a server, in place of the present one. `None` only frees the present
    /// one.
    pub(super) fn set_turn_server(&mut self, server: Option<TurnServer>, now: Instant) {
        self.release_turn();
        if let Some(server) = server {
            let registry = self.poller.registry();
            self.network.begin_turn(server, registry, now);
        }
    }

    /// Frees the allocation, if there is one.
    pub(super) fn release_turn(&mut self) {
        if self.network.release_turn() {
            self.offer();
        }
        self.network.turn.report_release();
    }

    /// Takes what has come from the TURN server. Returns whether there may be more.
    pub(super) fn receive_relayed(&mut self, batch: &mut ReceiveBatch) -> bool {
        let mut taken = 0;
        while taken < DATAGRAMS_PER_TURN {
            let Some(server) = self.network.turn.server() else {
                return false;
            };
            let received = match self.network.turn.read(batch) {
                Ok(received) => received,
                Err(error) => {
                    tracing::debug!(%error, "cannot read the socket of TURN");
                    return false;
                }
            };
            let now = Instant::now();
            for message in batch.iter(received) {
                taken += message.data.len().div_ceil(message.stride).max(1);
                if message.remote != server {
                    self.network.turn.count_refused();
                    continue;
                }
                for datagram in message.data.chunks_mut(message.stride) {
                    self.take_relayed(now, datagram);
                }
            }
            if !batch.was_full(received) {
                return false;
            }
        }
        true
    }

    fn take_relayed(&mut self, now: Instant, datagram: &mut [u8]) {
        if let Some(relayed) = self.network.turn.receive(now, datagram)
            && let Some(datagram) = datagram.get_mut(relayed.range)
        {
            self.take_datagram(now, relayed.by, relayed.peer, datagram);
        }
    }

    /// Does what is due for the allocation.
    pub(crate) fn run_turn(&mut self, now: Instant) {
        if self.network.run_turn(now) {
            self.offer();
        }
    }

    /// Gives new peers the present candidates.
    pub(super) fn offer(&mut self) {
        let candidates = self.network.turn.candidates();
        self.peers.set_candidates(candidates);
    }
}
