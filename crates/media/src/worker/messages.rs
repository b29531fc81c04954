//! Messages of peers and data ingests: to the data channels of those that are routed to.

use std::sync::Arc;
use std::time::Instant;

use portunus_rtc::data::{DataOptions, DataPayload};
use portunus_rtp::Pt;

use super::Worker;
use crate::graph::{Messages, Packet, SourceKey};
use crate::{DataMessage, SourceRef};

impl Worker {
    /// Relays a message of a peer; false if no route begins at its data channels.
    pub(super) fn take_message(
        &mut self,
        slot: usize,
        message: &DataMessage,
        now: Instant,
    ) -> bool {
        let Some(key) = self.messages_of(slot) else {
            return false;
        };
        let Some(source) = self.sources.get_mut(key.0) else {
            return false;
        };
        let Some(messages) = source.format.messages else {
            return false;
        };
        if source.routes.is_empty() && source.watchers.is_empty() {
            return false;
        }
        let (pt, bytes) = match &message.payload {
            crate::DataPayload::Text(text) => (Pt(0), text.as_bytes()),
            crate::DataPayload::Binary(bytes) => (Pt(1), bytes.as_slice()),
        };
        // An empty one says nothing: it is not relayed.
        let packet = Packet::of_message(pt, bytes, now).filter(|_| !bytes.is_empty());
        let Some(packet) = packet else {
            self.counters.message_dropped();
            return true;
        };
        source.push(Arc::new(packet), now);
        self.pass_on(key);
        self.relay_messages(key, messages, now);
        true
    }

    /// The source that a peer's data channels are, if anybody has asked for it.
    pub(super) fn messages_of(&self, slot: usize) -> Option<SourceKey> {
        let track = self.peers.data_track(slot)?;
        self.by_source.get(&SourceRef::Track(track)).copied()
    }

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
        let Some(route) = self.routes.get(route).filter(|route| route.options.enabled) else {
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
            // Who does not keep up misses it.
            let sent = transport.send_data(label, "", payload, DataOptions::default(), now);
            if sent.is_err() {
                self.counters.message_dropped();
            }
        }
        self.peers.touch(slot);
    }

    /// Closes the channel of a route that ends, if it is the route's own.
    pub(super) fn close_channel(&mut self, peer: usize, label: &str, now: Instant) {
        if let Some(peer) = self.peers.get_mut(peer) {
            // There is none if no message has come.
            let _ = peer.connection.transport.close_data(label, now);
        }
        self.peers.touch(peer);
    }
}
