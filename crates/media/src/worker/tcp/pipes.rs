//! All TCP connections of a worker.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mio::event::Event as Readiness;
use mio::net::TcpListener;
use mio::{Events, Registry, Token};
use portunus_rtc::Path;
use slab::Slab;

use super::pipe::{Pipe, PipeKey};
use crate::totals::TcpTotals;

/// The poll's token for the listener.
const LISTENER: Token = Token(2);
/// The first of the poll's tokens for connections. No worker has so many forwarders.
const FIRST_TOKEN: usize = 1 << 28;
/// The maximum number of connections that belong to nobody yet. The oldest is closed for a new one.
const STRANGERS: usize = 256;
/// The same for one network, so that it displaces only its own connections.
const STRANGERS_OF_NETWORK: usize = 64;
/// The number of bits of an IPv6 address that identify a network. Of IPv4, it is the whole address.
const NETWORK_BITS: u32 = 64;
/// The time without datagrams after which a peer's connection is closed. Consent ends earlier;
/// browsers check spare connections every 25 s.
const SILENCE: Duration = Duration::from_secs(60);
/// How often silence is checked.
const SWEEP: Duration = Duration::from_secs(5);
/// The maximum number of connections of a worker, if enough files can be opened ([`most_pipes`]).
/// Each may queue 288 KiB (of which the kernel has 32 KiB), which makes 4.5 GiB if nobody reads.
const MOST: usize = 16_384;
/// The share of the process's files for connections of all workers, as a divisor: sessions,
/// recordings and mountpoints need files, too.
const FILES_FOR_A_PIPE: u64 = 2;
/// The minimum time between two log entries.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// The time in which a connection has to send its first frame.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Why a connection was refused, in the order of [`TcpTotals::REFUSED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Its first frame is not a connectivity check.
    NotACheck,
    /// The check is for no peer of this worker.
    UnknownPeer,
    /// The peer refused the check.
    WrongCheck,
    /// It sent no check in time.
    Silent,
    /// It was closed before it sent a check.
    Left,
    /// Too many others were accepted before it sent a check.
    Displaced,
    /// The worker has its maximum number of connections.
    Full,
    /// The system failed to set it up.
    System,
}

/// How a connection of a peer ended, in the order of [`TcpTotals::CLOSED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// The peer closed it.
    Left,
    /// The system reported an error.
    Broken,
    /// It was silent for too long.
    Silent,
    /// The peer made too many others.
    Displaced,
    /// The peer has ended.
    PeerEnded,
}

/// Returns the maximum number of connections for each of `workers`, if the process may open `files`
/// files (`RLIMIT_NOFILE`, `None` for any number).
pub(crate) fn most_pipes(files: Option<u64>, workers: usize) -> usize {
    let share = |files: u64| {
        let of_all = usize::try_from(files / FILES_FOR_A_PIPE).unwrap_or(usize::MAX);
        of_all / workers.max(1)
    };
    files.map_or(MOST, |files| MOST.min(share(files)))
}

/// The connections of a worker, and what is to be done with them.
#[derive(Debug, Default)]
pub(in crate::worker) struct Pipes {
    slots: Slab<Pipe>,
    pub(super) listener: Option<TcpListener>,
    /// The maximum number. `None` without ICE-TCP.
    most: Option<usize>,
    /// A connection may wait to be accepted.
    pub(super) accepts: bool,
    /// When accepting is tried again after an error.
    pub(super) accept_again: Option<Instant>,
    /// Those that belong to nobody yet, the oldest first.
    strangers: Vec<PipeKey>,
    /// Those that may be readable, in the order of their turns.
    pub(super) ready: VecDeque<PipeKey>,
    /// Those that have frames to write.
    pub(super) unflushed: Vec<PipeKey>,
    /// The buffer for reading. Allocated with the first connection.
    pub(super) scratch: Vec<u8>,
    /// When silent connections are next looked for, if there are any connections.
    sweep_at: Option<Instant>,
    pub(super) counted: TcpTotals,
    logged: TcpTotals,
    last_log: Option<Instant>,
}

impl Pipes {
    /// Returns no connections, and room for up to `most`.
    pub(in crate::worker) fn new(listener: Option<TcpListener>, most: Option<usize>) -> Self {
        Self {
            listener,
            most,
            ..Self::default()
        }
    }

    /// Registers the listener with the poll.
    pub(in crate::worker) fn listen(&mut self, registry: &Registry) -> io::Result<()> {
        match &mut self.listener {
            Some(listener) => registry.register(listener, LISTENER, mio::Interest::READABLE),
            None => Ok(()),
        }
    }

    /// Whether connections are possible.
    pub(super) fn are_on(&self) -> bool {
        self.most.is_some()
    }

    /// The counts since the start. `None` without ICE-TCP.
    pub(in crate::worker) fn counted(&self) -> Option<TcpTotals> {
        self.most.map(|_| self.counted)
    }

    /// Logs new counts, if the last log entry is long enough ago.
    pub(in crate::worker) fn report(&mut self, worker: u16, now: Instant) {
        let recent = |last: Instant| now.saturating_duration_since(last) < LOG_INTERVAL;
        let (counted, logged) = (self.counted, self.logged);
        let is_new =
            (counted.refused, counted.dropped_frames) != (logged.refused, logged.dropped_frames);
        if !is_new || self.last_log.is_some_and(recent) {
            return;
        }
        let refused = counted.refused.iter().zip(logged.refused);
        for (kind, (total, logged)) in TcpTotals::REFUSED.iter().zip(refused) {
            let new = total.saturating_sub(logged);
            if new > 0 {
                tracing::debug!(worker, kind, new, total, "TCP connections refused");
            }
        }
        let full = Refused::Full as usize;
        if counted.refused.get(full) != logged.refused.get(full) {
            let most = self.most.unwrap_or_default();
            tracing::warn!(
                worker,
                most,
                "there is no room for more TCP connections: some were refused"
            );
        }
        let new = counted.dropped_frames.saturating_sub(logged.dropped_frames);
        if new > 0 {
            tracing::debug!(
                worker,
                new,
                "datagrams left out: their TCP connections do not take them"
            );
        }
        self.logged = counted;
        self.last_log = Some(now);
    }

    /// When something is due.
    pub(in crate::worker) fn timeout(&self) -> Option<Instant> {
        let oldest = self.strangers.first().and_then(|key| self.get(*key));
        let oldest = oldest.map(|pipe| pipe.heard + PATIENCE);
        let others = self.accept_again.into_iter().chain(self.sweep_at);
        oldest.into_iter().chain(others).min()
    }

    /// Notes which sockets the poll found ready.
    pub(in crate::worker) fn note_ready(&mut self, events: &Events) {
        for event in events {
            if event.token() == LISTENER {
                // In a pause it is tried again anyway.
                self.accepts = self.accept_again.is_none();
            } else if let Some(place) = event.token().0.checked_sub(FIRST_TOKEN)
                && let Some(key) = PipeKey::of(place)
            {
                self.note(key, event);
            }
        }
    }

    fn note(&mut self, key: PipeKey, event: &Readiness) {
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.mark_ready(key);
        }
        if event.is_writable() {
            self.mark_unflushed(key);
        }
    }

    pub(super) fn mark_ready(&mut self, key: PipeKey) {
        if let Some(pipe) = self.slots.get_mut(key.place())
            && !std::mem::replace(&mut pipe.is_ready, true)
        {
            self.ready.push_back(key);
        }
    }

    /// Takes the next connection that may be readable.
    pub(super) fn next_ready(&mut self) -> Option<PipeKey> {
        let key = self.ready.pop_front()?;
        self.get_mut(key)?.is_ready = false;
        Some(key)
    }

    fn mark_unflushed(&mut self, key: PipeKey) {
        if let Some(pipe) = self.slots.get_mut(key.place())
            && !std::mem::replace(&mut pipe.is_unflushed, true)
        {
            self.unflushed.push(key);
        }
    }

    /// Adds a connection of a stranger. Returns its key, and the connection that has to be closed
    /// for it, which may be itself.
    pub(super) fn add(
        &mut self,
        pipe: Pipe,
        registry: &Registry,
    ) -> io::Result<(PipeKey, Option<(PipeKey, Refused)>)> {
        let (from, since) = (network(pipe.path.remote), pipe.heard);
        let entry = self.slots.vacant_entry();
        let Some(key) = PipeKey::of(entry.key()) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let pipe = entry.insert(pipe);
        let (token, interest) = (
            Token(FIRST_TOKEN + key.place()),
            mio::Interest::READABLE | mio::Interest::WRITABLE,
        );
        if let Err(error) = registry.register(&mut pipe.stream, token, interest) {
            self.slots.try_remove(key.place());
            return Err(error);
        }
        self.counted.connections += 1;
        self.strangers.push(key);
        self.mark_ready(key);
        self.sweep_at.get_or_insert(since + SWEEP);
        let of_network = |key: &&PipeKey| {
            let stranger = self.get(**key);
            stranger.is_some_and(|stranger| network(stranger.path.remote) == from)
        };
        let mut strangers = self.strangers.iter();
        let oldest = strangers.clone().next();
        let displaced = if strangers.clone().filter(of_network).count() > STRANGERS_OF_NETWORK {
            (strangers.find(of_network), Refused::Displaced)
        } else if strangers.len() > STRANGERS {
            (oldest, Refused::Displaced)
        } else if self.most.is_none_or(|most| self.slots.len() > most) {
            // Those of peers stay.
            (oldest, Refused::Full)
        } else {
            (None, Refused::Displaced)
        };
        Ok((key, displaced.0.map(|key| (*key, displaced.1))))
    }

    /// Returns the connections of peers that are silent for too long, if it is time to check.
    pub(super) fn silent(&mut self, now: Instant) -> Vec<PipeKey> {
        if self.sweep_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.sweep_at = (!self.slots.is_empty()).then(|| now + SWEEP);
        let is_silent = |pipe: &Pipe| {
            pipe.owner.is_some() && now.saturating_duration_since(pipe.heard) >= SILENCE
        };
        let silent = self.slots.iter().filter(|(_, pipe)| is_silent(pipe));
        silent.filter_map(|(place, _)| PipeKey::of(place)).collect()
    }

    pub(super) fn get(&self, key: PipeKey) -> Option<&Pipe> {
        self.slots.get(key.place())
    }

    pub(super) fn get_mut(&mut self, key: PipeKey) -> Option<&mut Pipe> {
        self.slots.get_mut(key.place())
    }

    /// Returns the connection of a peer that has this path.
    pub(in crate::worker) fn of(&self, peer: &[PipeKey], path: Path) -> Option<PipeKey> {
        let mut pipes = peer.iter().copied();
        pipes.find(|key| self.get(*key).is_some_and(|pipe| pipe.path == path))
    }

    /// Returns the oldest connection without a check in time.
    pub(super) fn overdue(&self, now: Instant) -> Option<PipeKey> {
        let oldest = self.strangers.first().copied()?;
        let since = self.get(oldest)?.heard;
        (now.saturating_duration_since(since) >= PATIENCE).then_some(oldest)
    }

    /// Whether a connection belongs to nobody yet.
    pub(super) fn is_stranger(&self, key: PipeKey) -> bool {
        self.get(key).is_some_and(|pipe| pipe.owner.is_none())
    }

    /// Notes that a stranger is known now, or gone.
    pub(super) fn forget_stranger(&mut self, key: PipeKey) {
        self.strangers.retain(|stranger| *stranger != key);
    }

    /// Closes a connection, after a last try to write what waits.
    pub(super) fn close(&mut self, key: PipeKey, registry: &Registry) -> Option<Pipe> {
        let mut pipe = self.slots.try_remove(key.place())?;
        self.forget_stranger(key);
        self.ready.retain(|ready| *ready != key);
        self.unflushed.retain(|unflushed| *unflushed != key);
        self.counted.connections = self.counted.connections.saturating_sub(1);
        // It may be broken already. Closing it ends the registration, too.
        let _ = pipe.flush();
        let _ = registry.deregister(&mut pipe.stream);
        Some(pipe)
    }

    /// Removes a connection that is passed on.
    pub(super) fn take_out(&mut self, key: PipeKey, registry: &Registry) -> io::Result<Pipe> {
        let pipe = self.slots.try_remove(key.place());
        let mut pipe = pipe.ok_or(io::ErrorKind::NotConnected)?;
        self.forget_stranger(key);
        self.ready.retain(|ready| *ready != key);
        self.unflushed.retain(|unflushed| *unflushed != key);
        self.counted.connections = self.counted.connections.saturating_sub(1);
        registry.deregister(&mut pipe.stream)?;
        Ok(pipe)
    }

    /// Counts a connection of a peer that ended.
    pub(super) fn closed(&mut self, how: Closed) {
        if let Some(count) = self.counted.closed.get_mut(how as usize) {
            *count += 1;
        }
    }

    /// Counts a connection that was refused.
    pub(super) fn refused(&mut self, why: Refused) {
        if let Some(count) = self.counted.refused.get_mut(why as usize) {
            *count += 1;
        }
    }

    /// Queues a datagram for the end of the turn. Without room for it, it is lost like any other.
    pub(in crate::worker) fn push(&mut self, key: PipeKey, datagram: &[u8]) {
        let is_queued = self.get_mut(key).is_some_and(|pipe| pipe.push(datagram));
        if is_queued {
            self.counted.sent_frames += 1;
            self.counted.sent_bytes += datagram.len() as u64;
            self.mark_unflushed(key);
        } else {
            self.counted.dropped_frames += 1;
        }
    }
}

/// Returns the network of an address.
fn network(address: SocketAddr) -> u128 {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits() >> (u128::BITS - NETWORK_BITS) << NETWORK_BITS,
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
    use std::net::TcpStream as StdStream;

    use mio::Poll;

    use super::*;
    use crate::PeerId;

    /// Connections of clients at any address; the other ends are kept open.
    struct Stage {
        pipes: Pipes,
        poll: Poll,
        clients: Vec<StdStream>,
        now: Instant,
    }

    impl Stage {
        fn new() -> Self {
            Self::with(MOST)
        }

        /// One that may have so many.
        fn with(most: usize) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            Self {
                pipes: Pipes::new(Some(listener), Some(most)),
                poll: Poll::new().unwrap(),
                clients: Vec::new(),
                now: Instant::now(),
            }
        }

        /// Somebody connects, as if from there; gives who has to make room.
        fn connect(&mut self, from: &str) -> (PipeKey, Option<(PipeKey, Refused)>) {
            let listener = self.pipes.listener.as_ref().unwrap();
            let client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
            self.clients.push(client);
            let patience = Instant::now() + Duration::from_secs(10);
            let stream = loop {
                match listener.accept() {
                    Ok((stream, _)) => break stream,
                    Err(error) => assert!(Instant::now() < patience, "{error}"),
                }
            };
            let pipe = Pipe::new(stream, from.parse().unwrap(), self.now).unwrap();
            self.pipes.add(pipe, self.poll.registry()).unwrap()
        }

        fn own(&mut self, key: PipeKey) {
            self.pipes.forget_stranger(key);
            let owner = PeerId {
                worker: 0,
                serial: 1,
            };
            self.pipes.get_mut(key).unwrap().owner = Some(owner);
        }
    }

    #[test]
    fn who_connects_too_often_displaces_none_of_others() {
        for of_network in [
            |_| "192.0.2.7:1".to_owned(),
            |n| format!("[2001:db8::{n:x}]:{n}"),
        ] {
            let mut stage = Stage::new();
            let (other, _) = stage.connect("198.51.100.1:1");
            let (first, _) = stage.connect(&of_network(1));
            for n in 2..=STRANGERS_OF_NETWORK {
                assert_eq!(stage.connect(&of_network(n)).1, None);
            }
            let displaced = stage.connect(&of_network(1_000)).1;
            assert_eq!(displaced, Some((first, Refused::Displaced)));
            stage.pipes.close(first, stage.poll.registry()).unwrap();
            let displaced = stage.connect(&of_network(1_001)).1;
            assert_ne!(displaced.unwrap().0, other);
        }
    }

    #[test]
    fn where_there_is_no_room_strangers_give_way_and_peers_do_not() {
        let mut stage = Stage::with(3);
        let keys = [1, 2, 3].map(|n| {
            let (key, displaced) = stage.connect(&format!("192.0.2.{n}:1"));
            assert_eq!(displaced, None);
            key
        });
        stage.own(keys[0]);
        stage.own(keys[2]);
        let (next, displaced) = stage.connect("192.0.2.4:1");
        assert_eq!(displaced, Some((keys[1], Refused::Full)));
        stage.pipes.close(keys[1], stage.poll.registry()).unwrap();
        stage.own(next);
        let (last, displaced) = stage.connect("192.0.2.5:1");
        assert_eq!(
            displaced,
            Some((last, Refused::Full)),
            "all others are of peers"
        );
        stage.pipes.close(last, stage.poll.registry()).unwrap();
        assert_eq!(stage.pipes.counted.connections, 3);
        stage.pipes.close(next, stage.poll.registry()).unwrap();
        assert_eq!(stage.connect("192.0.2.6:1").1, None);
    }

    #[test]
    fn connections_leave_files_for_others() {
        for (files, workers, most) in [
            (None, 4, MOST),
            (Some(1_048_576), 4, MOST),
            (Some(1_024), 1, 512),
            (Some(1_024), 4, 128),
            (Some(1), 1, 0),
            (Some(u64::MAX), 0, MOST),
        ] {
            assert_eq!(most_pipes(files, workers), most, "{files:?}");
        }
    }

    #[test]
    fn a_peers_connection_that_is_silent_for_long_is_found() {
        let mut stage = Stage::new();
        let (silent, _) = stage.connect("192.0.2.7:1");
        let (alive, _) = stage.connect("192.0.2.7:2");
        let (stranger, _) = stage.connect("192.0.2.7:3");
        stage.own(silent);
        stage.own(alive);
        let start = stage.now;
        assert_eq!(stage.pipes.silent(start + SILENCE - SWEEP), []);
        stage.pipes.get_mut(alive).unwrap().heard = start + SWEEP;
        assert_eq!(stage.pipes.timeout(), Some(start + PATIENCE));
        assert_eq!(stage.pipes.overdue(start + PATIENCE), Some(stranger));
        stage.pipes.close(stranger, stage.poll.registry()).unwrap();
        let at = stage.pipes.timeout().unwrap();
        assert_eq!(at, start + SILENCE);
        assert_eq!(stage.pipes.silent(at), [silent]);
        assert_eq!(stage.pipes.silent(at), [], "it was looked for");
        for key in [silent, alive] {
            stage.pipes.close(key, stage.poll.registry()).unwrap();
        }
        assert_eq!(stage.pipes.silent(at + SWEEP), []);
        assert_eq!(stage.pipes.timeout(), None);
        assert_eq!(stage.pipes.counted.connections, 0);
    }
}
