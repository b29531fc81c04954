//! The outlets of a worker's sources: which there are, and what they are fed.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use portunus_sdp::negotiated::Kind;
use slab::Slab;
use smallvec::SmallVec;

use super::Worker;
use crate::graph::{Messages, Packet, SourceFormat, SourceKey};
use crate::outlet::{Cut, Handed, NewOutlet, OutletEnd};
use crate::plane::RouteId;
use crate::{
    DataMessage, DataPayload, RouteOptions, SourceRef, Tapped, TappedMessage, TappedPacket,
    TrackRef,
};

/// All outlets of a worker.
#[derive(Default)]
pub(super) struct Outlets {
    slots: Slab<Outlet>,
    by_id: HashMap<RouteId, usize>,
}

/// An outlet.
struct Outlet {
    id: RouteId,
    source: SourceKey,
    cut: Cut,
    end: OutletEnd,
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
        if !self.is_here(from) {
            return;
        }
        let source = self.source_of(from);
        let open = options.enabled;
        let slot = self.outlets.slots.insert(Outlet {
            id,
            source,
            cut: Cut::new(options, encodings),
            end,
        });
        self.outlets.by_id.insert(id, slot);
        if let Some(source) = self.sources.get_mut(source.0) {
            source.outlets.push(slot);
        }
        if open {
            self.want_outlet_keyframe(slot, now);
        }
    }

    /// Changes how an outlet selects, and its gate.
    pub(super) fn set_outlet(&mut self, id: RouteId, options: RouteOptions, now: Instant) {
        let Some(slot) = self.outlets.by_id.get(&id).copied() else {
            return;
        };
        let Some(outlet) = self.outlets.slots.get_mut(slot) else {
            return;
        };
        if outlet.cut.set_options(outlet.source, options) {
            self.want_outlet_keyframe(slot, now);
        }
    }

    pub(super) fn remove_outlet(&mut self, id: RouteId) {
        let Some(slot) = self.outlets.by_id.remove(&id) else {
            return;
        };
        let Some(outlet) = self.outlets.slots.try_remove(slot) else {
            return;
        };
        if let Some(source) = self.sources.get_mut(outlet.source.0) {
            source.outlets.retain(|other| *other != slot);
            if !source.is_relayed() {
                source.forget();
            }
        }
    }

    /// Ends all outlets of a source, which ends.
    pub(super) fn end_outlets(&mut self, key: SourceKey) {
        let slots = self
            .sources
            .get_mut(key.0)
            .map(|s| mem::take(&mut s.outlets));
        for slot in slots.unwrap_or_default() {
            if let Some(outlet) = self.outlets.slots.try_remove(slot) {
                self.outlets.by_id.remove(&outlet.id);
            }
        }
    }

    /// Hands the packets of this turn to the outlets of a source.
    pub(super) fn feed_outlets(&mut self, key: SourceKey, now: Instant) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        if source.outlets.is_empty() {
            return;
        }
        let (packets, format) = (mem::take(&mut source.fresh), source.format);
        let slots = source.outlets.clone();
        for slot in slots {
            let Some(outlet) = self.outlets.slots.get_mut(slot) else {
                continue;
            };
            let fed = outlet.feed(key, &packets, &format, now);
            if fed.torn {
                self.want_outlet_keyframe(slot, now);
            }
            if let Some(encoding) = fed.wanted {
                self.want_keyframe(key, encoding, now);
            }
            if fed.ended {
                self.end_outlet(slot);
            }
        }
        if let Some(source) = self.sources.get_mut(key.0) {
            source.fresh = packets;
        }
    }

    /// Hands a message of a peer to the outlets of its data m-line.
    pub(super) fn feed_message(&mut self, peer: usize, message: &DataMessage, now: Instant) {
        if self.outlets.slots.is_empty() {
            return;
        }
        let Some(peer) = self.peers.get(peer) else {
            return;
        };
        let media = peer.connection.media().iter();
        let Some(media) = media.clone().find(|media| media.kind == Kind::Data) else {
            return;
        };
        let track = TrackRef {
            peer: peer.id,
            mid: media.mid,
        };
        let key = self.by_source.get(&SourceRef::Track(track));
        let source = key.and_then(|key| self.sources.get(key.0));
        let slots: SmallVec<[usize; 2]> = source.map(|s| s.outlets.clone()).unwrap_or_default();
        for slot in slots {
            if let Some(outlet) = self.outlets.slots.get_mut(slot)
                && outlet
                    .feed_message(&message.label, &message.payload, now)
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
    fn want_outlet_keyframe(&mut self, slot: usize, now: Instant) {
        let Some(outlet) = self.outlets.slots.get(slot) else {
            return;
        };
        let key = outlet.source;
        match outlet.cut.encoding() {
            Some(encoding) => self.want_keyframe(key, encoding, now),
            None => self.want_keyframes(key, now),
        }
    }
}

impl Outlet {
    fn feed(
        &mut self,
        key: SourceKey,
        packets: &[Arc<Packet>],
        format: &SourceFormat,
        now: Instant,
    ) -> Fed {
        let mut fed = Fed::default();
        for packet in packets {
            let handed = match format.messages {
                Some(messages) if self.cut.is_open() => self.hand_message(packet, messages),
                Some(_) => continue,
                None => {
                    let Some(taken) = self.cut.take(key, packet, format) else {
                        continue;
                    };
                    match &mut self.end {
                        OutletEnd::Tap(tap) => {
                            let packet = TappedPacket::new(Arc::clone(packet), taken);
                            tap.hand(Tapped::Packet(packet))
                        }
                    }
                }
            };
            fed.ended |= handed == Handed::Ended;
            fed.torn |= handed == Handed::AfterGap;
        }
        fed.wanted = self.cut.keyframe_wanted(format.encodings, now);
        fed
    }

    fn feed_message(&mut self, label: &str, payload: &DataPayload, now: Instant) -> Fed {
        if !self.cut.is_open() {
            return Fed::default();
        }
        let message = TappedMessage {
            arrival: now,
            label: label.to_owned(),
            payload: payload.clone(),
        };
        let handed = match &mut self.end {
            OutletEnd::Tap(tap) => tap.hand(Tapped::Message(message)),
        };
        Fed {
            ended: handed == Handed::Ended,
            ..Fed::default()
        }
    }

    /// A message that came by an ingest.
    fn hand_message(&mut self, packet: &Packet, messages: Messages) -> Handed {
        let bytes = packet.payload();
        let text = std::str::from_utf8(bytes).ok().filter(|_| messages.text);
        let payload = match text {
            Some(text) => DataPayload::Text(text.to_owned()),
            None => DataPayload::Binary(bytes.to_owned()),
        };
        let message = TappedMessage {
            arrival: packet.arrival,
            label: messages.label.to_owned(),
            payload,
        };
        match &mut self.end {
            OutletEnd::Tap(tap) => tap.hand(Tapped::Message(message)),
        }
    }
}
