//! Peers: datagrams in, what they transmit and tell, and their end.

use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Instant;

use portunus_rtc::connection::{Incoming, Received, Refusal};
use portunus_rtc::data::DataMessage as RtcData;
use portunus_rtc::{
    Carrier, DtlsState as RtcDtls, FailReason, Feedback, IceState as RtcIce, Path, TransportEvent,
    stun_check,
};

use smallvec::SmallVec;

use super::network::Way;
use super::{Worker, handshakes};
use crate::command::Command;
use crate::graph::{self, Packet, SourceKey};
use crate::plane::{PeerId, RouteId};
use crate::{CloseReason, DataMessage, DataPayload, DtlsState, Event, IceState, SourceRef};
use portunus_rtp::Pt;

/// Bytes of the largest packet that is relayed: with extensions and tag it still fits a datagram of ours.
const MAX_PACKET: usize = 1_800;

impl Worker {
    /// Takes one datagram.
    pub(crate) fn take_datagram(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        datagram: &mut [u8],
    ) {
        match self.peers.sender(remote, datagram) {
            None => self.counters.unknown_peer(),
            Some(slot) if handshakes::is_handshake(datagram) => {
                self.take_handshake(now, slot, Path::udp(local, remote), datagram);
            }
            Some(slot) => {
                self.give_datagram(now, slot, Path::udp(local, remote), datagram);
            }
        }
    }

    /// Gives a datagram to its peer; says whether that took it.
    pub(super) fn give_datagram(
        &mut self,
        now: Instant,
        slot: usize,
        path: Path,
        datagram: &mut [u8],
    ) -> bool {
        let taken = guarded(|| self.take_of_peer(now, slot, path, datagram));
        let Some(taken) = taken else {
            self.end_peer(slot, CloseReason::Internal, now);
            return false;
        };
        self.peers.touch(slot);
        taken
    }

    fn take_of_peer(&mut self, now: Instant, slot: usize, path: Path, datagram: &mut [u8]) -> bool {
        let Some(peer) = self.peers.get_mut(slot) else {
            self.counters.unknown_peer();
            return false;
        };
        match peer.connection.receive_by(now, path, datagram) {
            Received::Consumed => self.peers.learn_again(now, slot, path, datagram),
            Received::Refused(refusal) => {
                peer.refused += 1;
                self.counters.refuse(refusal);
                return false;
            }
            Received::Rtp(incoming) => self.take_packet(now, slot, &incoming, datagram),
        }
        true
    }

    /// Hands a packet to its source, if anybody relays it.
    fn take_packet(&mut self, now: Instant, slot: usize, incoming: &Incoming, datagram: &[u8]) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let extensions = *peer.connection.extensions();
        let Some(track) = peer.tracks.get_mut(incoming.media) else {
            return;
        };
        let (Some(key), Some(data)) = (track.source, datagram.get(incoming.range.clone())) else {
            return;
        };
        if track.ears.are_open()
            && let Some(level) = graph::level(&incoming.header, data, &extensions)
        {
            let media = peer.connection.media().get(incoming.media);
            let mid = media.map(|media| media.mid);
            for heard in track.ears.hear(level, now).into_iter().rev() {
                if let Some(mid) = mid {
                    self.outbox.send(peer.id, heard.event(mid));
                }
            }
        }
        if data.len() > MAX_PACKET {
            peer.refused += 1;
            self.counters.refuse(Refusal::MalformedRtp);
            return;
        }
        let Some(inspector) = track.inspectors.get_mut(usize::from(incoming.encoding)) else {
            return;
        };
        self.graph.take_in(key, |source| {
            if !source.is_wanted() {
                return;
            }
            let Some(mut shared) = source.recycle(incoming.encoding, incoming.seq, now) else {
                return;
            };
            let Some(packet) = Arc::get_mut(&mut shared) else {
                return;
            };
            packet.fill(data);
            packet.header = incoming.header;
            packet.seq = incoming.seq;
            packet.encoding = incoming.encoding;
            packet.generation = incoming.generation;
            packet.codec = incoming.codec;
            packet.is_opaque = peer.is_opaque;
            packet.arrival = now;
            packet.set_extensions(extensions);
            packet.describe(inspector.inspect(incoming.codec, &incoming.header, data, &extensions));
            if packet.layers.keyframe && packet.layers.start && packet.tells_keyframes() {
                peer.connection
                    .keyframe_came(incoming.media, incoming.encoding);
            }
            source.even_out(packet);
            source.push(shared, now);
        });
    }

    /// Peers whose deadline has come, and sources of which keyframes are due.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        self.peers.expire_checks(now);
        while let Some(slot) = self.peers.next_due(now) {
            let Some(peer) = self.peers.get_mut(slot) else {
                continue;
            };
            if guarded(|| peer.connection.handle_timeout(now)).is_none() {
                self.end_peer(slot, CloseReason::Internal, now);
                continue;
            }
            self.peers.touch(slot);
        }
        self.graph.ask_at_intervals(&mut self.peers, now);
        self.ask_for_keyframes(now);
    }

    /// Lets all touched peers transmit and tell, and sets their timers.
    pub(crate) fn poll_touched(&mut self, now: Instant) {
        loop {
            while let Some(slot) = self.peers.next_touched() {
                if guarded(|| self.poll_peer(slot, now)).is_none() {
                    self.end_peer(slot, CloseReason::Internal, now);
                }
            }
            // Both touch publishers.
            self.ask_for_keyframes(now);
            let (peers, others) = (&mut self.peers, &self.others);
            if !self.graph.update_next_limit(peers, others, now) && !self.peers.are_touched() {
                return;
            }
        }
    }

    fn poll_peer(&mut self, slot: usize, now: Instant) {
        while let Some(peer) = self.peers.get_mut(slot) {
            let Some(feedback) = peer.connection.poll_feedback() else {
                break;
            };
            self.take_feedback(slot, feedback, now);
        }
        self.peers.adapt(slot, &mut self.graph, now);
        self.relaying().catch_up(slot, now);
        self.relaying().release_paced(slot, now);
        self.transmit(slot, now);
        while let Some(peer) = self.peers.get_mut(slot) {
            let Some(event) = peer.connection.transport.poll_event() else {
                break;
            };
            self.take_event(slot, event, now);
        }
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let adaptation = peer.adaptation.as_ref().and_then(|a| a.poll_timeout());
        let pacer = peer.pacer.as_deref();
        let behind = peer.behind.as_ref().and_then(|b| b.poll_timeout(pacer));
        let pacer = pacer.and_then(|p| p.poll_timeout());
        let next = [peer.connection.poll_timeout(), adaptation, pacer, behind];
        if let Some(at) = next.into_iter().flatten().min() {
            self.peers.wake_at(slot, at);
        }
    }

    fn transmit(&mut self, slot: usize, now: Instant) {
        while let Some(peer) = self.peers.get_mut(slot) {
            let room = self.network.room();
            let Some(transmit) = peer.connection.poll_transmit(now, room) else {
                break;
            };
            let way = match transmit.carrier {
                Carrier::Udp => {
                    let (from, to) = (transmit.source.ip(), transmit.destination);
                    if let Some(check) = room.get(..transmit.len).and_then(stun_check) {
                        self.peers.note_check(now, slot, check, to);
                    }
                    Some(self.network.way_by_udp(from, to))
                }
                Carrier::Tcp => {
                    let pipe = self.network.pipes.of(&peer.pipes, transmit.path());
                    pipe.map(Way::Tcp)
                }
            };
            if let Some(way) = way {
                self.network.commit(transmit.len, &way);
            }
        }
    }

    fn take_event(&mut self, slot: usize, event: TransportEvent, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let id = peer.id;
        match event {
            TransportEvent::Ice(state) => {
                let state = ice_state(state);
                if peer.ice != state {
                    peer.ice = state;
                    self.outbox.send(id, Event::Ice(state));
                }
            }
            TransportEvent::SelectedPair(pair) => {
                self.select_way(slot, &pair);
                if pair.carrier == Carrier::Udp {
                    self.peers.learn_address(now, slot, pair.remote);
                }
                self.outbox.send(id, Event::SelectedPair(Path::from(&pair)));
            }
            TransportEvent::RemoteAddress(address) => self.peers.learn_address(now, slot, address),
            TransportEvent::Dtls(state) => {
                let state = match state {
                    RtcDtls::Trying => DtlsState::Trying,
                    RtcDtls::Connected => DtlsState::Connected,
                    RtcDtls::Failed => DtlsState::Failed,
                };
                peer.dtls = Some(state);
                self.outbox.send(id, Event::Dtls(state));
            }
            TransportEvent::Connected { profile } => {
                peer.ice = IceState::Ready;
                let srtp_profile = profile.map_or("", |profile| profile.name());
                self.outbox.send(id, Event::Ice(IceState::Ready));
                self.relaying().prime_peer(slot, now);
                self.outbox.send(id, Event::Connected { srtp_profile });
            }
            TransportEvent::DataChannelOpen { label, protocol } => {
                self.outbox.send(id, Event::DataChannel { label, protocol });
            }
            TransportEvent::Data {
                label,
                protocol,
                message,
            } => {
                let payload = match message {
                    RtcData::Text(text) => DataPayload::Text(text),
                    RtcData::Binary(bytes) => DataPayload::Binary(bytes),
                };
                let message = DataMessage {
                    label,
                    protocol,
                    payload,
                };
                if !self.outlets.are_none()
                    && let Some(key) = self.messages_of(slot)
                {
                    let graph = (&mut self.graph, self.poller.registry());
                    self.outlets.feed_message(key, &message, graph, now);
                }
                if !self.take_message(slot, &message, now) {
                    self.outbox.send(id, Event::Data(message));
                }
            }
            TransportEvent::DataChannelClosed { .. } | TransportEvent::DataWritable => {}
            TransportEvent::Failed(FailReason::Ice(failure)) => {
                self.end_peer(slot, CloseReason::IceFailed(failure.to_string()), now);
            }
            TransportEvent::Failed(FailReason::Dtls(error)) => {
                self.end_peer(slot, CloseReason::DtlsFailed(error.to_string()), now);
            }
            TransportEvent::Closed => self.end_peer(slot, CloseReason::DtlsAlert, now),
        }
    }

    fn take_feedback(&mut self, slot: usize, feedback: Feedback, now: Instant) {
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        let id = peer.id;
        let media = |index: usize| peer.connection.media().get(index);
        match feedback {
            Feedback::Nack { media, seq } => {
                self.relaying().send_again(slot, media, seq, now);
            }
            Feedback::Keyframe { media } => {
                let sink = peer.tracks.get(media).and_then(|track| track.sink.as_ref());
                let route = sink.and_then(|sink| self.graph.route(sink.route?));
                if let Some((source, encoding)) = route.map(|r| (r.source, r.selector.encoding())) {
                    self.graph.want_keyframe(source, encoding.unwrap_or(0));
                }
            }
            Feedback::Remb(bitrate) => {
                self.note_viewer_bitrate(slot, bitrate, now);
                self.outbox.send(id, Event::Remb { bitrate });
            }
            Feedback::SenderReport {
                media,
                encoding,
                clock,
            } => {
                let source = peer.tracks.get(media).and_then(|track| track.source);
                if let Some(source) = source {
                    self.graph.set_clock(source, encoding, clock, &self.others);
                }
            }
            Feedback::Receiving {
                media: index,
                encoding,
                receiving,
            } => {
                let Some(media) = media(index) else { return };
                let audio = media.kind == portunus_sdp::negotiated::Kind::Audio;
                let substream = (media.encodings > 1).then_some(encoding);
                let mid = media.mid;
                self.outbox.send(
                    id,
                    Event::Media {
                        mid,
                        audio,
                        receiving,
                        substream,
                    },
                );
            }
            Feedback::SlowLink {
                media: index,
                uplink,
                lost,
            } => {
                let Some(media) = media(index) else { return };
                let audio = media.kind == portunus_sdp::negotiated::Kind::Audio;
                let mid = media.mid;
                self.outbox.send(
                    id,
                    Event::SlowLink {
                        mid,
                        audio,
                        uplink,
                        lost,
                    },
                );
            }
        }
    }

    /// Ends a peer at the control plane's request: it is told.
    pub(super) fn close_peer(&mut self, peer: PeerId, now: Instant) {
        let Some(slot) = self.peers.slot(peer) else {
            return;
        };
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.connection.transport.close();
        }
        self.transmit(slot, now);
        self.end_peer(slot, CloseReason::Requested, now);
    }

    /// Forgets a peer with its sources, sinks and routes.
    pub(super) fn end_peer(&mut self, slot: usize, reason: CloseReason, now: Instant) {
        let Some(peer) = self.peers.remove(slot) else {
            return;
        };
        self.close_pipes_of(&peer);
        let id = |slot: &usize| Some(self.graph.route(*slot)?.id);
        let fed: SmallVec<[RouteId; 4]> = peer.routes.iter().filter_map(id).collect();
        for route in fed {
            self.remove_route(route, now);
        }
        for key in &peer.sources {
            if let Some(is) = self.graph.source(*key).map(|source| source.is) {
                self.end_source(is, now);
            }
        }
        self.outbox.send(peer.id, Event::Closed(reason));
    }

    /// Ends a route, or an outlet.
    pub(super) fn remove_route(&mut self, id: RouteId, now: Instant) {
        let (peers, others) = (&mut self.peers, &self.others);
        if !self.graph.remove_route(id, peers, others, now) {
            let registry = self.poller.registry();
            self.outlets.remove(id, &mut self.graph, registry);
        }
    }

    /// Ends a source and all its routes, here and on other workers.
    pub(super) fn end_source(&mut self, is: SourceRef, now: Instant) {
        let Some(key) = self.graph.key(is) else {
            return;
        };
        let (watchers, routes) = self.graph.take_audience(key);
        for worker in watchers {
            self.others.send(worker, Command::SourceGone { source: is });
        }
        for route in routes {
            self.remove_route(route, now);
        }
        let registry = self.poller.registry();
        self.outlets.end_all(key, &mut self.graph, registry);
        self.graph.remove_source(is, &mut self.peers);
    }

    /// Relays a message of a peer; false if no route begins at its data channels.
    fn take_message(&mut self, slot: usize, message: &DataMessage, now: Instant) -> bool {
        let Some(key) = self.messages_of(slot) else {
            return false;
        };
        let Some(source) = self.graph.source_mut(key) else {
            return false;
        };
        let Some(messages) = source.format.messages else {
            return false;
        };
        if source.routes.is_empty() && source.watchers.is_empty() {
            return false;
        }
        let (pt, bytes) = match &message.payload {
            DataPayload::Text(text) => (Pt(0), text.as_bytes()),
            DataPayload::Binary(bytes) => (Pt(1), bytes.as_slice()),
        };
        // An empty one says nothing: it is not relayed.
        let packet = Packet::of_message(pt, bytes, now).filter(|_| !bytes.is_empty());
        let Some(packet) = packet else {
            self.counters.message_dropped();
            return true;
        };
        source.push(Arc::new(packet), now);
        self.graph
            .pass_on(key, &mut self.others, &mut self.counters);
        self.relaying().relay_messages(key, messages, now);
        true
    }

    /// The source that a peer's data channels are, if anybody has asked for it.
    pub(super) fn messages_of(&self, slot: usize) -> Option<SourceKey> {
        let track = self.peers.data_track(slot)?;
        self.graph.key(track.into())
    }
}

/// Runs what bytes of one peer led to. A panic in it is a fault of ours that costs this peer only: the
/// caller ends it, so that nothing goes on with its half-changed state.
pub(super) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    outcome
        .inspect_err(|_| tracing::error!("a peer is ended: its packets led to a fault"))
        .ok()
}

fn ice_state(state: RtcIce) -> IceState {
    match state {
        RtcIce::New => IceState::Gathering,
        RtcIce::Checking => IceState::Connecting,
        RtcIce::Connected | RtcIce::Completed => IceState::Connected,
        RtcIce::Disconnected => IceState::Disconnected,
    }
}
