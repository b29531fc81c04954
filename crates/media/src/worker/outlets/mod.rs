//! The outlets of a worker's sources: added, changed, fed and removed.

mod forwarding;
mod links;

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use mio::Registry;
use portunus_graph::{Demand, Packet, Source, SourceFormat, SourceKey};
use portunus_rtc::streams::NtpClock;
use slab::Slab;
use smallvec::SmallVec;

use super::graph::Graph;
use super::node_links::NodeLinks;
use super::peers::Peers;
use crate::RouteId;
use crate::outlet::{Cut, Handed, NewOutlet, OutletEnd};
use crate::{DataMessage, DataPayload, RouteOptions, TappedMessage, TappedPacket};

use forwarding::{ForwardOut, Forwarding};
pub(super) use links::Asked;
use links::feed_link;

/// All outlets of a worker, and the network side of forwarders. Invariants:
///
/// - An outlet keeps its slot, can be found by its id, and is listed by its source.
/// - While there are forwarders, there is a socket that they send by. The poll watches the RTCP of
///   a forwarder as long as that exists.
pub(super) struct Outlets {
    slots: Slab<Outlet>,
    by_id: HashMap<RouteId, usize>,
    forwarding: Forwarding,
}

/// An outlet.
struct Outlet {
    id: RouteId,
    source: SourceKey,
    cut: Cut,
    end: OutletEnd,
}

/// The outcome of feeding an outlet.
#[derive(Default)]
struct FeedOutcome {
    /// Its consumer is gone.
    ended: bool,
    /// Packets were dropped, so it needs a keyframe.
    torn: bool,
    /// It needs a keyframe of this encoding.
    wanted: Option<u8>,
}

impl Outlets {
    /// Returns no outlets. Reports use this clock.
    pub(super) fn new(clock: NtpClock) -> Self {
        Self {
            slots: Slab::new(),
            by_id: HashMap::new(),
            forwarding: Forwarding::new(clock),
        }
    }

    /// Adds an outlet, if its source exists.
    pub(super) fn add(
        &mut self,
        new: NewOutlet,
        (graph, peers): (&mut Graph, &mut Peers),
        (registry, links): (&Registry, &mut NodeLinks),
        now: Instant,
    ) {
        let NewOutlet {
            id,
            from,
            options,
            encodings,
            end,
        } = new;
        if !graph.is_here(from, peers) || !self.can_feed(&end) {
            return;
        }
        let source = graph.source_of(from, peers);
        let open = options.enabled;
        let (rtcp, after) = match &end {
            OutletEnd::Forward(forwarder) => {
                let options = forwarder.options();
                (options.rtcp.clone(), options.after)
            }
            OutletEnd::Tap(_) | OutletEnd::Collect(_) => (None, None),
            // Its numbers are free of those of the source, as SRTP needs numbers below 2^15 first.
            OutletEnd::Link(_) => (None, None),
        };
        let on_link = match &end {
            OutletEnd::Link(linked) => Some((linked.link(), (linked.ssrc(), linked.far()))),
            OutletEnd::Forward(_) | OutletEnd::Tap(_) | OutletEnd::Collect(_) => None,
        };
        let slot = self.slots.insert(Outlet {
            id,
            source,
            cut: Cut::new(options, encodings, after.unwrap_or_else(rand::random)),
            end,
        });
        self.by_id.insert(id, slot);
        if let Some(rtcp) = rtcp {
            self.forwarding.join(slot, &rtcp, registry);
            self.forwarding.report_at = Some(now);
        }
        if let Some(source) = graph.source_mut(source) {
            source.outlets.push(slot);
        }
        graph.note_demand(source);
        if let Some((link, stream)) = on_link
            && (!links.join(link, stream, slot, now) || self.prime(slot, graph, links, now))
        {
            return;
        }
        if open {
            self.want_keyframe(slot, graph);
        }
        self.begin_from_last(slot, graph, now);
    }

    /// Passes the last message of a source to a new tap that asks for it.
    fn begin_from_last(&mut self, slot: usize, graph: &Graph, now: Instant) {
        let Some(outlet) = self.slots.get_mut(slot) else {
            return;
        };
        let from_last = matches!(&outlet.end, OutletEnd::Tap(tap) if tap.from_last);
        let source = graph.source(outlet.source).filter(|_| from_last);
        if let Some(source) = source.filter(|source| source.format.messages.is_some()) {
            let kept: Vec<Arc<Packet>> = source.cached_before_fresh().cloned().collect();
            let forwarding = &mut self.forwarding;
            outlet.feed(outlet.source, &kept, &source.format, forwarding, now);
        }
    }

    /// Whether such an outlet can be fed.
    fn can_feed(&mut self, end: &OutletEnd) -> bool {
        if !matches!(end, OutletEnd::Forward(_)) || self.forwarding.out.is_some() {
            return true;
        }
        match ForwardOut::open() {
            Ok(out) => self.forwarding.out = Some(out),
            Err(error) => tracing::error!(%error, "no socket for forwarders"),
        }
        self.forwarding.out.is_some()
    }

    /// Changes the options of an outlet.
    pub(super) fn set(&mut self, id: RouteId, options: RouteOptions, graph: &mut Graph) {
        let Some(slot) = self.by_id.get(&id).copied() else {
            return;
        };
        let Some(outlet) = self.slots.get_mut(slot) else {
            return;
        };
        graph.note_demand(outlet.source);
        if outlet.cut.set_options(outlet.source, options) {
            self.want_keyframe(slot, graph);
        }
    }

    /// The source of an outlet.
    pub(super) fn source_of(&self, id: RouteId) -> Option<SourceKey> {
        let slot = self.by_id.get(&id)?;
        Some(self.slots.get(*slot)?.source)
    }

    /// Continues an outlet from another source of this worker.
    pub(super) fn redirect(&mut self, id: RouteId, key: SourceKey, graph: &mut Graph) {
        let slot = self.by_id.get(&id).copied();
        let Some((slot, outlet)) = slot.and_then(|slot| Some((slot, self.slots.get_mut(slot)?)))
        else {
            return;
        };
        let before = mem::replace(&mut outlet.source, key);
        if before == key {
            return;
        }
        outlet.cut.leave(before);
        if let Some(source) = graph.source_mut(before) {
            source.outlets.retain(|other| *other != slot);
            if !source.is_relayed() {
                source.forget();
            }
        }
        if let Some(source) = graph.source_mut(key) {
            source.outlets.push(slot);
        }
        graph.note_demand(before);
        graph.note_demand(key);
    }

    /// Removes an outlet.
    pub(super) fn remove(
        &mut self,
        id: RouteId,
        graph: &mut Graph,
        (registry, links): (&Registry, &mut NodeLinks),
    ) {
        let Some(slot) = self.by_id.remove(&id) else {
            return;
        };
        let Some(outlet) = self.slots.try_remove(slot) else {
            return;
        };
        self.forwarding.leave(slot, registry);
        outlet.leave_link(slot, links);
        if let Some(source) = graph.source_mut(outlet.source) {
            source.outlets.retain(|other| *other != slot);
            if !source.is_relayed() {
                source.forget();
            }
        }
        graph.note_demand(outlet.source);
    }

    /// Removes all outlets of a source that ends.
    pub(super) fn end_all(
        &mut self,
        key: SourceKey,
        graph: &mut Graph,
        (registry, links): (&Registry, &mut NodeLinks),
    ) {
        let source = graph.source_mut(key);
        let slots = source.map(|source| mem::take(&mut source.outlets));
        for slot in slots.unwrap_or_default() {
            if let Some(outlet) = self.slots.try_remove(slot) {
                self.by_id.remove(&outlet.id);
                self.forwarding.leave(slot, registry);
                outlet.leave_link(slot, links);
            }
        }
    }

    /// Passes the fresh packets of a source to its outlets.
    pub(super) fn feed(
        &mut self,
        key: SourceKey,
        graph: &mut Graph,
        (registry, links): (&Registry, &mut NodeLinks),
        now: Instant,
    ) {
        let Some(source) = graph.source(key) else {
            return;
        };
        // Messages of a peer were passed on with the labels of their channels when they arrived.
        let came = source.format.messages.is_some() && source.is.track().is_some();
        if source.outlets.is_empty() || came {
            return;
        }
        let (slots, format) = (source.outlets.clone(), source.format);
        let (clocks, round_trip) = (source.clocks, source.round_trip);
        let packets = graph.take_packets(key);
        for slot in slots {
            let Some(outlet) = self.slots.get_mut(slot) else {
                continue;
            };
            if let OutletEnd::Tap(tap) = &mut outlet.end {
                tap.report(&packets, &clocks, round_trip);
            }
            let fed = match &mut outlet.end {
                OutletEnd::Link(linked) => {
                    let cut = &mut outlet.cut;
                    feed_link(cut, linked, (key, &format), &packets, links, now)
                }
                _ => outlet.feed(key, &packets, &format, &mut self.forwarding, now),
            };
            if fed.torn {
                self.want_keyframe(slot, graph);
            }
            if let Some(encoding) = fed.wanted {
                graph.want_keyframe(key, encoding);
            }
            if fed.ended {
                self.end(slot, graph, (registry, links));
            }
        }
        graph.return_packets(key, packets);
    }

    pub(super) fn are_none(&self) -> bool {
        self.slots.is_empty()
    }

    /// Passes a message of a peer to the outlets of its data channels.
    pub(super) fn feed_message(
        &mut self,
        key: SourceKey,
        message: &DataMessage,
        graph: &mut Graph,
        (registry, links): (&Registry, &mut NodeLinks),
        now: Instant,
    ) {
        let source = graph.source(key);
        let slots: SmallVec<[usize; 2]> = source.map(|s| s.outlets.clone()).unwrap_or_default();
        for slot in slots {
            if let Some(outlet) = self.slots.get_mut(slot)
                && outlet
                    .feed_message(&message.label, &message.payload, &mut self.forwarding, now)
                    .ended
            {
                self.end(slot, graph, (registry, links));
            }
        }
    }

    fn end(&mut self, slot: usize, graph: &mut Graph, poll_and_links: (&Registry, &mut NodeLinks)) {
        if let Some(id) = self.slots.get(slot).map(|outlet| outlet.id) {
            self.remove(id, graph, poll_and_links);
        }
    }

    /// Requests a keyframe of what the outlet takes.
    pub(super) fn ask_keyframe(&self, id: RouteId, graph: &mut Graph) {
        if let Some(slot) = self.by_id.get(&id) {
            self.want_keyframe(*slot, graph);
        }
    }

    /// Returns what the outlets of a source can see.
    pub(super) fn demand(&self, source: &Source) -> Demand {
        let outlets = source
            .outlets
            .iter()
            .filter_map(|slot| self.slots.get(*slot));
        let demands = outlets.map(|outlet| outlet.cut.demand(source.format.encodings));
        demands.fold(Demand::NOTHING, Demand::union)
    }

    /// Requests a keyframe of what an outlet takes.
    pub(super) fn want_keyframe(&self, slot: usize, graph: &mut Graph) {
        let Some(outlet) = self.slots.get(slot) else {
            return;
        };
        let key = outlet.source;
        match outlet.cut.encoding() {
            Some(encoding) => graph.want_keyframe(key, encoding),
            None => graph.want_keyframes(key),
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
    ) -> FeedOutcome {
        let mut fed = FeedOutcome::default();
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
                        let handed = tap.hand_packet(packet);
                        fed.ended |= handed == Handed::Ended;
                        fed.torn |= handed == Handed::AfterGap;
                    }
                }
            }
            OutletEnd::Collect(collected) => {
                for packet in packets {
                    if let Some(taken) = self.cut.take(key, packet, format) {
                        let packet = TappedPacket::new(Arc::clone(packet), taken);
                        fed.ended |= collected.hand(packet) == Handed::Ended;
                    }
                }
            }
            // It is fed with its link.
            OutletEnd::Link(_) => {}
            OutletEnd::Forward(forwarder) => {
                let Some(out) = &mut forwarding.out else {
                    return fed;
                };
                let to = out.batch.destination(None, forwarder.options().to);
                for packet in packets {
                    if let Some(taken) = self.cut.take(key, packet, format)
                        && let Some(len) = forwarder.write(packet, &taken, out.room())
                    {
                        match &forwarder.options().socket {
                            Some(socket) => out.send_by(socket, len),
                            None => out.batch.commit(len, &to),
                        }
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
    ) -> FeedOutcome {
        let mut fed = FeedOutcome::default();
        if !self.cut.is_open() {
            return fed;
        }
        match &mut self.end {
            OutletEnd::Tap(tap) => {
                let message = TappedMessage::new(arrival, label.to_owned(), payload.clone());
                fed.ended = tap.hand_message(message) == Handed::Ended;
            }
            // Audio only, and messages cross to other nodes in another way.
            OutletEnd::Collect(_) | OutletEnd::Link(_) => {}
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
