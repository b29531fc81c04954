//! Relays sources of one turn together that go to the same peers, such as a publisher's video and
//! audio.
//!
//! Each peer gets the packets of all these sources before the next peer. Its state is in the cache
//! then, and a short packet of audio leaves in the same message as the frame before it (the last
//! datagram of a run may be shorter). Packets of one source keep their order.

use std::sync::Arc;
use std::time::Instant;

use portunus_graph::{Packet, SourceKey};
use smallvec::SmallVec;

use super::Relaying;
use crate::worker::graph::Ready;

/// The maximum number of sources that are relayed together.
const COMPANIONS: usize = 8;
/// The bytes by which a packet may grow when it is relayed: a longer header, and the tag.
const GROWTH: usize = 48;

impl Relaying<'_> {
    /// Relays the sources that are ready.
    pub(in crate::worker) fn relay_all(&mut self, now: Instant) {
        let ready = self.graph.take_ready();
        for audience in ready.chunk_by(Ready::has_audience_of) {
            for companions in audience.chunks(COMPANIONS) {
                self.relay_together(companions, now);
            }
        }
        self.graph.relayed_all(ready);
    }

    fn relay_together(&mut self, companions: &[Ready], now: Instant) {
        let mut fresh = SmallVec::<[(SourceKey, Vec<Arc<Packet>>); COMPANIONS]>::new();
        for Ready { key, .. } in companions {
            let Some(source) = self.graph.source(*key) else {
                continue;
            };
            if let Some(messages) = source.format.messages {
                self.relay_messages(*key, messages, now);
                continue;
            }
            fresh.push((*key, self.graph.take_packets(*key)));
        }
        let send_time = self.network.send_time(now);
        let packets = fresh.iter().flat_map(|(_, packets)| packets);
        let bytes: usize = packets.map(|packet| packet.data.len() + GROWTH).sum();
        let mut index = 0;
        loop {
            let mut any = false;
            self.network.keep_together(bytes);
            for (key, packets) in &fresh {
                if let Some(source) = self.graph.source(*key)
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
        for (key, packets) in fresh {
            self.graph.relayed_packets(key, packets);
        }
    }
}
