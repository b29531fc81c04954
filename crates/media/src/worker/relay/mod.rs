//! The fan-out: makes the datagrams of all sinks from the packets of a source.

mod catch_up;
mod companions;
mod messages;
mod pacing;
mod prefetch;
mod repair;

use std::sync::Arc;
use std::time::Instant;

use portunus_graph::{Packet, Part, Selection, Source, SourceKey, Stamp};
use portunus_rtc::streams::Burst;
use portunus_rtp::extension::AbsSendTime;
use smallvec::SmallVec;

use super::counters::Counters;
use super::graph::{Graph, Route, RouteState};
use super::network::{Network, Way};
use super::outbox::Outbox;
use super::peers::{Peer, Peers};
use crate::{Event, Layer, LayerReason};

/// The parts of a worker that relaying needs.
pub(super) struct Relaying<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) peers: &'a mut Peers,
    pub(super) network: &'a mut Network,
    pub(super) outbox: &'a mut Outbox,
    pub(super) counters: &'a mut Counters,
}

impl Relaying<'_> {
    /// Relays packets of a source to one route.
    fn relay_to(
        &mut self,
        slot: usize,
        key: SourceKey,
        packets: &[Arc<Packet>],
        times: (Instant, AbsSendTime),
    ) {
        self.relay_with(slot, key, times, |relay| relay.send_all(packets));
    }

    /// Prepares relaying to one route, and calls `send`, which returns whether the peer has to be
    /// polled.
    #[inline]
    fn relay_with(
        &mut self,
        slot: usize,
        key: SourceKey,
        (now, send_time): (Instant, AbsSendTime),
        send: impl FnOnce(&mut Relay<'_>) -> bool,
    ) {
        let Some((route, source)) = self.graph.relayed(slot, key) else {
            return;
        };
        let Some((peer_slot, media)) = route.sink.filter(|_| route.wanted.enabled) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(peer_slot) else {
            return;
        };
        let mut relay = Relay {
            key,
            source,
            slot,
            route,
            peer,
            media,
            network: self.network,
            counters: self.counters,
            send_time,
            now,
        };
        let armed = send(&mut relay);
        let (changed, wanted) = relay.finish();
        let (id, peer_id) = (route.id, peer.id);
        if armed {
            self.peers.touch(peer_slot);
        }
        if let Some((layer, reason)) = changed {
            self.counters.layer_changed(reason);
            let route = id;
            self.outbox.send(
                peer_id,
                Event::Layer {
                    route,
                    layer,
                    reason,
                },
            );
        }
        if let Some(encoding) = wanted {
            self.graph.want_keyframe(key, encoding);
        }
    }

    /// Starts the sinks of a peer that is connected now with what their sources keep.
    pub(super) fn prime_peer(&mut self, slot: usize, now: Instant) {
        let routes = self.peers.get(slot).map(|peer| peer.routes.clone());
        for route in routes.unwrap_or_default() {
            self.prime_route(route, now);
        }
    }

    /// Starts a route that can relay now with what its source keeps, or requests a keyframe.
    pub(super) fn prime_route(&mut self, slot: usize, now: Instant) {
        let Some(key) = self.graph.route(slot).map(|route| route.source) else {
            return;
        };
        let Some((route, source)) = self.graph.relayed(slot, key) else {
            return;
        };
        let peer = route.sink.and_then(|(peer, _)| self.peers.get(peer));
        let is_connected = peer.is_some_and(|peer| peer.connection.transport.is_connected());
        if route.state != RouteState::New || !route.wanted.enabled || !is_connected {
            return;
        }
        if let Some(messages) = source.format.messages {
            route.state = RouteState::Live;
            let last: SmallVec<[Arc<Packet>; 1]> = source.cached().iter().cloned().collect();
            self.send_messages(slot, messages, &last, now);
            return;
        }
        let has_picture = source.has_picture(now);
        // Fresh packets are relayed in a moment, after the kept ones.
        let holds = !source.fresh.is_empty();
        if !has_picture {
            self.graph.want_keyframes(key);
        }
        if holds {
            return;
        }
        self.relay_to(slot, key, &[], (now, self.network.send_time(now)));
    }
}

/// Relaying to one route.
struct Relay<'a> {
    key: SourceKey,
    source: &'a Source,
    /// The slot of the route.
    slot: usize,
    route: &'a mut Route,
    peer: &'a mut Peer,
    media: usize,
    network: &'a mut Network,
    counters: &'a mut Counters,
    send_time: AbsSendTime,
    now: Instant,
}

impl Relay<'_> {
    /// Relays what the route selects, unless it catches up. Returns whether the peer has to be
    /// polled, for its next report or a paced packet.
    fn send_all(&mut self, mut packets: &[Arc<Packet>]) -> bool {
        let way = self.way();
        let mut burst = Burst::default();
        let mut waits = false;
        if self.route.state != RouteState::Live {
            (packets, waits) = self.keep_back(packets, way.as_ref(), &mut burst);
        }
        self.send_each(packets, way.as_ref(), &mut burst);
        waits |= self.peer.sending.pacer().is_some_and(|p| !p.is_empty());
        self.peer.connection.sent(self.media, &burst, self.now) || waits
    }

    fn send_each(&mut self, packets: &[Arc<Packet>], way: Option<&Way>, burst: &mut Burst) {
        let encodings = self.source.format.encodings;
        for packet in packets {
            let Route {
                selector, wanted, ..
            } = &mut *self.route;
            let selection = selector.select(packet, encodings, wanted);
            if self.peer.sending.pacer().is_some() {
                self.pace(packet, selection, way, burst);
                continue;
            }
            match selection {
                // Drops padding, keep-alives, and packets that the peer has no payload type for.
                Selection::Forward(_) if packet.payload().is_empty() || !self.takes(packet) => {
                    self.skip(packet);
                }
                Selection::Forward(part) => {
                    // Without keys, codec or way, the packet is lost like any other.
                    let _ = way.and_then(|way| self.send(packet, part, way, burst));
                }
                Selection::Skip => self.skip(packet),
                Selection::Other => {}
            }
        }
    }

    /// Whether the sink has a payload type for a packet, or does not exist yet.
    #[inline]
    fn takes(&self, packet: &Packet) -> bool {
        let track = self.peer.tracks.get(self.media);
        let sink = track.and_then(|track| track.sink.as_ref());
        sink.is_none_or(|sink| sink.takes(packet))
    }

    fn skip(&mut self, packet: &Packet) {
        if let Some(sink) = self
            .peer
            .tracks
            .get_mut(self.media)
            .and_then(|track| track.sink.as_mut())
        {
            sink.numbering.skip(self.key, packet);
        }
    }

    /// Returns the way to the peer, once it is connected and takes media.
    fn way(&mut self) -> Option<Way> {
        let transport = &self.peer.connection.transport;
        let sink = self.peer.tracks.get(self.media)?.sink.as_ref()?;
        let pair = transport.selected_pair()?;
        if !sink.sends || sink.route != Some(self.slot) {
            return None;
        }
        transport.profile()?;
        self.network.way(pair, self.peer.link)
    }

    #[inline]
    fn send(&mut self, packet: &Packet, part: Part, way: &Way, burst: &mut Burst) -> Option<usize> {
        let connection = &mut self.peer.connection;
        let sink = self.peer.tracks.get_mut(self.media)?.sink.as_mut()?;
        let clock_rate = sink.clock_rate;
        let sent = sink.numbering.forward(self.key, packet, clock_rate, part)?;
        let transport_seq = connection.next_transport_seq();
        let stamp = Stamp {
            send_time: self.send_time,
            transport_seq,
            playout_delay: self.route.options.playout_delay,
        };
        let room = self.network.room();
        let parts = sink.write(packet, &sent, &stamp, room)?;
        let ((header_len, len), tail) = parts;
        let bytes = (len - header_len + tail.len()).saturating_sub(packet.padding.into());
        let timestamp = packet.header.timestamp.wrapping_add(sent.timestamp_offset);
        let sealed = connection.seal_rtp(sent.out, parts, room).ok()?;
        self.network.commit(sealed, way);
        if self.peer.sending.is_recorded() && sink.is_numbered {
            connection.record_sent(transport_seq, sealed, self.now);
        }
        burst.add(sent.out, timestamp, bytes);
        let numbering = (packet.encoding, sent.timestamp_offset);
        if self.route.clock_of != Some(numbering) {
            self.route.clock_of = Some(numbering);
            let clock = self
                .source
                .clocks
                .get(usize::from(packet.encoding))
                .copied()
                .flatten();
            let clock = clock.map(|mut clock| {
                clock.timestamp = clock.timestamp.wrapping_add(sent.timestamp_offset);
                clock
            });
            connection.set_source_clock(self.media, clock);
        }
        Some(sealed)
    }

    /// Returns a change of the layers, and the encoding that a keyframe is needed of.
    fn finish(self) -> (Option<(Layer, LayerReason)>, Option<u8>) {
        let (encodings, now) = (self.source.format.encodings, self.now);
        let Route {
            selector,
            options,
            wanted,
            decision,
            ..
        } = self.route;
        let changed = selector.take_change(encodings).map(|layer| {
            let chosen = decision.map(|decision| decision.reason);
            let reason = selector.reason(encodings, (options, wanted), chosen, now);
            (layer, reason)
        });
        (changed, selector.keyframe_wanted(encodings, wanted, now))
    }
}
