//! What the control plane and other workers ask of a worker.

use std::time::Instant;

use portunus_rtc::data::{DataOptions, DataPayload as RtcPayload};
use portunus_sdp::negotiated::{Kind, Negotiated};
use smallvec::SmallVec;

use super::Worker;
use super::limits::{MANY, note_limited};
use super::polling::guarded;
use super::relay::Progress;
use super::route::Route;
use crate::command::Command;
use crate::graph::{Messages, Selector, Sink, SourceFormat, SourceKey};
use crate::plane::{PeerId, RouteId};
use crate::{CloseReason, DataMessage, DataPayload, RouteOptions, SourceRef, TrackRef};

impl Worker {
    pub(crate) fn take_commands(&mut self, now: Instant) {
        let Some(inbox) = self.others.own_inbox().cloned() else {
            return;
        };
        while let Some(command) = inbox.commands.pop() {
            let of = command.peer();
            if guarded(|| self.take_command(command, now)).is_none()
                && let Some(slot) = of.and_then(|peer| self.peers.slot(peer))
            {
                self.end_peer(slot, CloseReason::Internal, now);
            }
        }
    }

    fn take_command(&mut self, command: Command, now: Instant) {
        match command {
            Command::CreatePeer {
                peer,
                ice,
                controlling,
            } => self.peers.create(peer, ice, controlling, now),
            Command::Negotiate { peer, negotiated } => self.negotiate(peer, &negotiated, now),
            Command::RestartIce { peer, ice } => {
                if let Some(slot) = self.peers.slot(peer) {
                    self.peers.restart_ice(slot, ice, now);
                }
            }
            Command::AddCandidate { peer, candidate } => {
                let Some(slot) = self.peers.slot(peer) else {
                    return;
                };
                if let Some(peer) = self.peers.get_mut(slot)
                    && let Err(error) = peer
                        .connection
                        .transport
                        .add_remote_candidate(&candidate, now)
                {
                    peer.refused += 1;
                    tracing::debug!(%error, candidate, "candidate refused");
                }
                self.peers.touch(slot);
            }
            Command::ClosePeer { peer } => self.close_peer(peer, now),
            Command::Subscribe { from, worker } => self.subscribe(from, worker, now),
            Command::Unsubscribe { from, worker } => self.unsubscribe(from, worker, now),
            Command::AddRoute {
                route,
                from,
                to,
                options,
            } => self.add_route(route, from, to, options, now),
            Command::SetRoute { route, options } => self.set_route(route, options, now),
            Command::RemoveRoute { route } => self.remove_route(route, now),
            Command::SetBitrate { peer, bitrate } => {
                let Some(slot) = self.peers.slot(peer) else {
                    return;
                };
                if let Some(peer) = self.peers.get_mut(slot) {
                    peer.connection.set_bitrate(bitrate, now);
                }
                self.peers.touch(slot);
            }
            Command::SetOpaque { peer } => {
                let slot = self.peers.slot(peer);
                if let Some(peer) = slot.and_then(|slot| self.peers.get_mut(slot)) {
                    peer.is_opaque = true;
                }
            }
            Command::RequestKeyframe { peer } => {
                let Some(peer) = self.peers.slot(peer).and_then(|slot| self.peers.get(slot)) else {
                    return;
                };
                let sources: SmallVec<[SourceKey; 4]> =
                    peer.tracks.iter().filter_map(|t| t.source).collect();
                for source in sources {
                    self.want_keyframes(source, now);
                }
            }
            Command::DetectTalking { track, detection } => {
                self.peers.detect_talking(track, detection)
            }
            Command::MeasureSpeech { track, wanted } => self.peers.measure_speech(track, wanted),
            Command::SendData { peer, message } => self.send_data(peer, &message, now),
            Command::Stats { peer, reply } => {
                if let Some(peer) = self.peers.slot(peer).and_then(|slot| self.peers.get(slot)) {
                    // Whoever asked may be gone; then nobody needs the answer.
                    let _ = reply.send(self.figures(peer));
                }
            }
            Command::SourceClock {
                source,
                encoding,
                clock,
            } => {
                if let Some(source) = self.by_source.get(&source).copied() {
                    self.set_source_clock(source, encoding, clock);
                }
            }
            Command::SourceKeyframe { source, encoding } => {
                if let Some(source) = self.by_source.get(&source).copied() {
                    self.want_keyframe(source, encoding, now);
                }
            }
            Command::SourceFormat { source, format } => {
                // The last route to it may have ended meanwhile.
                if let Some(key) = self.by_source.get(&source)
                    && let Some(source) = self.sources.get_mut(key.0)
                {
                    source.set_format(format);
                }
            }
            Command::SourceGone { source } => self.end_source(source, now),
            Command::AddOutlet(outlet) => self.add_outlet(*outlet, now),
            Command::AddIngest(ingest) => self.add_ingest(*ingest),
            Command::SetIngestEnabled { ingest, enabled } => {
                self.set_ingest_enabled(ingest, enabled, now);
            }
            Command::SetIngestParameterSets { ingest, sets } => {
                self.set_ingest_parameter_sets(ingest, sets);
            }
            Command::RemoveIngest { ingest, done } => {
                self.remove_ingest(ingest, now);
                drop(done);
            }
            Command::Listen { ingest, listening } => self.listen_to_ingest(ingest, listening),
            Command::KeepKeyframe { source, keep } => self.keep_keyframe(source, keep),
            Command::KeyframeInterval { source, interval } => {
                self.set_keyframe_interval(source, interval, now);
            }
            Command::SourceKeyframes { source } => {
                if let Some(source) = self.by_source.get(&source).copied() {
                    self.want_keyframes(source, now);
                }
            }
            Command::SourceBitrate { source, bitrate } => {
                if let Some(source) = self.by_source.get(&source).copied() {
                    self.viewer_takes(source, bitrate, now);
                }
            }
            Command::SourceLimit {
                source,
                worker,
                limit,
            } => self.take_limit(source, worker, limit, now),
            Command::Shutdown => self.shut_down(now),
        }
    }

    fn negotiate(&mut self, id: PeerId, negotiated: &Negotiated, now: Instant) {
        let Some(slot) = self.peers.slot(id) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        if let Err(error) = peer.connection.negotiate(negotiated, now) {
            tracing::debug!(%error, "negotiation not wholly applied");
        }
        // Most peers have one or two m-lines, and a vector would take four.
        let more = negotiated.media.len().saturating_sub(peer.tracks.len());
        peer.tracks.reserve_exact(more);
        let mut resumed = SmallVec::<[usize; 4]>::new();
        for (index, media) in negotiated.media.iter().enumerate() {
            let track = TrackRef {
                peer: id,
                mid: media.mid,
            };
            if media.kind == Kind::Data {
                self.peers.track(slot, index);
                self.note_messages(track);
                continue;
            }
            let mut format = SourceFormat {
                is_video: media.kind == Kind::Video,
                clock_rate: media
                    .payloads
                    .first()
                    .map_or(90_000, |payload| payload.clock_rate),
                encodings: media.rids.len().max(media.remote_ssrcs.len()).clamp(1, 3) as u8,
                messages: None,
                keep: None,
            };
            let is = SourceRef::Track(track);
            let key = self.source_of(is);
            if let Some(source) = self.sources.get(key.0) {
                format.keep = source.format.keep;
            }
            self.set_source_format(key, format);
            // A recycled m-line: what it was is no source any more.
            let before = self.peers.track(slot, index).and_then(|entry| entry.source);
            if let Some(old) = before.filter(|old| *old != key)
                && let Some(old) = self.sources.get(old.0).map(|source| source.is)
            {
                self.end_source(old, now);
            }
            if let Some(entry) = self.peers.track(slot, index) {
                entry.source = Some(key);
                match &mut entry.sink {
                    Some(sink) if sink.is_of(media) => {
                        let held = !sink.sends;
                        sink.configure(media);
                        resumed.extend(sink.route.filter(|_| held && sink.sends));
                    }
                    sink => {
                        let before = sink.replace(Sink::new(media));
                        resumed.extend(before.and_then(|sink| sink.route));
                    }
                }
            }
        }
        self.resume_routes(slot, &resumed);
        self.attach_routes(id);
        self.negotiate_adaptation(slot, now);
        self.prime_peer(slot, now);
        self.peers.touch(slot);
    }

    /// The sinks of these routes send again, or are others now. As pictures are missing, the routes begin anew.
    fn resume_routes(&mut self, slot: usize, resumed: &[usize]) {
        for route in resumed {
            if let Some(peer) = self.peers.get_mut(slot) {
                peer.forget_waiting(*route);
            }
            if let Some(route) = self.routes.get_mut(*route) {
                route.selector.restart();
                route.progress = Progress::New;
            }
        }
    }

    /// Routes from a peer's data channels may have been there before them.
    fn note_messages(&mut self, track: TrackRef) {
        if let Some(key) = self.by_source.get(&SourceRef::Track(track)).copied()
            && let Some(source) = self.sources.get(key.0)
        {
            let messages = Some(Messages::OF_PEERS);
            let format = SourceFormat {
                messages,
                ..source.format
            };
            self.set_source_format(key, format);
        }
    }

    fn add_route(
        &mut self,
        id: RouteId,
        from: SourceRef,
        to: TrackRef,
        options: RouteOptions,
        now: Instant,
    ) {
        // A source that is gone must not come into being again.
        let gone = from.worker() == self.others.index() && !self.is_here(from);
        if gone || self.peers.slot(to.peer).is_none() {
            return;
        }
        let source = self.source_of(from);
        if from.worker() != self.others.index() {
            let worker = self.others.index();
            self.others
                .send(from.worker(), Command::Subscribe { from, worker });
        }
        let slot = self.routes.insert(Route {
            id,
            from,
            to,
            wanted: options.clone(),
            options,
            decision: None,
            selector: Selector::default(),
            source,
            sink: None,
            clock_of: None,
            spared: None,
            progress: Progress::New,
        });
        self.by_route.insert(id, slot);
        if let Some(of) = self.sources.get_mut(source.0) {
            of.routes.push(slot);
            if of.routes.len() > MANY && of.limit.is_some() {
                note_limited(&mut self.limited, source);
            }
        }
        if let Some(peer) = self
            .peers
            .slot(to.peer)
            .and_then(|slot| self.peers.get_mut(slot))
        {
            peer.routes.push(slot);
        }
        self.attach_route(slot);
        if let Some(peer) = self.peers.slot(to.peer) {
            self.adapt_soon(peer, now);
        }
        // Asks for a keyframe if it can be relayed now: one that comes before the viewer is connected would only put off
        // the one that it needs.
        self.prime_route(slot, now);
    }

    /// Connects the routes to a peer with the sinks that it has by now.
    fn attach_routes(&mut self, id: PeerId) {
        let peer = self.peers.slot(id).and_then(|slot| self.peers.get(slot));
        let routes: SmallVec<[usize; 4]> = peer.map(|p| p.routes.clone()).unwrap_or_default();
        for route in routes {
            self.attach_route(route);
        }
    }

    /// Connects a route with its sink, if there is one by now. Of several routes to one sink the newest feeds it.
    fn attach_route(&mut self, slot: usize) {
        let Some(route) = self.routes.get(slot) else {
            return;
        };
        let (id, to) = (route.id, route.to);
        let Some(of) = self.peers.slot(to.peer) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(of) else {
            return;
        };
        let mut media = peer.connection.media().iter();
        let index = media.position(|media| media.mid == to.mid);
        let track = index.and_then(|index| peer.tracks.get_mut(index));
        let mut follows = false;
        if let Some(sink) = track.and_then(|track| track.sink.as_mut()) {
            let fed = sink.route.and_then(|other| self.routes.get(other));
            if fed.is_none_or(|other| other.id <= id || other.to != to) {
                follows = sink.route.replace(slot) != Some(slot) && sink.numbering.has_begun();
                if follows && route.progress != Progress::New {
                    sink.numbering.forget(route.source);
                }
            }
        }
        if let Some(route) = self.routes.get_mut(slot) {
            route.sink = index.map(|index| (of, index));
            if follows {
                route.selector.await_keyframe();
                route.progress = Progress::New;
            }
        }
    }

    fn set_route(&mut self, id: RouteId, options: RouteOptions, now: Instant) {
        let Some(slot) = self.by_route.get(&id).copied() else {
            return self.set_outlet(id, options, now);
        };
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        let opened = options.enabled && !route.options.enabled;
        route.options = options;
        let wanted = route.bounded();
        if route.wanted != wanted {
            route.wanted = wanted;
            route.selector.retarget();
        }
        let peer = route.to.peer;
        if let Some(peer) = self.peers.slot(peer) {
            self.adapt_soon(peer, now);
        }
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        if opened {
            route.selector.restart();
            route.progress = Progress::New;
            let (source, sink) = (route.source, route.sink);
            let sink = sink.and_then(|(peer, index)| {
                let peer = self.peers.get_mut(peer)?;
                peer.forget_waiting(slot);
                peer.tracks.get_mut(index)?.sink.as_mut()
            });
            // What was not relayed meanwhile leaves no gap.
            if let Some(sink) = sink {
                sink.numbering.forget(source);
            }
            self.prime_route(slot, now);
        }
    }

    pub(super) fn remove_route(&mut self, id: RouteId, now: Instant) {
        let Some(slot) = self.by_route.remove(&id) else {
            return self.remove_outlet(id);
        };
        let Some(route) = self.routes.try_remove(slot) else {
            return;
        };
        if route
            .decision
            .is_some_and(|decision| decision.share.is_some())
        {
            note_limited(&mut self.limited, route.source);
        }
        let peer = self.peers.slot(route.to.peer);
        if let Some(peer) = peer.and_then(|peer| self.peers.get_mut(peer)) {
            peer.routes.retain(|other| *other != slot);
            // Its slot may be given to another.
            peer.forget_waiting(slot);
        }
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
        if let (Some(label), Some((peer, _))) = (&route.options.label, route.sink) {
            self.close_channel(peer, label, now);
        }
        let key = route.source;
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        source.routes.retain(|other| *other != slot);
        if source.routes.len() == MANY {
            note_limited(&mut self.limited, key);
        }
        if !source.is_relayed() {
            source.forget();
        }
        let elsewhere = route.from.worker() != self.others.index();
        let unused = source.routes.is_empty();
        if elsewhere {
            let (from, worker) = (route.from, self.others.index());
            self.others
                .send(from.worker(), Command::Unsubscribe { from, worker });
            if unused {
                self.by_source.remove(&route.from);
                self.sources.try_remove(route.source.0);
            }
        }
    }

    fn send_data(&mut self, id: PeerId, message: &DataMessage, now: Instant) {
        let Some(slot) = self.peers.slot(id) else {
            return;
        };
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
            self.counters.message_dropped();
            tracing::debug!(%error, label = message.label, "data message not sent");
        }
        self.peers.touch(slot);
    }

    fn shut_down(&mut self, now: Instant) {
        self.running = false;
        for peer in self.peers.ids() {
            self.close_peer(peer, now);
        }
        self.network.flush();
    }
}
