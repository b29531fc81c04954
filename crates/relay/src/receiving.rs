//! A source of another node: its ingest here, what is asked for, and the streams that bring it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portunus_media::{
    Demand, DemandReports, IngestFeed, IngestId, IngestMedia, IngestOptions, KeyframeCache,
    MediaPlane, NodeFeed, NodeLinkId, RelayedStream,
};
use portunus_rtp::Ssrc;

use crate::course::Course;
use crate::far_node_id::FarNodeId;
use crate::hold::Held;
use crate::{Offer, SourceDescription, Wanted};

/// How long the packets of a stream that is not wanted any more are still taken: some are on their
/// way.
const LINGER: Duration = Duration::from_secs(1);
/// How long a source is taken by its former way, too, so that the next one begins meanwhile.
const OVERLAP: Duration = Duration::from_secs(1);
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
    description: SourceDescription,
    ingest: IngestId,
    held: Held,
    way: Option<Way>,
    /// The way before, and until when it is used, too.
    former: Option<(Instant, Way)>,
    /// Streams that are not wanted any more, and when their packets are refused.
    leaving: Vec<(Instant, RelayedStream)>,
    pub(crate) course: Course,
    /// Whether this node has subscribed to it for itself.
    pub(crate) is_local: bool,
    /// The nodes that it is carried for, and since when.
    pub(crate) carried_for: BTreeMap<FarNodeId, Instant>,
    /// The encodings that the node before this one withholds.
    pub(crate) withheld: Vec<u8>,
}

/// The node that a source is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(crate) node: FarNodeId,
    pub(crate) link: NodeLinkId,
    /// Its worker that has the source.
    pub(crate) far: u16,
}

/// The streams from one node.
#[derive(Debug)]
struct Way {
    parent: Parent,
    streams: [Option<Ssrc>; ENCODINGS],
}

impl Way {
    fn streams(&self) -> impl Iterator<Item = (u8, Ssrc)> {
        let streams = (0..).zip(&self.streams);
        streams.filter_map(|(encoding, ssrc)| Some((encoding, (*ssrc)?)))
    }

    fn stream_of(&self, encoding: u8) -> Option<(NodeLinkId, Ssrc)> {
        let ssrc = self.streams.get(usize::from(encoding)).copied().flatten();
        Some((self.parent.link, ssrc?))
    }
}

impl Receiving {
    /// Adds the ingest of a source. Nothing is asked for yet.
    pub(crate) fn new(media: &MediaPlane, offer: &Offer, reports: &DemandReports) -> Self {
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
            description: description.clone(),
            ingest: ingest.id,
            held: Held::default(),
            way: None,
            former: None,
            leaving: Vec::new(),
            course: Course::default(),
            is_local: false,
            carried_for: BTreeMap::new(),
            withheld: Vec::new(),
        }
    }

    pub(crate) fn ingest(&self) -> IngestId {
        self.ingest
    }

    pub(crate) fn description(&self) -> &SourceDescription {
        &self.description
    }

    /// Returns the encodings and layers that the node is asked for.
    pub(crate) fn asked(&self) -> Demand {
        self.held.asked()
    }

    /// Whether anything is asked for.
    pub(crate) fn asks(&self) -> bool {
        !self.held.asked().is_nothing()
    }

    /// Whether nobody needs it any more.
    pub(crate) fn is_unused(&self) -> bool {
        !self.is_local && self.carried_for.is_empty()
    }

    /// The node that it is taken from.
    pub(crate) fn parent(&self) -> Option<FarNodeId> {
        self.way.as_ref().map(|way| way.parent.node)
    }

    /// The nodes that it is taken from, those of a way that ends among them.
    pub(crate) fn parents(&self) -> impl Iterator<Item = FarNodeId> {
        let former = self.former.iter().map(|(_, way)| way);
        former.chain(&self.way).map(|way| way.parent.node)
    }

    /// Takes what viewers can see now. Returns whether another thing is asked for.
    pub(crate) fn want(&mut self, demand: Demand, now: Instant) -> bool {
        self.held.want(demand, now)
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let leaving = self.leaving.iter().map(|(at, _)| *at);
        let former = self.former.iter().map(|(until, _)| *until);
        let due = leaving.chain(former).chain(self.held.poll_timeout());
        due.chain(self.course.poll_timeout()).min()
    }

    /// Does what is due. Returns whether another thing is asked for, and the node that it is not
    /// taken from any more.
    pub(crate) fn handle_timeout(
        &mut self,
        media: &MediaPlane,
        now: Instant,
    ) -> (bool, Option<FarNodeId>) {
        self.leaving.retain(|(at, stream)| {
            let is_over = *at <= now;
            if is_over {
                media.forget_relayed(*stream);
            }
            !is_over
        });
        let is_over = self.former.as_ref().is_some_and(|(until, _)| *until <= now);
        let ended = is_over.then(|| self.close_former(now)).flatten();
        (self.held.handle_timeout(now), ended)
    }

    /// Takes the source from another node. The way before goes on for a moment.
    pub(crate) fn take_from(&mut self, parent: Parent, now: Instant) -> Option<FarNodeId> {
        let ended = self.close_former(now);
        let way = Way {
            parent,
            streams: [None; ENCODINGS],
        };
        if let Some(former) = self.way.replace(way) {
            self.former = Some((now + OVERLAP, former));
        }
        ended
    }

    /// Opens and closes streams as they are asked for.
    pub(crate) fn update(&mut self, media: &MediaPlane, ssrcs: &mut Ssrcs, now: Instant) {
        let asked = self.held.asked();
        let Some(way) = &mut self.way else {
            return;
        };
        for (encoding, known) in (0..).zip(&mut way.streams) {
            let former = self.former.as_ref().map(|(_, way)| way);
            let stream = |ssrc| RelayedStream {
                link: way.parent.link,
                far: way.parent.far,
                ssrc,
                ingest: self.ingest,
                encoding,
                replaces: former.and_then(|way| way.stream_of(encoding)),
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
    }

    /// Returns the streams that are wanted of a node.
    pub(crate) fn wanted_of(&self, node: FarNodeId) -> Vec<Wanted> {
        let former = self.former.iter().map(|(_, way)| way);
        // The present way to a node replaces a former one.
        let mut ways = self.way.iter().chain(former);
        let way = ways.find(|way| way.parent.node == node);
        let streams = way.into_iter().flat_map(Way::streams);
        let wanted = streams.map(|(encoding, ssrc)| Wanted {
            encoding,
            ssrc: ssrc.0,
            worker: self.ingest.worker,
        });
        wanted.collect()
    }

    /// Ends the present way.
    pub(crate) fn close_way(&mut self, now: Instant) {
        if let Some(way) = self.way.take() {
            self.let_go(&way, now);
        }
    }

    /// Ends the present way, and the former one. Returns the nodes that it is not taken from any
    /// more.
    pub(crate) fn close(&mut self, now: Instant) -> [Option<FarNodeId>; 2] {
        let ended = self.close_former(now);
        let way = self.way.take();
        [ended, way.map(|way| self.let_go(&way, now))]
    }

    fn close_former(&mut self, now: Instant) -> Option<FarNodeId> {
        let (_, way) = self.former.take()?;
        Some(self.let_go(&way, now))
    }

    fn let_go(&mut self, way: &Way, now: Instant) -> FarNodeId {
        for (encoding, ssrc) in way.streams() {
            let stream = RelayedStream {
                link: way.parent.link,
                far: way.parent.far,
                ssrc,
                ingest: self.ingest,
                encoding,
                replaces: None,
            };
            self.leaving.push((now + LINGER, stream));
        }
        way.parent.node
    }

    /// A node is gone, and with it the streams from there. Returns whether the source came from it.
    pub(crate) fn lose(&mut self, node: FarNodeId) -> bool {
        self.former.take_if(|(_, way)| way.parent.node == node);
        let lost = self.way.take_if(|way| way.parent.node == node);
        lost.is_some()
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
