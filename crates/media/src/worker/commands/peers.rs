//! Commands that concern a peer.

use std::time::Instant;

use portunus_graph::{PeerId, Sink, SourceFormat, SourceKey, SourceRef, TrackRef};
use portunus_rtc::data::{DataOptions, DataPayload as RtcPayload};
use portunus_sdp::negotiated::{Kind, Negotiated};
use smallvec::SmallVec;

use crate::command::PeerCommand;
use crate::worker::Worker;
use crate::{DataMessage, DataPayload};

impl Worker {
    pub(super) fn take_peer_command(&mut self, id: PeerId, command: PeerCommand, now: Instant) {
        let peers = &mut self.peers;
        match command {
            PeerCommand::Create { ice, controlling } => peers.create(id, ice, controlling, now),
            PeerCommand::Negotiate(negotiated) => self.negotiate(id, &negotiated, now),
            PeerCommand::RestartIce(ice) => {
                if let Some(slot) = peers.slot(id) {
                    peers.restart_ice(slot, ice, now);
                }
            }
            PeerCommand::AddCandidate(candidate) => peers.change(id, |peer| {
                let transport = &mut peer.connection.transport;
                if let Err(error) = transport.add_remote_candidate(&candidate, now) {
                    peer.record.count_refused();
                    tracing::debug!(%error, candidate, "candidate refused");
                }
            }),
            PeerCommand::Close => self.close_peer(id, now),
            PeerCommand::SetBitrate(bitrate) => {
                peers.change(id, |peer| peer.connection.set_bitrate(bitrate, now));
            }
            PeerCommand::RequestKeyframe => self.request_keyframes(id),
            PeerCommand::SetOpaque => peers.change(id, |peer| peer.is_opaque = true),
            PeerCommand::DetectTalking { mid, detection } => {
                peers.detect_talking(TrackRef { peer: id, mid }, detection);
            }
            PeerCommand::MeasureSpeech { mid, wanted } => {
                peers.measure_speech(TrackRef { peer: id, mid }, wanted);
            }
            PeerCommand::OpenData { label, options } => {
                self.open_data(id, &label, options, now);
            }
            PeerCommand::SendData {
                message,
                options,
                held,
            } => {
                self.send_data(id, &message, options, now);
                drop(held);
            }
            PeerCommand::Stats(reply) => {
                if let Some(stats) = peers.figures(id, &self.graph, now) {
                    // The caller may be gone: then nobody needs the answer.
                    let _ = reply.send(stats);
                }
            }
            PeerCommand::Capture { capture, reply } => {
                let _ = reply.send(peers.begin_capture(id, *capture));
            }
            PeerCommand::StopCapture(reply) => {
                let _ = reply.send(peers.stop_capture(id));
            }
        }
    }

    /// Requests keyframes of all that a peer sends.
    fn request_keyframes(&mut self, peer: PeerId) {
        let slot = self.peers.slot(peer);
        let Some(peer) = slot.and_then(|slot| self.peers.get(slot)) else {
            return;
        };
        let sources: SmallVec<[SourceKey; 4]> = peer
            .tracks
            .iter()
            .filter_map(|track| track.source)
            .collect();
        for source in sources {
            self.graph.want_keyframes(source);
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
                on_demand: false,
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

    /// Opens a data channel. An error is a mistake of the caller, or there are too many.
    fn open_data(&mut self, id: PeerId, label: &str, options: DataOptions, now: Instant) {
        let Some(slot) = self.peers.slot(id) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let transport = &mut peer.connection.transport;
        if let Err(error) = transport.open_data(label, "", options, now) {
            tracing::debug!(%error, label, "data channel not opened");
        }
        self.peers.touch(slot);
    }

    fn send_data(&mut self, id: PeerId, message: &DataMessage, options: DataOptions, now: Instant) {
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
        if let Err(error) =
            transport.send_data(&message.label, &message.protocol, payload, options, now)
        {
            self.counters.message_dropped();
            tracing::debug!(%error, label = message.label, "data message not sent");
        }
        self.peers.touch(slot);
    }
}
