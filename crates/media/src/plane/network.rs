//! How peers reach the workers: sockets, candidates, addresses at TURN servers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use portunus_graph::PeerId;
use tokio::sync::watch;

use super::MediaPlane;
use crate::candidates::PublicAddress;
use crate::command::{Command, NetworkCommand};
use crate::turn::{TurnServer, TurnState};

impl MediaPlane {
    /// The addresses of the workers' UDP sockets.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        self.shared.workers.iter().map(|worker| worker.local)
    }

    /// The UDP addresses of all workers, as announced and as bound, the most preferred of each
    /// worker first. Shared addresses are listed once.
    pub fn addresses(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        let most = match self.shared.one_port {
            true => 1,
            false => self.workers(),
        };
        let workers = self.shared.workers.iter().take(most);
        workers.flat_map(|worker| worker.candidates.udp_addresses())
    }

    /// The addresses where workers accept TCP connections, in the order of workers. Empty without
    /// ICE-TCP. Workers that share a port have one listener.
    pub fn listeners(&self) -> impl Iterator<Item = SocketAddr> {
        let workers = self.shared.workers.iter();
        workers.filter_map(|worker| worker.listening)
    }

    /// The address for `o=` and `c=` lines.
    pub fn address(&self) -> IpAddr {
        self.shared.address
    }

    /// The candidates of a peer as SDP lines without `a=`: `candidate:1 1 udp …`.
    pub fn candidates(&self, peer: PeerId) -> Arc<[String]> {
        let port = self.shared.workers.get(usize::from(peer.worker));
        port.map(|port| port.candidates.lines()).unwrap_or_default()
    }

    /// Sets the public addresses of a NAT for new peers. Addresses that the configuration announces
    /// are not replaced.
    pub fn set_public(&self, found: &[PublicAddress]) {
        for worker in &self.shared.workers {
            worker.candidates.set_public(found);
            worker
                .inbox
                .send(Command::Network(NetworkCommand::UpdateCandidates));
        }
    }

    /// The public addresses that were set last.
    pub fn public_ips(&self) -> Vec<IpAddr> {
        let first = self.shared.workers.first();
        first
            .map(|worker| worker.candidates.public_ips())
            .unwrap_or_default()
    }

    /// Makes a worker allocate an address at a TURN server, in place of its present one, or only
    /// free that. New peers get it as a candidate. [`MediaPlane::turn_states`] tells the outcome.
    pub fn set_turn_server(&self, worker: usize, server: Option<TurnServer>) {
        if let Some(worker) = self.shared.workers.get(worker) {
            worker
                .inbox
                .send(Command::Network(NetworkCommand::SetTurnServer(
                    server.map(Box::new),
                )));
        }
    }

    /// Sets why a worker has no allocation, for [`MediaPlane::turn_states`], until it gets a server
    /// again.
    pub fn set_turn_unavailable(&self, worker: usize, why: String) {
        if let Some(worker) = self.shared.workers.get(worker) {
            worker.turn.set(TurnState::Unavailable(why));
        }
    }

    /// Counts a datagram that the stream to a worker's TURN server dropped.
    pub fn turn_datagram_dropped(&self, worker: usize) {
        if let Some(worker) = self.shared.workers.get(worker) {
            worker.turn.dropped_by_stream();
        }
    }

    /// The states of the allocations at TURN servers, in the order of workers.
    pub fn turn_states(&self) -> Vec<TurnState> {
        let workers = self.shared.workers.iter();
        workers.map(|worker| worker.turn.state()).collect()
    }

    /// Returns the state of one worker's allocation and its changes, or `None` if there is no such
    /// worker.
    pub fn watch_turn(&self, worker: usize) -> Option<watch::Receiver<TurnState>> {
        let worker = self.shared.workers.get(worker)?;
        Some(worker.turn.watch())
    }
}
