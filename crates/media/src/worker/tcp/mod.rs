//! ICE-TCP (RFC 6544), the passive side: for peers behind firewalls that block UDP.
//!
//! A connection belongs to nobody until a peer of the worker accepts its first frame, a
//! connectivity check. Then it is one of that peer's addresses. The path of UDP does not use this
//! module.

mod pipe;
mod pipes;
#[cfg(all(test, feature = "testing"))]
mod tests;
mod transfer;

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use portunus_rtc::framing::Deframer;
use portunus_rtc::{Carrier, Path, SelectedPair, stun_username};

use super::Worker;
use super::guard::guarded;
use super::handshakes;
use super::network::Link;
use super::peers::Peer;
use crate::CloseReason;

pub(super) use pipe::PipeKey;
use pipe::{LONGEST, Pipe};
pub(super) use pipes::Pipes;
pub(crate) use pipes::most_pipes;
use pipes::{Closed, Refused};

/// The maximum number of connections accepted per turn.
const ACCEPTS_PER_TURN: usize = 64;
/// The number of bytes read per call.
const READ_BYTES: usize = 16 << 10;
/// The maximum number of calls per turn, for one connection and for all.
const READS_PER_PIPE: usize = 4;
const READS_PER_TURN: usize = 128;
/// The number of datagrams after which no call follows, for one connection and for all: short
/// datagrams may be much work.
const FRAMES_PER_PIPE: u64 = 1_024;
const FRAMES_PER_TURN: u64 = 8_192;
/// The pause of accepting after the system refused to, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of connections of a peer: for each pair of networks, and those that it left
/// without closing. The one that was silent for the longest time is closed for a new one.
const MOST_OF_PEER: usize = 16;

/// What remains to be done with a connection.
enum After {
    /// Nothing, as all was read.
    Drained,
    /// There may be more to read.
    More,
    /// Nothing, as it is closed.
    Closed,
}

impl Worker {
    /// Accepts connections, and takes what they bring. Returns whether there may be more.
    pub(super) fn receive_pipes(&mut self, now: Instant) -> bool {
        if !self.network.pipes.are_on() {
            return false;
        }
        while let Some(overdue) = self.network.pipes.overdue(now) {
            self.refuse_pipe(overdue, Refused::Silent);
        }
        for silent in self.network.pipes.silent(now) {
            self.end_pipe(silent, Closed::Silent, now);
        }
        if self.network.pipes.accept_again.is_some_and(|at| at <= now) {
            self.network.pipes.accept_again = None;
            self.network.pipes.accepts = true;
        }
        if self.network.pipes.accepts {
            self.accept(now);
        }
        let mut scratch = mem::take(&mut self.network.pipes.scratch);
        if !self.network.pipes.ready.is_empty() && scratch.is_empty() {
            scratch = vec![0; READ_BYTES];
        }
        let mut reads = 0;
        let most = self.network.pipes.counted.received_frames + FRAMES_PER_TURN;
        for _ in 0..self.network.pipes.ready.len() {
            if reads >= READS_PER_TURN || self.network.pipes.counted.received_frames >= most {
                break;
            }
            let Some(key) = self.network.pipes.next_ready() else {
                break;
            };
            if self.drain_pipe(key, &mut scratch, &mut reads, now) {
                // After those that have not had their turn.
                self.network.pipes.mark_ready(key);
            }
        }
        self.network.pipes.scratch = scratch;
        self.network.pipes.accepts || !self.network.pipes.ready.is_empty()
    }

    /// Reads a connection. Returns whether there may be more.
    fn drain_pipe(
        &mut self,
        key: PipeKey,
        scratch: &mut [u8],
        reads: &mut usize,
        now: Instant,
    ) -> bool {
        let most = self.network.pipes.counted.received_frames + FRAMES_PER_PIPE;
        for _ in 0..READS_PER_PIPE {
            *reads += 1;
            match self.read_pipe(key, scratch, now) {
                After::Drained | After::Closed => return false,
                After::More if self.network.pipes.counted.received_frames >= most => break,
                After::More => {}
            }
        }
        true
    }

    /// Accepts the connections that wait.
    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = &self.network.pipes.listener else {
                break;
            };
            match listener.accept() {
                Ok((stream, remote)) => {
                    self.network.pipes.counted.accepted += 1;
                    self.take_connection(stream, remote, now);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => {
                        self.network.pipes.accepts = false;
                        return;
                    }
                    // The client has gone while it waited (accept(2)).
                    Some(libc::ECONNABORTED | libc::EINTR) => {}
                    _ => {
                        tracing::warn!(worker = self.others.index(), %error, "cannot accept a TCP connection");
                        self.network.pipes.refused(Refused::System);
                        self.network.pipes.accepts = false;
                        self.network.pipes.accept_again = Some(now + ACCEPT_PAUSE);
                        return;
                    }
                },
            }
        }
    }

    fn take_connection(&mut self, stream: TcpStream, remote: SocketAddr, now: Instant) {
        self.add_pipe(Pipe::new(stream, remote, now), remote);
    }

    /// Adds a connection of a stranger. Returns its key if it is still there.
    fn add_pipe(&mut self, pipe: io::Result<Pipe>, remote: SocketAddr) -> Option<PipeKey> {
        let registry = self.poller.registry();
        match pipe.and_then(|pipe| self.network.pipes.add(pipe, registry)) {
            Ok((key, None)) => Some(key),
            Ok((key, Some((displaced, why)))) => {
                self.refuse_pipe(displaced, why);
                (displaced != key).then_some(key)
            }
            Err(error) => {
                tracing::debug!(worker = self.others.index(), %remote, %error, "cannot use a TCP connection");
                self.network.pipes.refused(Refused::System);
                None
            }
        }
    }

    /// Reads once, and takes complete frames.
    fn read_pipe(&mut self, key: PipeKey, scratch: &mut [u8], now: Instant) -> After {
        let Some(pipe) = self.network.pipes.get_mut(key) else {
            return After::Closed;
        };
        let read = match pipe.read(scratch) {
            Ok(0) => {
                self.end_pipe(key, Closed::Left, now);
                return After::Closed;
            }
            Ok(read) => read,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return After::Drained,
                io::ErrorKind::Interrupted => return After::More,
                _ => {
                    self.end_pipe(key, Closed::Broken, now);
                    return After::Closed;
                }
            },
        };
        self.take_bytes(key, scratch.get_mut(..read).unwrap_or_default(), now)
    }

    /// Takes the frames that these bytes of a connection complete.
    fn take_bytes(&mut self, key: PipeKey, mut input: &mut [u8], now: Instant) -> After {
        let Some(pipe) = self.network.pipes.get_mut(key) else {
            return After::Closed;
        };
        let (path, was_known) = (pipe.path, pipe.owner.is_some());
        let mut deframer = mem::replace(&mut pipe.deframer, Deframer::new(0));
        let mut whole = Vec::new();
        let is_sound = loop {
            match deframer.next(&mut input, &mut whole) {
                Ok(None) => break true,
                Ok(Some(frame)) => {
                    if !was_known
                        && self.network.pipes.is_stranger(key)
                        && let Some(worker) = self.other_worker_of(frame)
                    {
                        self.pass_pipe(key, worker, (frame, input));
                        return After::Closed;
                    }
                    self.network.pipes.counted.received_frames += 1;
                    self.network.pipes.counted.received_bytes += frame.len() as u64;
                    if !self.take_frame(key, path, frame, now) {
                        return After::Closed;
                    }
                    // From its first frame on, the peer is known, and a longer frame may follow
                    // immediately.
                    if !was_known {
                        deframer.set_most(LONGEST);
                    }
                }
                Err(_) => break false,
            }
        };
        if !is_sound {
            // Frames can be too long only before the peer is known.
            self.refuse_pipe(key, Refused::NotACheck);
            return After::Closed;
        }
        if let Some(pipe) = self.network.pipes.get_mut(key) {
            pipe.deframer = deframer;
        }
        After::More
    }

    /// Takes one datagram of a connection. Returns whether the connection is still open.
    fn take_frame(&mut self, key: PipeKey, path: Path, frame: &mut [u8], now: Instant) -> bool {
        let Some(pipe) = self.network.pipes.get_mut(key) else {
            return false;
        };
        let Some(owner) = pipe.owner else {
            return self.take_first_frame(key, path, frame, now);
        };
        pipe.heard = now;
        match self.peers.slot(owner) {
            Some(slot) if handshakes::is_handshake(frame) => {
                self.take_handshake(now, slot, path, frame);
            }
            Some(slot) => {
                self.give_datagram(now, slot, path, frame);
            }
            None => {}
        }
        self.network.pipes.get(key).is_some()
    }

    /// Finds the peer of a connection by its first frame.
    fn take_first_frame(
        &mut self,
        key: PipeKey,
        path: Path,
        frame: &mut [u8],
        now: Instant,
    ) -> bool {
        let Some(ufrag) = stun_username(frame) else {
            self.refuse_pipe(key, Refused::NotACheck);
            return false;
        };
        let Some(slot) = self.peers.by_ufrag(ufrag) else {
            self.refuse_pipe(key, Refused::UnknownPeer);
            return false;
        };
        let is_taken = self.give_datagram(now, slot, path, frame);
        let Some(peer) = self.peers.get(slot).filter(|_| is_taken) else {
            self.refuse_pipe(key, Refused::WrongCheck);
            return false;
        };
        let id = peer.id;
        if peer.endpoints.pipes().len() >= MOST_OF_PEER
            && let Some(oldest) = self.least_heard(peer)
        {
            self.end_pipe(oldest, Closed::Displaced, now);
        }
        self.network.pipes.forget_stranger(key);
        if let Some(pipe) = self.network.pipes.get_mut(key) {
            pipe.owner = Some(id);
            pipe.heard = now;
        }
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.endpoints.add_pipe(key);
        }
        let worker = self.others.index();
        tracing::debug!(worker, remote = %path.remote, local = %path.local, "a peer connected by TCP");
        true
    }

    /// Returns the connection of a peer that was silent for the longest time and is not in use.
    fn least_heard(&self, peer: &Peer) -> Option<PipeKey> {
        let others = peer.endpoints.pipes().iter().copied();
        let others = others.filter(|key| Some(*key) != peer.link.pipe);
        others.min_by_key(|key| self.network.pipes.get(*key).map(|pipe| pipe.heard))
    }

    /// Closes a connection that belongs to nobody.
    fn refuse_pipe(&mut self, key: PipeKey, why: Refused) {
        let registry = self.poller.registry();
        if self.network.pipes.close(key, registry).is_some() {
            self.network.pipes.refused(why);
        }
    }

    /// Closes a connection. A peer's pairs on it fail immediately.
    fn end_pipe(&mut self, key: PipeKey, how: Closed, now: Instant) {
        let Some(pipe) = self.network.pipes.close(key, self.poller.registry()) else {
            return;
        };
        let Some(owner) = pipe.owner else {
            self.network.pipes.refused(Refused::Left);
            return;
        };
        self.network.pipes.closed(how);
        let (worker, remote) = (self.others.index(), pipe.path.remote);
        tracing::debug!(worker, %remote, ?how, "a TCP connection of a peer has ended");
        let Some(slot) = self.peers.slot(owner) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        peer.endpoints.remove_pipe(key);
        let link = &mut peer.link;
        link.pipe = link.pipe.filter(|in_use| *in_use != key);
        let transport = &mut peer.connection.transport;
        if guarded(|| transport.connection_lost(pipe.path, now)).is_none() {
            return self.end_peer(slot, CloseReason::Internal, now);
        }
        self.peers.touch(slot);
    }

    /// Closes the connections of a peer that is gone.
    pub(super) fn close_pipes_of(&mut self, peer: &Peer) {
        for key in peer.endpoints.pipes() {
            if self
                .network
                .pipes
                .close(*key, self.poller.registry())
                .is_some()
            {
                self.network.pipes.closed(Closed::PeerEnded);
            }
        }
    }

    /// Writes what waits, as far as connections take it. Returns whether some broke, which their
    /// peers do not know yet.
    pub(super) fn flush_pipes(&mut self, now: Instant) -> bool {
        let mut broken = false;
        while let Some(key) = self.network.pipes.unflushed.pop() {
            let Some(pipe) = self.network.pipes.get_mut(key) else {
                continue;
            };
            pipe.is_unflushed = false;
            if pipe.flush().is_err() {
                self.end_pipe(key, Closed::Broken, now);
                broken = true;
            }
        }
        broken
    }

    /// Sets the pair that a peer uses.
    pub(super) fn select_way(&mut self, slot: usize, pair: &SelectedPair, now: Instant) {
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        let link = match pair.carrier {
            Carrier::Udp if pair.is_relayed => Link {
                channel: self.network.turn.channel(pair.local, pair.remote, now),
                pipe: None,
            },
            Carrier::Udp => Link::default(),
            Carrier::Tcp => Link {
                pipe: self.network.pipes.of(peer.endpoints.pipes(), pair.into()),
                channel: None,
            },
        };
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.link = link;
        }
    }
}
