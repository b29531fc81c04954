//! The outlets of a worker's sources: which there are, and what they are fed.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use slab::Slab;
use smallvec::SmallVec;

use super::Worker;
use super::forwarding::{ForwardOut, Forwarding};
use crate::graph::{Packet, SourceFormat, SourceKey};
use crate::outlet::{Cut, Handed, NewOutlet, OutletEnd};
use crate::plane::RouteId;
use crate::{DataMessage, DataPayload, RouteOptions, Tapped, TappedMessage, TappedPacket};

/// All outlets of a worker.
#[derive(Default)]
pub(super) struct Outlets {
    slots: Slab<Outlet>,
    by_id: HashMap<RouteId, usize>,
}

/// An outlet.
pub(super) struct Outlet {
    id: RouteId,
    pub(super) source: SourceKey,
    cut: Cut,
    pub(super) end: OutletEnd,
}

impl Outlets {
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Outlet> {
        self.slots.get_mut(slot)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Outlet> {
        self.slots.iter_mut().map(|(_, outlet)| outlet)
    }
}

/// What feeding an outlet led to.
#[derive(Default)]
struct Fed {
    /// Its consumer is gone.
    ended: bool,
    /// It needs a keyframe of what it takes.
    torn: bool,
    /// It needs a keyframe of this encoding.
    wanted: Option<u8>,
}

impl Worker {
    pub(super) fn add_outlet(&mut self, new: NewOutlet, now: Instant) {
        let NewOutlet {
            id,
            from,
            options,
            encodings,
            end,
        } = new;
        if !self.graph.is_here(from, &self.peers) || !self.can_feed(&end) {
            return;
        }
        let source = self.graph.source_of(from, &mut self.peers);
        let open = options.enabled;
        let rtcp = match &end {
            OutletEnd::Forward(forwarder) => forwarder.options().rtcp.clone(),
            OutletEnd::Tap(_) => None,
        };
        let slot = self.outlets.slots.insert(Outlet {
            id,
            source,
            cut: Cut::new(options, encodings),
            end,
        });
        self.outlets.by_id.insert(id, slot);
        if let Some(rtcp) = rtcp {
            let registry = self.poller.registry();
            self.forwarding.join(slot, &rtcp, registry);
            self.forwarding.report_at = Some(now);
        }
        if let Some(source) = self.graph.source_mut(source) {
            source.outlets.push(slot);
        }
        if open {
            self.want_outlet_keyframe(slot);
        }
    }

    /// Whether there is what it takes to feed such an outlet.
    fn can_feed(&mut self, end: &OutletEnd) -> bool {
        if matches!(end, OutletEnd::Tap(_)) || self.forwarding.out.is_some() {
            return true;
        }
        match ForwardOut::open() {
            Ok(out) => self.forwarding.out = Some(out),
            Err(error) => tracing::error!(%error, "no socket for forwarders"),
        }
        self.forwarding.out.is_some()
    }

    /// Changes how an outlet selects, and its gate.
    pub(super) fn set_outlet(&mut self, id: RouteId, options: RouteOptions) {
        let Some(slot) = self.outlets.by_id.get(&id).copied() else {
            return;
        };
        let Some(outlet) = self.outlets.slots.get_mut(slot) else {
            return;
        };
        if outlet.cut.set_options(outlet.source, options) {
            self.want_outlet_keyframe(slot);
        }
    }

    pub(super) fn remove_outlet(&mut self, id: RouteId) {
        let Some(slot) = self.outlets.by_id.remove(&id) else {
            return;
        };
        let Some(outlet) = self.outlets.slots.try_remove(slot) else {
            return;
        };
        self.forwarding.leave(slot, self.poller.registry());
        if let Some(source) = self.graph.source_mut(outlet.source) {
            source.outlets.retain(|other| *other != slot);
            if !source.is_relayed() {
                source.forget();
            }
        }
    }

    /// Ends all outlets of a source, which ends.
    pub(super) fn end_outlets(&mut self, key: SourceKey) {
        let source = self.graph.source_mut(key);
        let slots = source.map(|source| mem::take(&mut source.outlets));
        for slot in slots.unwrap_or_default() {
            if let Some(outlet) = self.outlets.slots.try_remove(slot) {
                self.outlets.by_id.remove(&outlet.id);
                self.forwarding.leave(slot, self.poller.registry());
            }
        }
    }

    /// Hands the packets of this turn to the outlets of a source.
    pub(super) fn feed_outlets(&mut self, key: SourceKey, now: Instant) {
        let Some(source) = self.graph.source(key) else {
            return;
        };
        // A peer's messages were handed over when they came, with the labels of their channels.
        let came = source.format.messages.is_some() && source.is.track().is_some();
        if source.outlets.is_empty() || came {
            return;
        }
        let (slots, format) = (source.outlets.clone(), source.format);
        let packets = self.graph.take_packets(key);
        for slot in slots {
            let Some(outlet) = self.outlets.slots.get_mut(slot) else {
                continue;
            };
            let fed = outlet.feed(key, &packets, &format, &mut self.forwarding, now);
            if fed.torn {
                self.want_outlet_keyframe(slot);
            }
            if let Some(encoding) = fed.wanted {
                self.graph.want_keyframe(key, encoding);
            }
            if fed.ended {
                self.end_outlet(slot);
            }
        }
        self.graph.return_packets(key, packets);
    }

    /// Hands a message of a peer to the outlets of its data m-line.
    pub(super) fn feed_message(&mut self, peer: usize, message: &DataMessage, now: Instant) {
        if self.outlets.slots.is_empty() {
            return;
        }
        let source = self.messages_of(peer);
        let source = source.and_then(|key| self.graph.source(key));
        let slots: SmallVec<[usize; 2]> = source.map(|s| s.outlets.clone()).unwrap_or_default();
        for slot in slots {
            if let Some(outlet) = self.outlets.slots.get_mut(slot)
                && outlet
                    .feed_message(&message.label, &message.payload, &mut self.forwarding, now)
                    .ended
            {
                self.end_outlet(slot);
            }
        }
    }

    fn end_outlet(&mut self, slot: usize) {
        if let Some(id) = self.outlets.slots.get(slot).map(|outlet| outlet.id) {
            self.remove_outlet(id);
        }
    }

    /// Asks for a keyframe of what an outlet takes.
    pub(super) fn want_outlet_keyframe(&mut self, slot: usize) {
        let Some(outlet) = self.outlets.slots.get(slot) else {
            return;
        };
        let key = outlet.source;
        match outlet.cut.encoding() {
            Some(encoding) => self.graph.want_keyframe(key, encoding),
            None => self.graph.want_keyframes(key),
        }
    }
}

impl Outlet {
    fn feed(
        &mut self,
        key: SourceKey,
        packets: &[Arc<Packet>],
        format: &SourceFormat,
        forwarding: &mut Forwarding,
        now: Instant,
    ) -> Fed {
        let mut fed = Fed::default();
        if let Some(messages) = format.messages {
            for packet in packets {
                let bytes = packet.payload();
                let is_text = messages.kind.is_text(packet.header.pt);
                let text = std::str::from_utf8(bytes).ok().filter(|_| is_text);
                let payload = match text {
                    Some(text) => DataPayload::Text(text.to_owned()),
                    None => DataPayload::Binary(bytes.to_owned()),
                };
                let one = self.feed_message(messages.label, &payload, forwarding, packet.arrival);
                fed.ended |= one.ended;
            }
            return fed;
        }
        match &mut self.end {
            OutletEnd::Tap(tap) => {
                for packet in packets {
                    if let Some(taken) = self.cut.take(key, packet, format) {
                        let packet = TappedPacket::new(Arc::clone(packet), taken);
                        let handed = tap.hand(Tapped::Packet(packet));
                        fed.ended |= handed == Handed::Ended;
                        fed.torn |= handed == Handed::AfterGap;
                    }
                }
            }
            OutletEnd::Forward(forwarder) => {
                let Some(out) = &mut forwarding.out else {
                    return fed;
                };
                let to = out.batch.destination(None, forwarder.options().to);
                for packet in packets {
                    if let Some(taken) = self.cut.take(key, packet, format)
                        && let Some(len) = forwarder.write(packet, &taken, out.room())
                    {
                        out.batch.commit(len, &to);
                    }
                }
            }
        }
        fed.wanted = self.cut.keyframe_wanted(format.encodings, now);
        fed
    }

    fn feed_message(
        &mut self,
        label: &str,
        payload: &DataPayload,
        forwarding: &mut Forwarding,
        arrival: Instant,
    ) -> Fed {
        let mut fed = Fed::default();
        if !self.cut.is_open() {
            return fed;
        }
        match &mut self.end {
            OutletEnd::Tap(tap) => {
                let message = TappedMessage {
                    arrival,
                    label: label.to_owned(),
                    payload: payload.clone(),
                };
                fed.ended = tap.hand(Tapped::Message(message)) == Handed::Ended;
            }
            OutletEnd::Forward(forwarder) => {
                let (bytes, text) = match payload {
                    DataPayload::Text(text) => (text.as_bytes(), true),
                    DataPayload::Binary(bytes) => (bytes.as_slice(), false),
                };
                if let Some(out) = &mut forwarding.out {
                    match forwarder.frame(bytes, text) {
                        Some(datagram) => out.send_message(&datagram, forwarder.options().to),
                        None => out.refuse_message(),
                    }
                }
            }
        }
        fed
    }
}
