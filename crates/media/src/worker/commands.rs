//! What the control plane and other workers ask of a worker.

use std::time::Instant;

use portunus_rtc::data::{DataOptions, DataPayload as RtcPayload};
use portunus_sdp::negotiated::{Kind, Negotiated};
use smallvec::SmallVec;

use super::Worker;
use super::ends::guarded;
use crate::command::{Command, NewIngest};
use crate::graph::{Sink, SourceFormat, SourceKey};
use crate::plane::PeerId;
use crate::{
    CloseReason, DataMessage, DataPayload, IngestId, MediaIdentity, MediaSettings, SourceRef,
    TrackRef,
};

impl Worker {
    /// Carries out what is asked for.
    pub(crate) fn take_commands(&mut self, now: Instant) {
        let Some(inbox) = self.others.own_inbox().cloned() else {
            return;
        };
        while let Some(command) = inbox.take() {
            let of = command.peer();
            if guarded(|| self.take_command(command, now)).is_none()
                && let Some(slot) = of.and_then(|peer| self.peers.slot(peer))
            {
                self.end_peer(slot, CloseReason::Internal, now);
            }
            self.ask_for_keyframes(now);
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
            Command::AddCandidate { peer, candidate } => self.peers.change(peer, |peer| {
                let transport = &mut peer.connection.transport;
                if let Err(error) = transport.add_remote_candidate(&candidate, now) {
                    peer.refused += 1;
                    tracing::debug!(%error, candidate, "candidate refused");
                }
            }),
            Command::ClosePeer { peer } => self.close_peer(peer, now),
            Command::Subscribe { from, worker } => {
                let to = (&mut self.others, &mut self.counters);
                self.graph.subscribe(from, worker, &mut self.peers, to, now);
            }
            Command::Unsubscribe { from, worker } => {
                self.graph.unsubscribe(from, worker, &mut self.peers, now);
            }
            Command::AddRoute {
                route,
                from,
                to,
                options,
            } => {
                let (peers, others) = (&mut self.peers, &self.others);
                let ends = (from, to);
                let added = self
                    .graph
                    .add_route(route, ends, options, peers, others, now);
                // Asks for a keyframe if it can be relayed now: one that comes before the viewer is connected would only
                // put off the one that it needs.
                if let Some(slot) = added {
                    self.relaying().prime_route(slot, now);
                }
            }
            Command::SetRoute { route, options } => match self.graph.slot(route) {
                Some(slot) => {
                    if self.graph.set_route(slot, options, &mut self.peers, now) {
                        self.relaying().prime_route(slot, now);
                    }
                }
                None => self.outlets.set(route, options, &mut self.graph),
            },
            Command::RemoveRoute { route } => self.remove_route(route, now),
            Command::SetBitrate { peer, bitrate } => self.peers.change(peer, |peer| {
                peer.connection.set_bitrate(bitrate, now);
            }),
            Command::SetOpaque { peer } => self.peers.change(peer, |peer| peer.is_opaque = true),
            Command::RequestKeyframe { peer } => {
                let Some(peer) = self.peers.slot(peer).and_then(|slot| self.peers.get(slot)) else {
                    return;
                };
                let sources: SmallVec<[SourceKey; 4]> =
                    peer.tracks.iter().filter_map(|t| t.source).collect();
                for source in sources {
                    self.graph.want_keyframes(source);
                }
            }
            Command::DetectTalking { track, detection } => {
                self.peers.detect_talking(track, detection)
            }
            Command::MeasureSpeech { track, wanted } => self.peers.measure_speech(track, wanted),
            Command::SendData {
                peer,
                message,
                held,
            } => {
                self.send_data(peer, &message, now);
                drop(held);
            }
            Command::Stats { peer, reply } => {
                if let Some(stats) = self.peers.figures(peer, &self.graph, now) {
                    // Whoever asked may be gone; then nobody needs the answer.
                    let _ = reply.send(stats);
                }
            }
            Command::LineStats { peers, reply } => {
                let _ = reply.send(self.peers.line_figures(peers, &self.graph, now));
            }
            Command::Configure(settings) => self.configure(settings),
            Command::SetIdentity(MediaIdentity(identity)) => self.peers.set_identity(identity),
            Command::Candidates => self.offer(),
            Command::Turn(server) => self.set_turn_server(server.map(|it| *it), now),
            Command::Capture {
                peer,
                capture,
                reply,
            } => {
                let begun = self.peers.begin_capture(peer, *capture);
                let _ = reply.send(begun);
            }
            Command::StopCapture { peer, reply } => {
                let _ = reply.send(self.peers.stop_capture(peer));
            }
            Command::SourceClock {
                source,
                encoding,
                clock,
            } => {
                if let Some(source) = self.graph.key(source) {
                    self.graph.set_clock(source, encoding, clock, &self.others);
                }
            }
            Command::SourceKeyframe { source, encoding } => {
                if let Some(source) = self.graph.key(source) {
                    self.graph.want_keyframe(source, encoding);
                }
            }
            Command::SourceFormat { source, format } => self.graph.take_format(source, format),
            Command::SourceGone { source } => self.end_source(source, now),
            Command::AddOutlet(outlet) => {
                let graph = (&mut self.graph, &mut self.peers);
                self.outlets
                    .add(*outlet, graph, self.poller.registry(), now);
            }
            Command::OutletKeyframe { outlet } => {
                self.outlets.ask_keyframe(outlet, &mut self.graph);
            }
            Command::TakePipe(passed) => self.take_passed_pipe(*passed, now),
            Command::AddIngest(ingest) => self.add_ingest(*ingest),
            Command::AddThreadFeed(feed) => self.thread_feeds.push(feed),
            Command::SetIngestEnabled { ingest, enabled } => {
                let graph = &mut self.graph;
                self.ingests
                    .set_enabled(ingest, enabled, graph, &self.others);
            }
            Command::SetIngestParameterSets { ingest, sets } => {
                self.ingests.set_parameter_sets(ingest, sets);
            }
            Command::RemoveIngest { ingest, done } => {
                self.remove_ingest(ingest, now);
                drop(done);
            }
            Command::Listen { ingest, listening } => self.ingests.listen(ingest, listening),
            Command::AddLeg(leg) => {
                let graph = (&mut self.graph, &mut self.peers);
                let (ingests, registry) = (&mut self.ingests, self.poller.registry());
                self.legs.add(*leg, ingests, graph, &self.others, registry);
            }
            Command::SetLegRemote { leg, remote } => {
                let graph = (&mut self.graph, &self.others);
                self.legs
                    .set_remote(leg, &remote, &mut self.ingests, graph, now);
            }
            Command::SetLegGates { leg, gates } => {
                let graph = (&mut self.graph, &self.others);
                self.legs
                    .set_gates(leg, gates, &mut self.ingests, graph, now);
            }
            Command::RouteToLeg { leg, from, options } => {
                // What came before is for the leg as it was.
                self.relay_fresh(now);
                let graph = (&mut self.graph, &mut self.peers);
                self.legs.route(leg, from, *options, graph, &self.others);
            }
            Command::KeysToLeg { leg, from } => {
                let graph = (&mut self.graph, &mut self.peers);
                self.legs.pass_keys(leg, from, graph, &self.others);
            }
            Command::SendTones { leg, tones } => self.legs.send_tones(leg, &tones, now),
            Command::RemoveLeg { leg, done } => {
                let (graph, registry) = (&mut self.graph, self.poller.registry());
                if self.legs.remove(leg, graph, &self.others, registry, now) {
                    self.remove_ingest(leg.ingest(), now);
                }
                drop(done);
            }
            Command::KeepKeyframe { source, keep } => {
                let (peers, others) = (&mut self.peers, &self.others);
                self.graph.keep_keyframe(source, keep, peers, others);
            }
            Command::KeyframeInterval { source, interval } => {
                let peers = &mut self.peers;
                self.graph
                    .set_keyframe_interval(source, interval, peers, now);
            }
            Command::SourceKeyframes { source } => {
                if let Some(source) = self.graph.key(source) {
                    self.graph.want_keyframes(source);
                }
            }
            Command::SourceBitrate { source, bitrate } => {
                if let Some(source) = self.graph.key(source) {
                    self.viewer_takes(source, bitrate, now);
                }
            }
            Command::SourceLimit {
                source,
                worker,
                limit,
            } => {
                let peers = &mut self.peers;
                self.graph.take_limit(source, worker, limit, peers, now);
            }
            Command::Shutdown => self.shut_down(now),
        }
    }

    pub(super) fn add_ingest(&mut self, new: NewIngest) {
        let graph = (&mut self.graph, &mut self.peers);
        self.ingests
            .add(new, graph, &self.others, self.poller.registry());
    }

    pub(super) fn remove_ingest(&mut self, ingest: IngestId, now: Instant) {
        if self.ingests.remove(ingest, self.poller.registry()) {
            self.end_source(ingest.into(), now);
        }
    }

    fn configure(&mut self, settings: MediaSettings) {
        self.graph.set_nack_queue(settings.nack_queue);
        self.graph.nack_optimizations = settings.nack_optimizations;
        self.peers.set_streams(|streams| {
            streams.no_media = Some(settings.silence());
            streams.slow_link_threshold = settings.slow_link_threshold;
        });
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
                self.graph.note_messages(track, &self.others);
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
            let key = self.graph.source_of(is, &mut self.peers);
            if let Some(source) = self.graph.source(key) {
                format.keep = source.format.keep;
            }
            self.graph.set_format(key, format, &self.others);
            // A recycled m-line: what it was is no source any more.
            let before = self.peers.track(slot, index).and_then(|entry| entry.source);
            if let Some(old) = before.filter(|old| *old != key)
                && let Some(old) = self.graph.source(old).map(|source| source.is)
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
        let (graph, peers) = (&mut self.graph, &mut self.peers);
        graph.resume_routes(slot, &resumed, peers);
        graph.attach_routes(id, peers);
        peers.negotiate_adaptation(slot, graph, now);
        self.relaying().prime_peer(slot, now);
        self.peers.touch(slot);
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
        self.release_turn();
        self.network.flush();
    }
}
