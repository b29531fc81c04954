//! Relays messages of peers and data ingests to data channels.

use std::sync::Arc;
use std::time::Instant;

use portunus_graph::{Messages, Packet, SourceKey};
use portunus_rtc::data::{DataOptions, DataPayload};

use super::Relaying;

impl Relaying<'_> {
    /// Relays the fresh messages of a source.
    pub(in crate::worker) fn relay_messages(
        &mut self,
        key: SourceKey,
        messages: Messages,
        now: Instant,
    ) {
        let packets = self.graph.take_packets(key);
        let mut index = 0;
        while let Some(source) = self.graph.source(key)
            && let Some(slot) = source.routes.get(index).copied()
        {
            index += 1;
            self.send_messages(slot, messages, &packets, now);
        }
        self.graph.relayed_packets(key, packets);
    }

    /// Sends messages to the sink of a route, if it is connected and open.
    pub(in crate::worker) fn send_messages(
        &mut self,
        route: usize,
        messages: Messages,
        packets: &[Arc<Packet>],
        now: Instant,
    ) {
        let Some(route) = self.graph.route(route).filter(|route| route.wanted.enabled) else {
            return;
        };
        let Some((slot, _)) = route.sink else {
            return;
        };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let transport = &mut peer.connection.transport;
        if !transport.is_connected() {
            return;
        }
        let label = route.options.label.as_deref().unwrap_or(messages.label);
        for packet in packets {
            let bytes = packet.payload();
            let payload = match std::str::from_utf8(bytes)
                .ok()
                .filter(|_| messages.kind.is_text(packet.header.pt))
            {
                Some(text) => DataPayload::Text(text),
                None => DataPayload::Binary(bytes),
            };
            // A peer that does not keep up misses messages.
            let sent = transport.send_data(label, "", payload, DataOptions::default(), now);
            if sent.is_err() {
                self.counters.message_dropped();
            }
        }
        self.peers.touch(slot);
    }
}
