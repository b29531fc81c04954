//! What comes in by the worker's socket.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::streams::StreamKey;
use portunus_rtp::Header;
use portunus_srtp::fetch;
use smallvec::SmallVec;

use super::Worker;
use super::peers::Peer;
use crate::graph::{History, Source};
use crate::sys::{RECEIVED_MESSAGES, ReceiveBatch};

/// Datagrams after which a turn goes on with what it has. A core that is behind takes much at once, so that what is for
/// one peer leaves together and costs less; and yet a flood keeps it from its timers for some tens of milliseconds at most.
pub(super) const DATAGRAMS_PER_TURN: usize = 8_192;
/// So few messages are taken as they are.
const FEW: usize = 4;
/// Packets of one message that are fetched for at most.
const MOST_FETCHED: usize = 64;

/// A message of media to be taken in a moment.
struct Arrival<'a> {
    peer: &'a Peer,
    header: Header,
    /// Packets in it to be fetched for; their sequence numbers follow each other.
    count: u16,
    stream: Option<StreamKey>,
    source: Option<&'a Source>,
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
