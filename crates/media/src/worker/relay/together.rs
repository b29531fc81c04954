//! Sources of one turn that go to the same peers, such as a publisher's video and audio: each peer gets what they
//! bring one after the other. Its state is in the cache the second time, and a short packet of audio leaves in the same
//! message as the frame before it (the last datagram of a run may be shorter).
//!
//! Packets of one source keep their order.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use crate::graph::{Packet, SourceKey};
use crate::worker::Worker;

/// Sources that are relayed together at most.
const COMPANIONS: usize = 8;

/// A source that is to be relayed in this turn, by its place among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::worker) struct Ready {
    /// Slot of the first peer that it goes to: sources with the same one are relayed together.
    first: Option<usize>,
    /// Serial of the peer that sends it; 0: none does.
    publisher: u64,
    /// Long packets come first.
    is_audio: bool,
    key: SourceKey,
}

impl Worker {
    /// Relays what is fresh of these sources.
    pub(super) fn relay_all(&mut self, now: Instant) {
        let mut ready = mem::take(&mut self.ready);
        if ready.len() > 1 {
            ready.sort_unstable();
        }
        for audience in ready.chunk_by(|a, b| a.first.is_some() && a.first == b.first) {
            for companions in audience.chunks(COMPANIONS) {
                self.relay_together(companions, now);
            }
        }
        ready.clear();
        self.ready = ready;
    }

    /// Notes that a source is to be relayed.
    pub(super) fn make_ready(&mut self, key: SourceKey) {
        let Some(source) = self.sources.get(key.0) else {
            return;
        };
        let route = source
            .routes
            .first()
            .and_then(|slot| self.routes.get(*slot));
        let first = route.and_then(|route| route.sink).map(|(peer, _)| peer);
        self.ready.push(Ready {
            first: first.filter(|_| source.format.messages.is_none()),
            publisher: source.is.track().map_or(0, |track| track.peer.serial),
            is_audio: !source.format.is_video,
            key,
        });
    }

    fn relay_together(&mut self, companions: &[Ready], now: Instant) {
        let mut fresh = SmallVec::<[(SourceKey, Vec<Arc<Packet>>); COMPANIONS]>::new();
        for Ready { key, .. } in companions {
            let Some(source) = self.sources.get_mut(key.0) else {
                continue;
            };
            if let Some(messages) = source.format.messages {
                self.relay_messages(*key, messages, now);
                continue;
            }
            fresh.push((*key, mem::take(&mut source.fresh)));
        }
        let send_time = self.network.send_time(now);
        let mut index = 0;
        loop {
            let mut any = false;
            for (key, packets) in &fresh {
                if let Some(source) = self.sources.get(key.0)
                    && let Some(slot) = source.routes.get(index).copied()
                {
                    any = true;
                    self.fetch_ahead(&source.routes, index);
                    self.relay_to(slot, *key, packets, (now, send_time));
                }
            }
            if !any {
                break;
            }
            index += 1;
        }
        for (key, mut packets) in fresh {
            packets.clear();
            if let Some(source) = self.sources.get_mut(key.0) {
                source.fresh = packets;
            }
        }
    }
}
