//! The worker's allocation at a TURN server: a relayed address that all its peers may use.
//!
//! Messages of TURN have a UDP socket of their own, because workers may share the port of media and
//! a server has one allocation for a port. The first datagram to a peer, a check of ICE, requests a
//! channel to it.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use portunus_rtc::LocalCandidate;
use portunus_turn_client::{CHANNEL_HEAD, Channel, Client, Envelope, Event, Received};

use super::Network;
use crate::candidates::Candidates;
use crate::sys::{self, MediaSocket, ReceiveBatch, SendBatch};
use crate::turn::{RelayedTotals, TurnServer, TurnState, TurnStatus};

/// The poll's token for the socket.
const SOCKET: Token = Token(3);

/// The connection to the server.
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

    /// Queues a datagram of two parts.
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

/// A datagram of a peer inside a datagram of the server.
pub(in crate::worker) struct Relayed {
    /// The relayed address to which the peer has sent it.
    pub(in crate::worker) by: SocketAddr,
    pub(in crate::worker) peer: SocketAddr,
    /// Its place in the datagram of the server.
    pub(in crate::worker) range: Range<usize>,
}

/// The allocation, if there is one.
pub(in crate::worker) struct Allocation {
    wire: Option<Wire>,
    client: Option<Client>,
    /// The number of the last client.
    number: u16,
    relayed: Option<SocketAddr>,
    offered: Arc<Candidates>,
    status: Arc<TurnStatus>,
    counted: RelayedTotals,
}

impl Allocation {
    pub(in crate::worker) fn new(offered: Arc<Candidates>, status: Arc<TurnStatus>) -> Self {
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

    /// Whether peers may know a relayed address.
    pub(in crate::worker) fn was_on(&self) -> bool {
        self.number > 0
    }

    /// When something is due.
    pub(in crate::worker) fn timeout(&self) -> Option<Instant> {
        self.client.as_ref().and_then(Client::poll_timeout)
    }

    /// Publishes the counts.
    pub(in crate::worker) fn publish(&mut self) {
        if self.was_on() {
            let channels = self.client.as_ref().map_or(0, Client::channels);
            self.counted.channels = channels as u64;
            self.status.publish(&self.counted);
        }
    }

    /// Returns the channel to a peer, and requests it if it is new.
    pub(in crate::worker) fn channel(
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

    /// The address of the server.
    pub(in crate::worker) fn server(&self) -> Option<SocketAddr> {
        Some(self.wire.as_ref()?.server)
    }

    /// Reads messages of the server. Returns their number.
    pub(in crate::worker) fn read(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        self.wire
            .as_ref()
            .map_or(Ok(0), |wire| batch.receive(&wire.socket))
    }

    /// Counts a datagram that is not of the server.
    pub(in crate::worker) fn count_refused(&mut self) {
        self.counted.refused_datagrams += 1;
    }

    /// The candidates of new peers.
    pub(in crate::worker) fn candidates(&self) -> Vec<LocalCandidate> {
        self.offered.candidates()
    }

    /// Reports that there is no allocation any more.
    pub(in crate::worker) fn report_release(&self) {
        self.status.release();
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

    /// Takes a datagram of the server. Returns the datagram of a peer in it, if there is one.
    pub(in crate::worker) fn receive(&mut self, now: Instant, datagram: &[u8]) -> Option<Relayed> {
        let received = self.client.as_mut()?.receive(now, datagram);
        match (received, self.relayed) {
            (Received::Peer(peer, range), Some(relayed)) => {
                self.counted.received_datagrams += 1;
                Some(Relayed {
                    by: relayed,
                    peer,
                    range,
                })
            }
            (Received::Consumed, _) => None,
            (Received::Refused | Received::Peer(..), _) => {
                self.counted.refused_datagrams += 1;
                None
            }
        }
    }

    /// Takes the client's events. Returns whether candidates have changed.
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
            // Set last: whoever waits for it finds the candidates.
            self.status.set(state);
        }
        changed
    }
}

impl Network {
    /// Allocates an address at a server.
    pub(in crate::worker) fn begin_turn(
        &mut self,
        server: TurnServer,
        registry: &Registry,
        now: Instant,
    ) {
        self.turn.begin(server, registry, now);
    }

    /// Frees the allocation, if there is one. Returns whether candidates have changed.
    pub(in crate::worker) fn release_turn(&mut self) -> bool {
        if let Some(client) = &mut self.turn.client {
            client.close();
        }
        self.transmit_turn();
        self.flush_turn();
        let turn = &mut self.turn;
        (turn.client, turn.wire) = (None, None);
        let was_offered = turn.relayed.take().is_some();
        if was_offered {
            turn.offered.set_relayed(None);
        }
        was_offered
    }

    /// Does what is due for the allocation. Returns whether candidates have changed.
    pub(in crate::worker) fn run_turn(&mut self, now: Instant) -> bool {
        let Some(client) = &mut self.turn.client else {
            return false;
        };
        client.handle_timeout(now);
        self.transmit_turn();
        self.turn.take_events()
    }

    /// Sends the client's messages to the server.
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

    /// Sends the first `len` bytes of the room to a peer through the server.
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
                // The request for the channel must come first: it permits relaying to the peer.
                self.transmit_turn();
                self.send_to_server(&message);
                self.turn.counted.sent_datagrams += 1;
            }
            None => turn.counted.dropped_datagrams += 1,
        }
    }

    /// Sends the queued datagrams to the server.
    pub(super) fn flush_turn(&mut self) {
        if let Some(wire) = &mut self.turn.wire {
            wire.out.flush(&wire.socket);
        }
    }
}
