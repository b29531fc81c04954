//! The worker's allocation at a TURN server: a relayed address that all its peers are told of, beside those of the worker.
//!
//! Messages of TURN have a UDP socket of their own: workers may share the port of media, and a server has one allocation for a
//! port. What a peer sends to the relayed address comes from the server, and is taken as if it had come from the peer to that
//! address. The server is asked for a channel to a peer when the first datagram leaves for it, which is a check of ICE.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use portunus_turn_client::{CHANNEL_HEAD, Channel, Client, Envelope, Event, Received};

use super::Worker;
use super::datagrams::DATAGRAMS_PER_TURN;
use super::network::Network;
use crate::offered::Offered;
use crate::sys::{self, MediaSocket, ReceiveBatch, SendBatch};
use crate::turn::{RelayedTotals, TurnServer, TurnState, TurnStatus};

/// The poll's token for the socket.
const SOCKET: Token = Token(3);

/// The way to the server.
struct Wire {
    server: SocketAddr,
    socket: MediaSocket,
    out: SendBatch,
}

impl Wire {
    fn new(server: SocketAddr, socket: MediaSocket, registry: &Registry) -> io::Result<Self> {
        sys::enable_gro(&socket);
        let out = sys::forward_batch(socket.probe_gso());
        let fd = socket.raw_fd();
        registry.register(&mut SourceFd(&fd), SOCKET, Interest::READABLE)?;
        Ok(Wire {
            server,
            socket,
            out,
        })
    }

    /// Sends a datagram of two parts at the end of the turn.
    fn send(&mut self, head: &[u8], data: &[u8]) {
        let len = head.len().saturating_add(data.len());
        let room = self.out.room(&self.socket).get_mut(..len);
        let Some((first, rest)) = room.and_then(|room| room.split_at_mut_checked(head.len()))
        else {
            return;
        };
        first.copy_from_slice(head);
        rest.copy_from_slice(data);
        let from = self.socket.local().ip();
        let destination = self.out.destination(from, self.server);
        self.out.commit(len, &destination);
    }
}

/// The allocation, if there is one, and where it is.
pub(super) struct Allocation {
    wire: Option<Wire>,
    client: Option<Client>,
    /// The number of the last client.
    number: u16,
    relayed: Option<SocketAddr>,
    offered: Arc<Offered>,
    status: Arc<TurnStatus>,
    counted: RelayedTotals,
}

impl Allocation {
    pub(super) fn new(offered: Arc<Offered>, status: Arc<TurnStatus>) -> Self {
        Allocation {
            wire: None,
            client: None,
            number: 0,
            relayed: None,
            offered,
            status,
            counted: RelayedTotals::default(),
        }
    }

    /// Whether peers may have been told of a relayed address.
    pub(super) fn was_on(&self) -> bool {
        self.number > 0
    }

    /// When there is something to do though nothing comes.
    pub(super) fn timeout(&self) -> Option<Instant> {
        self.client.as_ref().and_then(Client::poll_timeout)
    }

    /// Lets others read what was counted.
    pub(super) fn publish(&mut self) {
        if self.was_on() {
            let channels = self.client.as_ref().map_or(0, Client::channels);
            self.counted.channels = channels as u64;
            self.status.publish(&self.counted);
        }
    }

    /// The channel to a peer, which is asked for if it is new.
    pub(super) fn channel(
        &mut self,
        local: SocketAddr,
        peer: SocketAddr,
        now: Instant,
    ) -> Option<Channel> {
        let client = self.client.as_mut().filter(|_| self.relayed == Some(local));
        let channel = client.and_then(|client| client.open(peer, now));
        if channel.is_none() {
            self.counted.dropped_datagrams += 1;
        }
        channel
    }

    fn begin(&mut self, server: TurnServer, registry: &Registry, now: Instant) {
        match Wire::new(server.address, server.socket, registry) {
            Ok(wire) => self.wire = Some(wire),
            Err(error) => {
                let why = format!("cannot listen to a socket of TURN: {error}");
                return self.status.set(TurnState::Unavailable(why));
            }
        }
        self.number = self.number.checked_add(1).unwrap_or(1);
        self.client = Some(Client::new(self.number, server.login, now));
        self.status.set(TurnState::Allocating);
    }

    /// Takes a datagram of the server. Returns the relayed address, the peer, and where the peer's datagram is in it.
    fn receive(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Option<(SocketAddr, SocketAddr, Range<usize>)> {
        let received = self.client.as_mut()?.receive(now, datagram);
        match (received, self.relayed) {
            (Received::Peer(peer, range), Some(relayed)) => {
                self.counted.received_datagrams += 1;
                Some((relayed, peer, range))
            }
            (Received::Consumed, _) => None,
            (Received::Refused | Received::Peer(..), _) => {
                self.counted.refused_datagrams += 1;
                None
            }
        }
    }

    /// Takes what has happened. Returns whether new peers have other candidates from now on.
    fn take_events(&mut self) -> bool {
        let mut changed = false;
        while let Some(event) = self.client.as_mut().and_then(Client::poll_event) {
            let state = match event {
                Event::Allocated(relayed) => {
                    self.relayed = Some(relayed);
                    TurnState::Allocated(relayed)
                }
                Event::Failed(fault) => {
                    self.relayed = None;
                    TurnState::Failed(fault)
                }
            };
            self.offered.set_relayed(self.relayed);
            changed = true;
            // Whoever waits for that finds the candidates.
            self.status.set(state);
        }
        changed
    }
}

impl Network {
    /// Sends what the client of TURN has for its server.
    fn transmit_turn(&mut self) {
        while let Some(message) = self.turn.client.as_mut().and_then(Client::poll_transmit) {
            self.send_to_server(&message);
        }
    }

    fn send_to_server(&mut self, message: &[u8]) {
        if let Some(wire) = &mut self.turn.wire {
            wire.send(&[], message);
        }
    }

    /// Sends the first `len` bytes of the room to a peer, by the server.
    #[inline(never)]
    pub(super) fn relay(&mut self, len: usize, channel: Channel) {
        let turn = &mut self.turn;
        let envelope = turn.client.as_mut().and_then(|it| it.envelope(channel));
        match envelope {
            Some(Envelope::ChannelData(number)) => {
                let [n0, n1] = number.to_be_bytes();
                let [l0, l1] = u16::try_from(len).unwrap_or_default().to_be_bytes();
                let head: [u8; CHANNEL_HEAD] = [n0, n1, l0, l1];
                let room = self.out.room(&self.socket);
                if let (Some(wire), Some(data)) = (&mut turn.wire, room.get(..len)) {
                    wire.send(&head, data);
                }
                turn.counted.sent_datagrams += 1;
            }
            Some(Envelope::Indication(peer)) => {
                let data = self.room().get(..len).unwrap_or_default();
                let message = Client::indication(peer, data);
                // The request for the channel goes before it: it lets the server relay to the peer.
                self.transmit_turn();
                self.send_to_server(&message);
                self.turn.counted.sent_datagrams += 1;
            }
            None => turn.counted.dropped_datagrams += 1,
        }
    }

    /// Sends what has gathered for the server.
    pub(super) fn flush_turn(&mut self) {
        if let Some(wire) = &mut self.turn.wire {
            wire.out.flush(&wire.socket);
        }
    }
}

impl Worker {
    /// Allocates an address at a server, or gives back the one that there is.
    pub(super) fn set_turn_server(&mut self, server: Option<TurnServer>, now: Instant) {
        self.release_turn();
        if let Some(server) = server {
            let registry = self.poller.registry();
            self.network.turn.begin(server, registry, now);
        }
    }

    /// Gives the allocation back, if there is one.
    pub(super) fn release_turn(&mut self) {
        if let Some(client) = &mut self.network.turn.client {
            client.close();
        }
        self.network.transmit_turn();
        self.network.flush_turn();
        let turn = &mut self.network.turn;
        (turn.client, turn.wire) = (None, None);
        if turn.relayed.take().is_some() {
            turn.offered.set_relayed(None);
            self.offer();
        }
        self.network.turn.status.release();
    }

    /// Takes what has come from the TURN server; says whether there may be more.
    pub(super) fn receive_relayed(&mut self, batch: &mut ReceiveBatch) -> bool {
        let mut taken = 0;
        while taken < DATAGRAMS_PER_TURN {
            let Some(wire) = &self.network.turn.wire else {
                return false;
            };
            let server = wire.server;
            let received = match batch.receive(&wire.socket) {
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
                    self.network.turn.counted.refused_datagrams += 1;
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
        if let Some((relayed, peer, range)) = self.network.turn.receive(now, datagram)
            && let Some(datagram) = datagram.get_mut(range)
        {
            self.take_datagram(now, relayed, peer, datagram);
        }
    }

    /// Does what the allocation needs.
    pub(crate) fn run_turn(&mut self, now: Instant) {
        if let Some(client) = &mut self.network.turn.client {
            client.handle_timeout(now);
            self.network.transmit_turn();
            if self.network.turn.take_events() {
                self.offer();
            }
        }
    }

    /// Has new peers told of the candidates that there are now.
    pub(super) fn offer(&mut self) {
        let candidates = self.network.turn.offered.candidates();
        self.peers.set_candidates(candidates);
    }
}
