//! What comes in by the worker's socket: to which peer, and to which source.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use portunus_rtc::Path;
use portunus_rtc::connection::{Incoming, Received, Refusal};
use portunus_rtc::streams::StreamKey;
use portunus_rtp::Header;
use portunus_srtp::fetch;
use smallvec::SmallVec;

use super::Worker;
use super::ends::guarded;
use super::handshakes::{self, Waiting};
use super::peers::{Peer, Whose};
use crate::CloseReason;
use crate::graph::{self, History, Source};
use crate::sys::{RECEIVED_MESSAGES, ReceiveBatch};

/// Datagrams after which a turn goes on with what it has. A core that is behind takes much at once, so that what is for
/// one peer leaves together and costs less; and yet a flood keeps it from its timers for some tens of milliseconds at most.
pub(super) const DATAGRAMS_PER_TURN: usize = 8_192;
/// So few messages are taken as they are.
const FEW: usize = 4;
/// Packets of one message that are fetched for at most.
const MOST_FETCHED: usize = 64;
/// Bytes of the largest packet that is relayed: with extensions and tag it still fits a datagram of ours.
const MAX_PACKET: usize = 1_800;

/// A message of media to be taken in a moment.
struct Arrival<'a> {
    peer: &'a Peer,
    header: Header,
    /// Packets in it to be fetched for; their sequence numbers follow each other.
    count: u16,
    stream: Option<StreamKey>,
    source: Option<&'a Source>,
}

/// Whether a datagram is a message of STUN (RFC 7983 section 7).
#[inline]
pub(super) fn is_stun(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| *first < 4)
}

impl Worker {
    /// Takes what is there; says whether there may be more.
    pub(super) fn receive(&mut self, batch: &mut ReceiveBatch) -> io::Result<bool> {
        let mut taken = 0;
        while taken < DATAGRAMS_PER_TURN {
            let received = self.network.receive(batch)?;
            if received == 0 {
                return Ok(false);
            }
            if received > FEW {
                self.fetch_arrivals(batch, received);
            }
            let now = Instant::now();
            let bound = self.network.local();
            for message in batch.iter(received) {
                let local = SocketAddr::new(message.local.unwrap_or(bound.ip()), bound.port());
                let datagrams = message.data.len().div_ceil(message.stride);
                taken += datagrams.max(1);
                self.counters.received(datagrams, message.data.len());
                for datagram in message.data.chunks_mut(message.stride) {
                    self.take_datagram(now, local, message.remote, datagram);
                }
            }
            if !batch.was_full(received) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes one datagram.
    pub(crate) fn take_datagram(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        datagram: &mut [u8],
    ) {
        if self.handover.is_on() {
            self.copy_for_contender(now, (local, remote), datagram);
        }
        match self.peers.sender(remote, datagram) {
            Whose::Peer(slot) => self.take_of(now, slot, Path::udp(local, remote), datagram),
            Whose::Worker(worker) if !is_stun(datagram) => {
                self.hand_to(worker, (local, remote), datagram);
            }
            Whose::Worker(_) | Whose::Nobody if self.handover.is_on() => {
                self.hand_over(now, (local, remote), datagram);
            }
            Whose::Worker(_) | Whose::Nobody => self.counters.unknown_peer(),
        }
    }

    /// Takes a datagram of a peer, or lets it wait if it is part of a handshake.
    pub(super) fn take_of(&mut self, now: Instant, slot: usize, path: Path, datagram: &mut [u8]) {
        match handshakes::is_handshake(datagram) {
            true => self.take_handshake(now, slot, path, datagram),
            false => drop(self.give_datagram(now, slot, path, datagram)),
        }
    }

    /// Gives a datagram to its peer; says whether that took it.
    pub(super) fn give_datagram(
        &mut self,
        now: Instant,
        slot: usize,
        path: Path,
        datagram: &mut [u8],
    ) -> bool {
        let taken = guarded(|| self.take_of_peer(now, slot, path, datagram));
        let Some(taken) = taken else {
            self.end_peer(slot, CloseReason::Internal, now);
            return false;
        };
        self.peers.touch(slot);
        taken
    }

    fn take_of_peer(&mut self, now: Instant, slot: usize, path: Path, datagram: &mut [u8]) -> bool {
        let Some(peer) = self.peers.get_mut(slot) else {
            self.counters.unknown_peer();
            return false;
        };
        match peer.connection.receive_by(now, path, datagram) {
            Received::Consumed => self.peers.learn_again(now, slot, path, datagram),
            Received::Refused(refusal) => {
                peer.refused += 1;
                self.counters.refuse(refusal);
                return false;
            }
            Received::Rtp(incoming) => self.take_packet(now, slot, &incoming, datagram),
        }
        true
    }

    /// Hands a packet to its source, if anybody relays it.
    fn take_packet(&mut self, now: Instant, slot: usize, incoming: &Incoming, datagram: &[u8]) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let extensions = *peer.connection.extensions();
        let Some(track) = peer.tracks.get_mut(incoming.media) else {
            return;
        };
        let (Some(key), Some(data)) = (track.source, datagram.get(incoming.range.clone())) else {
            return;
        };
        if track.levels.are_wanted()
            && let Some(level) = graph::level(&incoming.header, data, &extensions)
        {
            let media = peer.connection.media().get(incoming.media);
            let mid = media.map(|media| media.mid);
            for activity in track.levels.take(level, now).into_iter().rev() {
                if let Some(mid) = mid {
                    self.outbox.send(peer.id, activity.event(mid));
                }
            }
        }
        if data.len() > MAX_PACKET {
            peer.refused += 1;
            peer.too_large += 1;
            self.counters.refuse(Refusal::MalformedRtp);
            return;
        }
        let Some(inspector) = track.inspectors.get_mut(usize::from(incoming.encoding)) else {
            return;
        };
        self.graph.take_in(key, |source| {
            if !source.is_wanted() {
                return;
            }
            let Some(mut shared) = source.recycle(incoming.encoding, incoming.seq, now) else {
                return;
            };
            let Some(packet) = Arc::get_mut(&mut shared) else {
                return;
            };
            packet.fill(data);
            packet.header = incoming.header;
            packet.seq = incoming.seq;
            packet.encoding = incoming.encoding;
            packet.generation = incoming.generation;
            packet.codec = incoming.codec;
            packet.is_opaque = peer.is_opaque;
            packet.arrival = now;
            packet.set_extensions(extensions);
            packet.describe(inspector.inspect(incoming.codec, &incoming.header, data, &extensions));
            if packet.layers.keyframe && packet.layers.start && packet.tells_keyframes() {
                peer.connection
                    .keyframe_came(incoming.media, incoming.encoding);
            }
            source.even_out(packet);
            source.push(shared, now);
        });
    }

    /// Begins a turn: takes what waited longest.
    pub(crate) fn take_handshakes(&mut self, now: Instant) {
        self.handshakes.begin();
        while let Some(mut next) = self.handshakes.next() {
            if let Some(slot) = self.peers.slot(next.peer) {
                self.handshake(now, slot, next.path, &mut next.datagram);
            }
        }
    }

    /// Takes a datagram of a handshake, or lets it wait.
    pub(super) fn take_handshake(
        &mut self,
        now: Instant,
        slot: usize,
        path: Path,
        datagram: &mut [u8],
    ) {
        if !self.handshakes.has_to_wait() {
            return self.handshake(now, slot, path, datagram);
        }
        let Some(peer) = self.peers.get(slot).map(|peer| peer.id) else {
            return;
        };
        let waiting = Waiting {
            peer,
            path,
            datagram: datagram.to_vec(),
        };
        if !self.handshakes.put_off(waiting) {
            self.counters.handshake_dropped();
        }
    }

    fn handshake(&mut self, now: Instant, slot: usize, path: Path, datagram: &mut [u8]) {
        let began = Instant::now();
        self.give_datagram(now, slot, path, datagram);
        self.handshakes.spend(began.elapsed());
    }

    /// Fetches what these messages need of their senders and sources, step by step for all of them together: each is
    /// found by the one before, and far from the cache.
    fn fetch_arrivals(&self, batch: &mut ReceiveBatch, received: usize) {
        let media = batch.iter(received).filter_map(|message| {
            let peer = self.peers.get(self.peers.by_address(message.remote)?)?;
            peer.fetch_receiver();
            let count = message.count().min(MOST_FETCHED) as u16;
            let header = Header::parse_encrypted(message.data).ok()?;
            Some(Arrival {
                peer,
                header,
                count,
                stream: None,
                source: None,
            })
        });
        let mut media: SmallVec<[Arrival<'_>; RECEIVED_MESSAGES]> = media.collect();
        for Arrival { peer, .. } in &media {
            peer.connection.fetch_intake();
        }
        for arrival in &mut media {
            let Arrival { peer, header, .. } = arrival;
            arrival.stream = peer.connection.fetch_stream_of(header.ssrc);
            if let Some(stream) = arrival.stream
                && let Some(track) = peer.tracks.get(usize::from(stream.media))
            {
                fetch(&track.source);
                track.fetch_inspector(stream.encoding);
            }
        }
        for arrival in &mut media {
            let Some(stream) = arrival.stream else {
                continue;
            };
            arrival.peer.connection.fetch_numbers(stream);
            let track = arrival.peer.tracks.get(usize::from(stream.media));
            let key = track.and_then(|track| track.source);
            arrival.source = key.and_then(|key| self.graph.source(key));
            if let Some(source) = arrival.source {
                source.fetch(stream.encoding);
            }
        }
        for step in [History::fetch_slot, History::fetch_buffer] {
            for arrival in &media {
                let encoding = arrival.stream.map_or(0, |stream| stream.encoding);
                let Some(history) = arrival.source.and_then(|source| source.kept(encoding)) else {
                    continue;
                };
                for number in 0..arrival.count {
                    step(history, arrival.header.sequence.wrapping_add(number));
                }
            }
        }
    }
}
