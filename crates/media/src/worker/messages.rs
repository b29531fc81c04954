//! Messages of data ingests: to the data channels of those that are routed to.

use std::sync::Arc;
use std::time::Instant;

use portunus_rtc::data::{DataOptions, DataPayload};

use super::Worker;
use crate::graph::{Messages, Packet, SourceKey};

impl Worker {
    /// Relays the messages of this turn.
    pub(super) fn relay_messages(&mut self, key: SourceKey, messages: Messages, now: Instant) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        let mut packets = std::mem::take(&mut source.fresh);
        let mut index = 0;
        while let Some(source) = self.sources.get(key.0)
            && let Some(slot) = source.routes.get(index).copied()
        {
            index += 1;
            self.send_messages(slot, messages, &packets, now);
        }
        packets.clear();
        if let Some(source) = self.sources.get_mut(key.0) {
            source.fresh = packets;
        }
    }

    /// Sends messages to the sink of a route, if it is connected and wants them.
    pub(super) fn send_messages(
        &mut self,
        route: usize,
        messages: Messages,
        packets: &[Arc<Packet>],
        now: Instant,
    ) {
        let route = self.routes.get(route).filter(|route| route.options.enabled);
        let Some((slot, _)) = route.and_then(|route| route.sink) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        for packet in packets {
            let bytes = packet.payload();
            let payload = match std::str::from_utf8(bytes)
                .ok()
                .filter(|_| messages.kind.is_text(packet.header.pt))
            {
                Some(text) => DataPayload::Text(text),
                None => DataPayload::Binary(bytes),
            };
            let transport = &mut peer.connection.transport;
            // Who is not connected, or does not keep up, misses it.
            let sent =
                transport.send_data(messages.label, "", payload, DataOptions::default(), now);
            if sent.is_err() {
                break;
            }
        }
        self.touch(slot);
    }
}
