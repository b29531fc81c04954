//! What the control plane and other workers ask of a worker.

use std::time::{Duration, Instant};

use portunus_rtc::data::{DataOptions, DataPayload as RtcPayload};
use portunus_rtc::streams::SenderClock;
use portunus_rtc::{Connection, TransportConfig};
use portunus_sdp::negotiated::{IceCredentials, Kind, Negotiated};
use smallvec::SmallVec;

use super::Worker;
use super::peer::{Peer, Route, Track};
use crate::command::Command;
use crate::graph::{Selector, Sink, Source, SourceFormat, SourceKey};
use crate::plane::{PeerId, RouteId};
use crate::{
    DataMessage, DataPayload, IceState, MediaStats, PeerStats, RouteOptions, StreamStats, TrackRef,
};

/// What a source's history spans; that of another worker's source is shorter, so that the owner can
/// use its buffers again.
const HISTORY: Duration = Duration::from_millis(1_000);
const HISTORY_ELSEWHERE: Duration = Duration::from_millis(600);

/// User fragments by which a peer is found: the present one, and those of the last restarts.
const MAX_UFRAGS: usize = 4;

impl Worker {
    pub(crate) fn take_commands(&mut self, now: Instant) {
        let Some(inbox) = self
            .parts
            .inboxes
            .get(usize::from(self.parts.index))
            .cloned()
        else {
            return;
        };
        while let Some(command) = inbox.commands.pop() {
            self.take_command(command, now);
        }
    }

    fn take_command(&mut self, command: Command, now: Instant) {
        match command {
            Command::CreatePeer {
                peer,
                ice,
                controlling,
            } => self.create_peer(peer, ice, controlling, now),
            Command::Negotiate { peer, negotiated } => self.negotiate(peer, &negotiated, now),
            Command::RestartIce { peer, ice } => {
                let Some(slot) = self.slot(peer) else { return };
                self.add_ufrag(slot, ice.ufrag.clone());
                if let Some(peer) = self.peers.get_mut(slot) {
                    let controlling = peer.controlling;
                    peer.connection.transport.restart_ice(ice, controlling, now);
                }
                self.touch(slot);
            }
            Command::AddCandidate { peer, candidate } => {
                let Some(slot) = self.slot(peer) else { return };
                if let Some(peer) = self.peers.get_mut(slot)
                    && let Err(error) = peer
                        .connection
                        .transport
                        .add_remote_candidate(&candidate, now)
                {
                    peer.refused += 1;
                    tracing::debug!(%error, candidate, "candidate refused");
                }
                self.touch(slot);
            }
            Command::ClosePeer { peer } => self.close_peer(peer, now),
            Command::Subscribe { from, worker } => self.subscribe(from, worker),
            Command::Unsubscribe { from, worker } => self.unsubscribe(from, worker),
            Command::AddRoute {
                route,
                from,
                to,
                options,
            } => self.add_route(route, from, to, options, now),
            Command::SetRoute { route, options } => self.set_route(route, options, now),
            Command::RemoveRoute { route } => self.remove_route(route),
            Command::SetBitrate { peer, bitrate } => {
                let Some(slot) = self.slot(peer) else { return };
                if let Some(peer) = self.peers.get_mut(slot) {
                    peer.connection.set_bitrate(bitrate, now);
                }
                self.touch(slot);
            }
            Command::RequestKeyframe { peer } => {
                let Some(peer) = self.slot(peer).and_then(|slot| self.peers.get(slot)) else {
                    return;
                };
                let sources: SmallVec<[SourceKey; 4]> =
                    peer.tracks.iter().filter_map(|t| t.source).collect();
                for source in sources {
                    self.want_keyframes(source, now);
                }
            }
            Command::SendData { peer, message } => self.send_data(peer, &message, now),
            Command::Stats { peer, reply } => {
                if let Some(peer) = self.slot(peer).and_then(|slot| self.peers.get(slot)) {
                    // Whoever asked may be gone; then nobody needs the answer.
                    let _ = reply.send(stats(peer));
                }
            }
            Command::SourceClock {
                track,
                encoding,
                clock,
            } => {
                if let Some(source) = self.by_track.get(&track).copied() {
                    self.set_source_clock(source, encoding, clock);
                }
            }
            Command::SourceKeyframe { track, encoding } => {
                if let Some(source) = self.by_track.get(&track).copied() {
                    self.want_keyframe(source, encoding, now);
                }
            }
            Command::SourceFormat { track, format } => {
                let key = self.source_of(track);
                if let Some(source) = self.sources.get_mut(key.0) {
                    source.format = format;
                }
            }
            Command::SourceGone { track } => self.end_source(track),
            Command::Shutdown => self.shut_down(now),
        }
    }

    fn slot(&self, peer: PeerId) -> Option<usize> {
        self.by_id.get(&peer).copied()
    }

    fn create_peer(&mut self, id: PeerId, ice: IceCredentials, controlling: bool, now: Instant) {
        let ufrag = ice.ufrag.clone();
        let transport = TransportConfig {
            local_ice: ice,
            identity: self.parts.identity.clone(),
            controlling,
            ice_lite: self.parts.ice_lite,
            candidates: self.parts.candidates.clone(),
            tie_breaker: rand::random(),
        };
        let connection = Connection::new(transport, self.parts.streams, self.parts.clock, now);
        let slot = self.peers.insert(Peer {
            id,
            connection,
            controlling,
            tracks: Vec::new(),
            ufrags: SmallVec::new(),
            addresses: SmallVec::new(),
            timer: None,
            touched: false,
            ice: IceState::Gathering,
            dtls: None,
            refused: 0,
        });
        self.by_id.insert(id, slot);
        self.add_ufrag(slot, ufrag);
        self.touch(slot);
    }

    fn add_ufrag(&mut self, slot: usize, ufrag: String) {
        if let Some(peer) = self.peers.get_mut(slot) {
            if peer.ufrags.len() >= MAX_UFRAGS {
                self.by_ufrag.remove(&peer.ufrags.remove(0));
            }
            peer.ufrags.push(ufrag.clone());
            self.by_ufrag.insert(ufrag, slot);
        }
    }

    fn negotiate(&mut self, id: PeerId, negotiated: &Negotiated, now: Instant) {
        let Some(slot) = self.slot(id) else { return };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        if let Err(error) = peer.connection.negotiate(negotiated, now) {
            tracing::debug!(%error, "negotiation not wholly applied");
        }
        for (index, media) in negotiated.media.iter().enumerate() {
            let track = TrackRef {
                peer: id,
                mid: media.mid,
            };
            if media.kind == Kind::Data {
                self.track(slot, index);
                continue;
            }
            let format = SourceFormat {
                is_video: media.kind == Kind::Video,
                clock_rate: media
                    .payloads
                    .first()
                    .map_or(90_000, |payload| payload.clock_rate),
                encodings: media.rids.len().max(media.remote_ssrcs.len()).clamp(1, 3) as u8,
            };
            let key = self.source_of(track);
            if let Some(source) = self.sources.get_mut(key.0) {
                source.format = format;
                let watchers: SmallVec<[u16; 4]> =
                    source.watchers.iter().map(|(worker, _)| *worker).collect();
                for worker in watchers {
                    self.send_to(worker, Command::SourceFormat { track, format });
                }
            }
            // A recycled m-line: what it was is no source any more.
            let before = self.track(slot, index).and_then(|entry| entry.source);
            if let Some(old) = before.filter(|old| *old != key)
                && let Some(old) = self.sources.get(old.0).map(|source| source.track)
            {
                self.end_source(old);
            }
            if let Some(entry) = self.track(slot, index) {
                entry.source = Some(key);
                match &mut entry.sink {
                    Some(sink) => sink.configure(media),
                    None => entry.sink = Some(Sink::new(media)),
                }
            }
        }
        self.attach_routes(id);
        self.touch(slot);
    }

    fn track(&mut self, slot: usize, index: usize) -> Option<&mut Track> {
        let tracks = &mut self.peers.get_mut(slot)?.tracks;
        while tracks.len() <= index {
            tracks.push(Track::default());
        }
        tracks.get_mut(index)
    }

    /// The source of a track; made if there is none yet.
    fn source_of(&mut self, track: TrackRef) -> SourceKey {
        if let Some(key) = self.by_track.get(&track) {
            return *key;
        }
        let here = track.peer.worker == self.parts.index;
        let window = if here { HISTORY } else { HISTORY_ELSEWHERE };
        let key = SourceKey(self.sources.insert(Source::new(track, window)));
        self.by_track.insert(track, key);
        key
    }

    fn subscribe(&mut self, from: TrackRef, worker: u16) {
        if self.slot(from.peer).is_none() {
            self.send_to(worker, Command::SourceGone { track: from });
            return;
        }
        let key = self.source_of(from);
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        match source.watchers.iter_mut().find(|(w, _)| *w == worker) {
            Some((_, routes)) => *routes += 1,
            None => source.watchers.push((worker, 1)),
        }
        let format = source.format;
        self.send_to(
            worker,
            Command::SourceFormat {
                track: from,
                format,
            },
        );
    }

    fn unsubscribe(&mut self, from: TrackRef, worker: u16) {
        let Some(key) = self.by_track.get(&from).copied() else {
            return;
        };
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        if let Some((_, routes)) = source.watchers.iter_mut().find(|(w, _)| *w == worker) {
            *routes = routes.saturating_sub(1);
        }
        source.watchers.retain(|(_, routes)| *routes > 0);
        if !source.is_relayed() {
            source.forget();
        }
    }

    fn add_route(
        &mut self,
        id: RouteId,
        from: TrackRef,
        to: TrackRef,
        options: RouteOptions,
        now: Instant,
    ) {
        if self.slot(to.peer).is_none() {
            self.send_to(
                from.peer.worker,
                Command::Unsubscribe {
                    from,
                    worker: self.parts.index,
                },
            );
            return;
        }
        let source = self.source_of(from);
        let slot = self.routes.insert(Route {
            id,
            from,
            to,
            options,
            selector: Selector::default(),
            source,
            sink: None,
            clock_of: None,
        });
        self.by_route.insert(id, slot);
        if let Some(source) = self.sources.get_mut(source.0) {
            source.routes.push(slot);
        }
        self.attach_routes(to.peer);
        self.want_keyframes(source, now);
    }

    /// Connects the routes to a peer with the sinks that it has by now. Of several routes to one sink
    /// the newest feeds it.
    fn attach_routes(&mut self, id: PeerId) {
        let Some(slot) = self.slot(id) else { return };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let mut routes: SmallVec<[(RouteId, usize); 4]> = SmallVec::new();
        let to_peer = |(_, route): &(usize, &mut Route)| route.to.peer == id;
        for (route_slot, route) in self.routes.iter_mut().filter(to_peer) {
            let media = peer.connection.media();
            let index = media.iter().position(|media| media.mid == route.to.mid);
            route.sink = index.map(|index| (slot, index));
            routes.push((route.id, route_slot));
        }
        routes.sort_unstable();
        for (_, route_slot) in routes {
            let sink = self.routes.get(route_slot).and_then(|route| route.sink);
            let track = sink.and_then(|(_, index)| peer.tracks.get_mut(index));
            if let Some(sink) = track.and_then(|track| track.sink.as_mut()) {
                sink.route = Some(route_slot);
            }
        }
    }

    fn set_route(&mut self, id: RouteId, options: RouteOptions, now: Instant) {
        let Some(route) = self
            .by_route
            .get(&id)
            .and_then(|slot| self.routes.get_mut(*slot))
        else {
            return;
        };
        let opened = options.enabled && !route.options.enabled;
        route.options = options;
        if opened {
            route.selector.restart();
            let source = route.source;
            self.want_keyframes(source, now);
        }
    }

    pub(super) fn remove_route(&mut self, id: RouteId) {
        let Some(slot) = self.by_route.remove(&id) else {
            return;
        };
        let Some(route) = self.routes.try_remove(slot) else {
            return;
        };
        if let Some((peer, index)) = route.sink
            && let Some(track) = self
                .peers
                .get_mut(peer)
                .and_then(|peer| peer.tracks.get_mut(index))
            && let Some(sink) = &mut track.sink
        {
            sink.numbering.forget(route.source);
            if sink.route == Some(slot) {
                sink.route = None;
            }
        }
        let Some(source) = self.sources.get_mut(route.source.0) else {
            return;
        };
        source.routes.retain(|other| *other != slot);
        if !source.is_relayed() {
            source.forget();
        }
        let elsewhere = route.from.peer.worker != self.parts.index;
        let unused = source.routes.is_empty();
        if elsewhere {
            let (from, worker) = (route.from, self.parts.index);
            self.send_to(from.peer.worker, Command::Unsubscribe { from, worker });
            if unused {
                self.by_track.remove(&route.from);
                self.sources.try_remove(route.source.0);
            }
        }
    }

    fn send_data(&mut self, id: PeerId, message: &DataMessage, now: Instant) {
        let Some(slot) = self.slot(id) else { return };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let payload = match &message.payload {
            DataPayload::Text(text) => RtcPayload::Text(text),
            DataPayload::Binary(bytes) => RtcPayload::Binary(bytes),
        };
        let transport = &mut peer.connection.transport;
        let options = DataOptions::default();
        if let Err(error) =
            transport.send_data(&message.label, &message.protocol, payload, options, now)
        {
            peer.refused += 1;
            tracing::debug!(%error, label = message.label, "data message not sent");
        }
        self.touch(slot);
    }

    /// Keeps what a sender report says, here and where the source is relayed to.
    pub(super) fn set_source_clock(&mut self, key: SourceKey, encoding: u8, clock: SenderClock) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        if let Some(slot) = source.clocks.get_mut(usize::from(encoding)) {
            *slot = Some(clock);
        }
        for slot in &source.routes {
            if let Some(route) = self.routes.get_mut(*slot) {
                route.clock_of = None;
            }
        }
        let track = source.track;
        let watchers: SmallVec<[u16; 4]> =
            source.watchers.iter().map(|(worker, _)| *worker).collect();
        for worker in watchers {
            self.send_to(
                worker,
                Command::SourceClock {
                    track,
                    encoding,
                    clock,
                },
            );
        }
    }

    pub(super) fn send_to(&mut self, worker: u16, command: Command) {
        if let Some(inbox) = self.parts.inboxes.get(usize::from(worker)) {
            inbox.send(command);
        }
    }

    fn shut_down(&mut self, now: Instant) {
        let peers: Vec<PeerId> = self.by_id.keys().copied().collect();
        for peer in peers {
            self.close_peer(peer, now);
        }
        self.out.flush(&self.parts.socket);
        self.running = false;
    }
}

fn stats(peer: &Peer) -> PeerStats {
    let transport = &peer.connection.transport;
    let media = peer
        .connection
        .media()
        .iter()
        .filter(|media| media.kind != Kind::Data);
    PeerStats {
        ice: Some(peer.ice),
        selected_pair: transport
            .selected_pair()
            .map(|pair| (pair.local, pair.remote)),
        dtls: peer.dtls,
        srtp_profile: transport.profile().map(|profile| profile.name()),
        rtt: transport.rtt(),
        media: media
            .map(|media| MediaStats {
                mid: media.mid,
                received: media
                    .received()
                    .map(|stream| {
                        let Some(stream) = stream else {
                            return StreamStats::default();
                        };
                        let counters = stream.counters();
                        StreamStats {
                            ssrc: Some(stream.ssrc()),
                            packets: counters.packets,
                            bytes: counters.bytes,
                            lost: counters.lost,
                            jitter: stream.jitter(),
                            nacks: counters.nacks,
                            retransmissions: counters.retransmissions,
                            keyframe_requests: counters.keyframe_requests,
                            ..StreamStats::default()
                        }
                    })
                    .collect(),
                sent: media.sent().map_or_else(StreamStats::default, |stream| {
                    let counters = stream.counters();
                    StreamStats {
                        ssrc: Some(stream.ssrc()),
                        rtx_ssrc: stream.rtx_ssrc(),
                        packets: counters.packets,
                        bytes: counters.bytes,
                        lost: counters.lost,
                        nacks: counters.nacks,
                        retransmissions: counters.retransmissions,
                        keyframe_requests: counters.keyframe_requests,
                        rtt: stream.round_trip(),
                        jitter: Duration::from_secs_f64(
                            f64::from(stream.remote_jitter())
                                / f64::from(media.clock_rate().max(1)),
                        ),
                    }
                }),
            })
            .collect(),
        refused: peer.refused,
    }
}
