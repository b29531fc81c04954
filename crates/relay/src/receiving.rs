//! A source of another node: its ingest here, and what is asked for.

use std::time::{Duration, Instant};

use portunus_media::{
    Demand, DemandReports, IngestFeed, IngestId, IngestMedia, IngestOptions, KeyframeCache,
    MediaPlane, NodeFeed, NodeLinkId, RelayedStream,
};
use portunus_rtp::Ssrc;

use crate::hold::Held;
use crate::{Message, Offer, SourceDescription, SourceId, Wanted};

/// How long the packets of a stream that is not wanted any more are still taken: some are on their
/// way.
const LINGER: Duration = Duration::from_secs(1);
/// What is kept of video without layers for new viewers: the picture of one who comes late is here
/// already.
const KEPT: KeyframeCache = KeyframeCache {
    max_age: Duration::from_secs(10),
    max_bytes: 1 << 20,
};
const ENCODINGS: usize = 3;

/// A source of another node.
#[derive(Debug)]
pub(crate) struct Receiving {
    id: SourceId,
    link: NodeLinkId,
    ingest: IngestId,
    /// The worker of the other node.
    far: u16,
    held: Held,
    streams: [Option<Ssrc>; ENCODINGS],
    /// Streams that are not wanted any more, and when their packets are refused.
    leaving: Vec<(Instant, RelayedStream)>,
}

impl Receiving {
    /// Adds the ingest of a source. Nothing is asked for yet.
    pub(crate) fn new(
        media: &MediaPlane,
        link: NodeLinkId,
        offer: &Offer,
        reports: &DemandReports,
    ) -> Self {
        let description = &offer.description;
        let encodings = description.encodings.clamp(1, ENCODINGS as u8);
        let feed = IngestFeed::Node(NodeFeed {
            encodings,
            reports: reports.clone(),
        });
        let (codec, clock_rate) = (description.codec.codec(), description.codec.clock_rate());
        let ingest = media.add_ingest(IngestOptions {
            media: IngestMedia::Rtp(description.media()),
            ..IngestOptions::rtp(codec, clock_rate, feed)
        });
        if keeps_keyframe(description) {
            media.keep_keyframe(ingest.id, Some(KEPT));
        }
        Self {
            id: offer.id,
            link,
            ingest: ingest.id,
            far: description.worker,
            held: Held::default(),
            streams: [None; ENCODINGS],
            leaving: Vec::new(),
        }
    }

    pub(crate) fn ingest(&self) -> IngestId {
        self.ingest
    }

    /// Takes what viewers can see now. Returns the message that follows from it.
    pub(crate) fn want(
        &mut self,
        media: &MediaPlane,
        demand: Demand,
        ssrcs: &mut Ssrcs,
        now: Instant,
    ) -> Option<Message> {
        let changes = self.held.want(demand, now);
        changes.then(|| self.ask(media, ssrcs, now))
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let leaving = self.leaving.iter().map(|(at, _)| *at);
        leaving.chain(self.held.poll_timeout()).min()
    }

    /// Does what is due. Returns the message that follows from it.
    pub(crate) fn handle_timeout(
        &mut self,
        media: &MediaPlane,
        ssrcs: &mut Ssrcs,
        now: Instant,
    ) -> Option<Message> {
        self.leaving.retain(|(at, stream)| {
            let is_over = *at <= now;
            if is_over {
                media.forget_relayed(*stream);
            }
            !is_over
        });
        let changes = self.held.handle_timeout(now);
        changes.then(|| self.ask(media, ssrcs, now))
    }

    /// Opens and closes streams as they are asked for. Returns what to tell the other node.
    fn ask(&mut self, media: &MediaPlane, ssrcs: &mut Ssrcs, now: Instant) -> Message {
        let asked = self.held.asked();
        for encoding in 0..ENCODINGS as u8 {
            let Some(known) = self.streams.get_mut(usize::from(encoding)) else {
                continue;
            };
            let stream = |ssrc| RelayedStream {
                link: self.link,
                far: self.far,
                ssrc,
                ingest: self.ingest,
                encoding,
            };
            match (asked.wants(encoding), *known) {
                (true, None) => {
                    *known = ssrcs.next();
                    // It is expected before the other node knows that it is wanted.
                    if let Some(ssrc) = *known {
                        media.receive_relayed(stream(ssrc));
                    }
                }
                (false, Some(ssrc)) => {
                    *known = None;
                    self.leaving.push((now + LINGER, stream(ssrc)));
                }
                (true, Some(_)) | (false, None) => {}
            }
        }
        self.message()
    }

    /// Returns what the other node has to know.
    pub(crate) fn message(&self) -> Message {
        let asked = self.held.asked();
        let streams = (0..).zip(&self.streams).filter_map(|(encoding, ssrc)| {
            Some(Wanted {
                encoding,
                ssrc: (*ssrc)?.0,
                worker: self.ingest.worker,
            })
        });
        Message::Want {
            source: self.id,
            streams: streams.collect(),
            spatial: asked.spatial,
            temporal: asked.temporal,
        }
    }

    /// Returns whether anything is asked for.
    pub(crate) fn asks(&self) -> bool {
        self.streams.iter().any(Option::is_some)
    }

    /// Removes the ingest. Its streams are forgotten with it.
    pub(crate) fn end(&self, media: &MediaPlane) {
        drop(media.remove_ingest(self.ingest));
    }
}

/// Returns whether keyframes are kept for new viewers.
fn keeps_keyframe(description: &SourceDescription) -> bool {
    description.codec.codec().is_video() && description.encodings <= 1 && !description.opaque
}

/// The SSRCs of the streams that a node asks another one for: none comes twice.
#[derive(Debug)]
pub(crate) struct Ssrcs {
    next: u32,
}

impl Ssrcs {
    pub(crate) fn new() -> Self {
        Self { next: 1 }
    }

    fn next(&mut self) -> Option<Ssrc> {
        if self.next > portunus_media::MAX_SSRC {
            tracing::error!("all streams of a link between nodes are used up: connect them anew");
            return None;
        }
        let ssrc = Ssrc(self.next);
        self.next += 1;
        Some(ssrc)
    }
}
