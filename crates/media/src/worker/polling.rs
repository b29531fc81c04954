//! Polls peers: what they send and publish, and when.

use std::sync::Arc;
use std::time::Instant;

use portunus_graph::{Packet, SourceKey};
use portunus_rtc::data::DataMessage as RtcData;
use portunus_rtc::{
    Carrier, DtlsState as RtcDtls, FailReason, Feedback, IceState as RtcIce, TransportEvent,
    stun_check,
};
use portunus_rtp::Pt;

use super::Worker;
use super::guard::guarded;
use super::network::Way;
use crate::{CloseReason, DataMessage, DataPayload, DtlsState, Event, IceState};

impl Worker {
    /// Handles the deadlines of peers, and requests the keyframes that are due.
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
        self.update_demands();
    }

    /// Polls all peers that have something to do, and sets their timers.
    pub(crate) fn poll_touched(&mut self, now: Instant) {
        loop {
            while let Some(slot) = self.peers.next_touched() {
                if guarded(|| self.poll_peer(slot, now)).is_none() {
                    self.end_peer(slot, CloseReason::Internal, now);
                }
            }
            // Both give publishers something to do.
            self.ask_for_keyframes(now);
            let (peers, others) = (&mut self.peers, &self.others);
            if !self.graph.update_next_limit(peers, others, now) && !self.peers.are_touched() {
                return;
            }
        }
    }

    fn poll_peer(&mut self, slot: usize, now: Instant) {
        self.take_all_feedback(slot, now);
        self.peers.adapt(slot, &mut self.graph, now);
        self.report_pauses(slot, now);
        self.relaying().catch_up(slot, now);
        self.relaying().release_paced(slot, now);
        self.transmit(slot, now);
        // Silence is detected when reports are sent.
        self.take_all_feedback(slot, now);
        self.sample(slot, now);
        while let Some(peer) = self.peers.get_mut(slot) {
            let Some(event) = peer.connection.transport.poll_event() else {
                break;
            };
            self.take_event(slot, event, now);
        }
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let next = [peer.connection.poll_timeout(), peer.sending.poll_timeout()];
        if let Some(at) = next.into_iter().flatten().min() {
            self.peers.wake_at(slot, at);
        }
    }

    /// Reports the routes that the link has paused, and starts those that go on.
    fn report_pauses(&mut self, slot: usize, now: Instant) {
        for (route, paused) in self.peers.take_pauses(slot, &mut self.graph) {
            let id = self.graph.route(route).map(|route| route.id);
            if let (Some(id), Some(peer)) = (id, self.peers.get(slot)) {
                self.outbox
                    .send(peer.id, Event::Paused { route: id, paused });
            }
            if !paused {
                self.relaying().prime_route(route, now);
            }
        }
    }

    fn take_all_feedback(&mut self, slot: usize, now: Instant) {
        while let Some(peer) = self.peers.get_mut(slot) {
            let Some(feedback) = peer.connection.poll_feedback() else {
                return;
            };
            self.take_feedback(slot, feedback, now);
        }
    }

    /// Samples the last second of a peer, if one has passed.
    fn sample(&mut self, slot: usize, now: Instant) {
        if let Some(peer) = self.peers.get_mut(slot)
            && peer.connection.poll_second()
        {
            peer.sample(&self.graph, now);
        }
    }

    pub(super) fn transmit(&mut self, slot: usize, now: Instant) {
        let may_relay = self.network.turn.was_on();
        while let Some(peer) = self.peers.get_mut(slot) {
            let room = self.network.room();
            let Some(transmit) = peer.connection.poll_transmit(now, room) else {
                break;
            };
            let way = match transmit.carrier {
                Carrier::Udp => {
                    let (from, to) = (transmit.source, transmit.destination);
                    let is_relayed = may_relay && peer.connection.transport.is_relayed(from);
                    if let Some(check) = room.get(..transmit.len).and_then(stun_check) {
                        self.peers.note_check(now, slot, check, to);
                    }
                    match is_relayed {
                        true => self.network.turn.channel(from, to, now).map(Way::Turn),
                        false => Some(self.network.way_by_udp(from.ip(), to)),
                    }
                }
                Carrier::Tcp => {
                    let pipe = self
                        .network
                        .pipes
                        .of(peer.endpoints.pipes(), transmit.path());
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
                let state = match ice_state(state) {
                    IceState::Connected if peer.lifecycle.has_pair() => IceState::Ready,
                    // A working pair is reported when one is selected.
                    IceState::Connected => peer.lifecycle.ice(),
                    state => state,
                };
                if peer.lifecycle.set_ice(state, now) {
                    self.outbox.send(id, Event::Ice(state));
                }
            }
            TransportEvent::SelectedPair(pair) => {
                let is_first = peer.lifecycle.set_pair(now);
                let dtls = peer.lifecycle.dtls();
                self.select_way(slot, &pair, now);
                if pair.carrier == Carrier::Udp {
                    self.peers.learn_address(now, slot, pair.remote);
                }
                self.outbox.send(id, Event::SelectedPair(pair));
                if is_first {
                    self.outbox.send(id, Event::Ice(IceState::Connected));
                    self.outbox.send(id, Event::Ice(IceState::Ready));
                    if dtls == Some(DtlsState::Trying) {
                        self.outbox.send(id, trying());
                    }
                }
            }
            TransportEvent::RemoteAddress(address) => self.peers.learn_address(now, slot, address),
            TransportEvent::Dtls(state) => {
                let state = match state {
                    RtcDtls::Trying => DtlsState::Trying,
                    RtcDtls::Connected => DtlsState::Connected,
                    RtcDtls::Failed => DtlsState::Failed,
                };
                peer.lifecycle.set_dtls(state);
                let counters = peer.connection.transport.counters();
                let event = Event::Dtls {
                    state,
                    retransmissions: counters.dtls_retransmissions,
                };
                // DTLS may start before a pair is selected. It is reported after the pair.
                match (peer.lifecycle.has_pair(), state) {
                    (true, _) => {}
                    (false, DtlsState::Trying) => return,
                    (false, _) => self.outbox.send(id, trying()),
                }
                self.outbox.send(id, event);
            }
            TransportEvent::Connected { profile } => {
                let srtp_profile = profile.map_or("", |profile| profile.name());
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
                    let graph = &mut self.graph;
                    let with = (self.poller.registry(), &mut self.node_links);
                    self.outlets.feed_message(key, &message, graph, with, now);
                }
                if !self.take_message(slot, &message, now) {
                    self.outbox.send(id, Event::Data(message));
                }
            }
            TransportEvent::DataChannelClosed { .. } | TransportEvent::DataWritable => {}
            TransportEvent::Failed(FailReason::Ice(attempt)) => {
                let reason = match attempt.was_connected {
                    true => CloseReason::ConsentLost(attempt.into()),
                    false => CloseReason::IceFailed(attempt.into()),
                };
                self.end_peer(slot, reason, now);
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
                if let Some(peer) = self.peers.get_mut(slot) {
                    peer.record.set_remb(bitrate);
                }
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
                    let round_trip = peer.connection.round_trip();
                    self.graph.set_clock(source, encoding, clock, &self.others);
                    if let Some(source) = self.graph.source_mut(source) {
                        source.round_trip = round_trip;
                    }
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

    /// Relays a message of a peer. Returns false if there are no routes from its data channels.
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
        // Empty messages are not relayed.
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

    /// The source of a peer's data channels, if it is in use.
    pub(super) fn messages_of(&self, slot: usize) -> Option<SourceKey> {
        let track = self.peers.data_track(slot)?;
        self.graph.key(track.into())
    }
}

/// The start of the handshake.
fn trying() -> Event {
    Event::Dtls {
        state: DtlsState::Trying,
        retransmissions: 0,
    }
}

fn ice_state(state: RtcIce) -> IceState {
    match state {
        RtcIce::New => IceState::Gathering,
        RtcIce::Checking => IceState::Connecting,
        RtcIce::Connected | RtcIce::Completed => IceState::Connected,
        RtcIce::Disconnected => IceState::Disconnected,
    }
}
