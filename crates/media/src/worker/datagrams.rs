//! Passes received datagrams to their peers, and packets to their sources.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use portunus_graph::{History, Source};
use portunus_rtc::Path;
use portunus_rtc::connection::{Incoming, Received, Refusal};
use portunus_rtc::streams::StreamKey;
use portunus_rtp::Header;
use portunus_srtp::fetch;
use smallvec::SmallVec;

use super::Worker;
use super::budget::DATAGRAMS_PER_TURN;
use super::guard::guarded;
use super::handover_intake::is_stun;
use super::handshakes::{self, Waiting};
use super::peers::{DatagramOwner, Peer};
use crate::CloseReason;
use crate::sys::{RECEIVED_MESSAGES, ReceiveBatch};

/// A smaller number of messages is not prefetched for.
const FEW: usize = 4;
/// The maximum number of packets of one message that are prefetched for.
const MOST_FETCHED: usize = 64;
/// The maximum length of a packet in bytes: with extensions and tag it still fits a datagram.
const MAX_PACKET: usize = 1_800;

/// A message of media that is about to be processed.
struct Arrival<'a> {
    peer: &'a Peer,
    header: Header,
    /// The number of packets in it to prefetch for. Their sequence numbers are consecutive.
    count: u16,
    stream: Option<StreamKey>,
    source: Option<&'a Source>,
}

impl Worker {
    /// Takes received datagrams. Returns whether there may be more.
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

    /// Takes a datagram.
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
            DatagramOwner::Peer(slot) => {
                self.take_of(now, slot, Path::udp(local, remote), datagram)
            }
            DatagramOwner::Worker(worker) if !is_stun(datagram) => {
                self.hand_to(worker, (local, remote), datagram);
            }
            DatagramOwner::Worker(_) | DatagramOwner::Unknown if self.handover.is_on() => {
                self.hand_over(now, (local, remote), datagram);
            }
            DatagramOwner::Worker(_) | DatagramOwner::Unknown => self.counters.unknown_peer(),
        }
    }

    /// Takes a datagram of a peer, or queues it if it is part of a handshake.
    pub(super) fn take_of(&mut self, now: Instant, slot: usize, path: Path, datagram: &mut [u8]) {
        match handshakes::is_handshake(datagram) {
            true => self.take_handshake(now, slot, path, datagram),
            false => drop(self.give_datagram(now, slot, path, datagram)),
        }
    }

    /// Passes a datagram to its peer. Returns whether the peer accepted it.
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
                peer.record.count_refused();
                self.counters.refuse(refusal);
                return false;
            }
            Received::Rtp(incoming) => self.take_packet(now, slot, &incoming, datagram),
        }
        true
    }

    /// Passes a packet to its source, if that is relayed.
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
            && let Some(level) = portunus_graph::level(&incoming.header, data, &extensions)
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
            peer.record.count_too_large();
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
            packet.is_opaque = peer.is_opaque;
            packet.set_codec(incoming.codec);
            packet.arrival = now;
            packet.set_extensions(extensions);
            packet.describe(inspector.inspect(incoming.codec, &incoming.header, data, &extensions));
            if packet.layers.keyframe && packet.layers.start && packet.shows_keyframes() {
                peer.connection
                    .keyframe_came(incoming.media, incoming.encoding);
            }
            source.even_out(packet);
            source.push(shared, now);
        });
    }

    /// Starts a turn with the handshakes that have waited longest.
    pub(crate) fn take_handshakes(&mut self, now: Instant) {
        self.handshakes.begin();
        while let Some(mut next) = self.handshakes.next() {
            if let Some(slot) = self.peers.slot(next.peer) {
                self.handshake(now, slot, next.path, &mut next.datagram);
            }
        }
    }

    /// Takes a datagram of a handshake, or queues it.
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

    /// Prefetches the senders and sources of messages, step by step for all of them together, as
    /// each step depends on the one before and misses the cache.
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
                let Some(history) = arrival.source.and_then(|source| source.history(encoding))
                else {
                    continue;
                };
                for number in 0..arrival.count {
                    step(history, arrival.header.sequence.wrapping_add(number));
                }
            }
        }
    }
}
