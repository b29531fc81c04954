//! Peers: datagrams in, what they transmit and tell, and their end.

use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use portunus_rtc::connection::{Incoming, Received, Refusal};
use portunus_rtc::data::DataMessage as RtcData;
use portunus_rtc::{
    Carrier, DtlsState as RtcDtls, FailReason, Feedback, IceState as RtcIce, Path, Protocol,
    SelectedPair, TransportEvent, stun_answer, stun_check, stun_username,
};

use smallvec::SmallVec;

use super::network::Way;
use super::{Worker, handshakes};
use crate::graph;
use crate::plane::{PeerId, RouteId};
use crate::{CloseReason, DataMessage, DataPayload, DtlsState, Event, IceState};

/// Addresses by which a peer is found.
const MAX_ADDRESSES: usize = 32;
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
        let known = self.by_address.get(&remote).copied();
        let slot = match Protocol::of(datagram) {
            // What it says is more than an address: a NAT may give one to two peers in turn.
            Some(Protocol::Stun) => self.named_by_stun(remote, datagram).or(known),
            _ => known,
        };
        match slot {
            None => self.counters.unknown_peer(),
            Some(slot) if handshakes::is_handshake(datagram) => {
                self.take_handshake(now, slot, Path::udp(local, remote), datagram);
            }
            Some(slot) => {
                self.give_datagram(now, slot, Path::udp(local, remote), datagram);
            }
        }
    }

    /// The peer whose user fragment a check has, or whose own check is answered.
    fn named_by_stun(&self, remote: SocketAddr, datagram: &[u8]) -> Option<usize> {
        if let Some(ufrag) = stun_username(datagram) {
            return self.by_ufrag.get(ufrag).copied();
        }
        self.slot(self.checks.peer(stun_answer(datagram)?, remote)?)
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
        self.tell_what_was_heard();
        self.touch(slot);
        taken
    }

    fn take_of_peer(&mut self, now: Instant, slot: usize, path: Path, datagram: &mut [u8]) -> bool {
        let Some(peer) = self.peers.get_mut(slot) else {
            self.counters.unknown_peer();
            return false;
        };
        match peer.connection.receive_by(now, path, datagram) {
            Received::Consumed => self.learn_again(now, slot, path, datagram),
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
            let heard = track.ears.hear(level, now);
            let heard = heard.into_iter();
            self.heard
                .extend(heard.map(|heard| (slot, incoming.media, heard)));
        }
        if data.len() > MAX_PACKET {
            peer.refused += 1;
            self.counters.refuse(Refusal::MalformedRtp);
            return;
        }
        let Some(source) = self
            .sources
            .get_mut(key.0)
            .filter(|source| source.is_wanted())
        else {
            return;
        };
        let Some(inspector) = track.inspectors.get_mut(usize::from(incoming.encoding)) else {
            return;
        };
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
        if source.fresh.is_empty() {
            self.fresh_sources.push(key);
        }
        source.push(shared, now);
    }

    /// Peers whose deadline has come, and sources of which keyframes are due.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        self.checks.expire(now);
        while let Some((at, slot)) = self.timers.pop_due(now) {
            let Some(peer) = self
                .peers
                .get_mut(slot)
                .filter(|peer| peer.timer == Some(at))
            else {
                continue;
            };
            peer.timer = None;
            if guarded(|| peer.connection.handle_timeout(now)).is_none() {
                self.end_peer(slot, CloseReason::Internal, now);
                continue;
            }
            self.touch(slot);
        }
        self.ask_at_intervals(now);
    }

    /// Lets all touched peers transmit and tell, and sets their timers.
    pub(crate) fn poll_touched(&mut self, now: Instant) {
        loop {
            while let Some(slot) = self.touched_peers.pop() {
                if let Some(peer) = self.peers.get_mut(slot) {
                    peer.touched = false;
                    if guarded(|| self.poll_peer(slot, now)).is_none() {
                        self.end_peer(slot, CloseReason::Internal, now);
                    }
                }
            }
            // That touches publishers.
            let Some(source) = self.limited.pop() else {
                return;
            };
            self.update_limit(source, now);
        }
    }

    fn poll_peer(&mut self, slot: usize, now: Instant) {
        while let Some(peer) = self.peers.get_mut(slot) {
            let Some(feedback) = peer.connection.poll_feedback() else {
                break;
            };
            self.take_feedback(slot, feedback, now);
        }
        self.adapt(slot, now);
        self.catch_up(slot, now);
        self.release_paced(slot, now);
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
        let next = next.into_iter().flatten().min();
        // An earlier entry in the timers does no harm: it polls the peer once more.
        if let Some(at) = next
            && peer.timer.is_none_or(|timer| at < timer)
        {
            peer.timer = Some(at);
            self.timers.set(slot, at);
        }
    }

    fn transmit(&mut self, slot: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        loop {
            let room = self.network.room();
            let Some(transmit) = peer.connection.poll_transmit(now, room) else {
                break;
            };
            let way = match transmit.carrier {
                Carrier::Udp => {
                    let (from, to) = (transmit.source.ip(), transmit.destination);
                    let check = room.get(..transmit.len).and_then(stun_check);
                    // What comes from where the peer is known finds it by the address.
                    if let Some(check) = check
                        && self.by_address.get(&to) != Some(&slot)
                    {
                        self.checks.note(now, check, peer.id, to);
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
                    self.learn_address(now, slot, pair.remote);
                }
                self.outbox.send(id, Event::SelectedPair(Path::from(&pair)));
            }
            TransportEvent::RemoteAddress(address) => self.learn_address(now, slot, address),
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
                self.prime_peer(slot, now);
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
                self.feed_message(slot, &message, now);
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

    /// An authentic check came from an address that was another's when it came first: that one may be gone.
    fn learn_again(&mut self, now: Instant, slot: usize, path: Path, datagram: &[u8]) {
        let is_stun = datagram.first().is_some_and(|first| *first < 4);
        let is_new = is_stun && self.by_address.get(&path.remote) != Some(&slot);
        if is_new && path.carrier == Carrier::Udp {
            self.learn_address(now, slot, path.remote);
        }
    }

    /// A peer's datagrams may come from `address`. A check may come with a forged one: the address of a peer that is
    /// connected stays with it, until another has answered from there and it does not.
    fn learn_address(&mut self, now: Instant, slot: usize, address: SocketAddr) {
        let is_used = |pair: &SelectedPair| pair.carrier == Carrier::Udp && pair.remote == address;
        // A lite agent asks nobody, and takes a forged check's word.
        let asks = !self.setup.ice_lite;
        let newcomer = self.peers.get(slot).map(|peer| &peer.connection.transport);
        let answered = newcomer.and_then(|new| new.selected_pair().filter(|_| asks));
        let is_sure = answered.is_some_and(is_used);
        let owner = self.by_address.get(&address);
        let owner = owner.filter(|owner| **owner != slot);
        let owner = owner.and_then(|owner| self.peers.get(*owner));
        let is_taken = owner.is_some_and(|owner| {
            let transport = &owner.connection.transport;
            let uses = transport.selected_pair().is_some_and(is_used);
            if is_sure {
                // Both can be there, on a server that is lite. Only one can be told from the other.
                uses && transport.is_answered(now)
            } else {
                uses || transport.is_connected()
            }
        });
        let Some(peer) = self.peers.get_mut(slot).filter(|_| !is_taken) else {
            return;
        };
        if !peer.addresses.contains(&address) {
            if peer.addresses.len() >= MAX_ADDRESSES {
                let selected = peer.connection.transport.selected_pair();
                let used = selected.map(|pair| pair.remote);
                let oldest = peer.addresses.iter().position(|at| Some(*at) != used);
                let oldest = peer.addresses.remove(oldest.unwrap_or_default());
                if self.by_address.get(&oldest) == Some(&slot) {
                    self.by_address.remove(&oldest);
                }
            }
            peer.addresses.push(address);
        }
        self.by_address.insert(address, slot);
    }

    fn take_feedback(&mut self, slot: usize, feedback: Feedback, now: Instant) {
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        let id = peer.id;
        let media = |index: usize| peer.connection.media().get(index);
        match feedback {
            Feedback::Nack { media, seq } => self.send_again(slot, media, seq, now),
            Feedback::Keyframe { media } => {
                let sink = peer.tracks.get(media).and_then(|track| track.sink.as_ref());
                let route = sink.and_then(|sink| self.routes.get(sink.route?));
                if let Some((source, encoding)) = route.map(|r| (r.source, r.selector.encoding())) {
                    self.want_keyframe(source, encoding.unwrap_or(0), now);
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
                    self.set_source_clock(source, encoding, clock);
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
        let Some(slot) = self.by_id.get(&peer).copied() else {
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
        let Some(peer) = self.peers.try_remove(slot) else {
            return;
        };
        self.by_id.remove(&peer.id);
        self.close_pipes_of(&peer);
        for ufrag in &peer.ufrags {
            if self.by_ufrag.get(ufrag) == Some(&slot) {
                self.by_ufrag.remove(ufrag);
            }
        }
        for address in &peer.addresses {
            if self.by_address.get(address) == Some(&slot) {
                self.by_address.remove(address);
            }
        }
        let id = |slot: &usize| Some(self.routes.get(*slot)?.id);
        let fed: SmallVec<[RouteId; 4]> = peer.routes.iter().filter_map(id).collect();
        for route in fed {
            self.remove_route(route, now);
        }
        for key in &peer.sources {
            if let Some(is) = self.sources.get(key.0).map(|source| source.is) {
                self.end_source(is, now);
            }
        }
        self.setup.peer_count.fetch_sub(1, Ordering::Relaxed);
        self.outbox.send(peer.id, Event::Closed(reason));
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
