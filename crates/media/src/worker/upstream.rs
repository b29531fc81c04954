//! Keyframe requests and bitrates, from viewers to senders.

use std::time::Instant;

use portunus_graph::SourceKey;
use portunus_rtc::Connection;

use super::Worker;
use super::guard::guarded;
use crate::command::{Command, SourceCommand};
use crate::{CloseReason, SourceRef, TrackRef};

impl Worker {
    /// Passes on the keyframe requests that are needed.
    pub(super) fn ask_for_keyframes(&mut self, now: Instant) {
        while let Some((key, encoding)) = self.graph.next_keyframe() {
            let here = self.others.index();
            let Some(source) = self.graph.source_mut(key) else {
                continue;
            };
            // Each of them limits the rate of requests.
            match source.is {
                is if is.worker() != here => {
                    if source.keyframes.ask(encoding, now) {
                        let (worker, source) = (is.worker(), is);
                        let request =
                            Command::Source(source, SourceCommand::RequestKeyframe { encoding });
                        self.others.send(worker, request);
                    }
                }
                SourceRef::Ingest(ingest) => self.ingests.want_keyframe(ingest, encoding),
                SourceRef::Track(track) => self.ask_publisher(track, encoding, now),
            }
        }
    }

    /// Reports what viewers can see of sources that are sent on demand, where that has changed.
    pub(super) fn update_demands(&mut self) {
        while let Some(key) = self.graph.next_demanded() {
            let Some(source) = self.graph.source(key) else {
                continue;
            };
            let routes = self.graph.demand_of_routes(key);
            let outlets = self.outlets.demand(source);
            let demand = routes.union(outlets).union(self.legs.demand(source));
            if let Some((ingest, all)) = self.graph.set_demand(key, demand, &self.others) {
                self.ingests.report_demand(ingest, all);
            }
        }
    }

    fn ask_publisher(&mut self, track: TrackRef, encoding: u8, now: Instant) {
        let ask = |peer: &mut Connection, media| peer.request_keyframe(media, encoding, now);
        let asked = guarded(|| self.peers.ask(track, ask));
        if asked.is_none()
            && let Some(slot) = self.peers.slot(track.peer)
        {
            self.end_peer(slot, CloseReason::Internal, now);
        }
    }

    /// Passes a viewer's bitrate on to the sources that it watches.
    pub(super) fn note_viewer_bitrate(&mut self, slot: usize, bitrate: u64, now: Instant) {
        let tracks = self.peers.get(slot).map_or(0, |peer| peer.tracks.len());
        for track in 0..tracks {
            let sink = self.peers.get(slot).and_then(|peer| {
                let sink = peer.tracks.get(track)?.sink.as_ref()?;
                self.graph.route(sink.route?)
            });
            if let Some(route) = sink.filter(|route| route.wanted.enabled)
                && let SourceRef::Ingest(_) = route.from
            {
                let source = route.source;
                self.viewer_takes(source, bitrate, now);
            }
        }
    }

    /// Notes the bitrate that a viewer of a source can take.
    pub(super) fn viewer_takes(&mut self, key: SourceKey, bitrate: u64, now: Instant) {
        let Some(source) = self.graph.source_mut(key) else {
            return;
        };
        let SourceRef::Ingest(id) = source.is else {
            return;
        };
        if !source.format.is_video {
            return;
        }
        if self.ingests.viewer_takes(id, bitrate, now) {
            return;
        }
        // The source's worker gets the lowest one, once a second.
        source.lowest.note(bitrate, now);
        if source.lowest.due().is_some_and(|due| due <= now)
            && let Some(bitrate) = source.lowest.take(now)
        {
            let source = source.is;
            self.others.send(
                source.worker(),
                Command::Source(source, SourceCommand::ReportBitrate(bitrate)),
            );
        }
    }
}
