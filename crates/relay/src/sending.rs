//! A source of this node, as another node wants it.

use std::sync::Arc;
use std::time::Instant;

use portunus_media::{
    Demand, MediaPlane, NodeLinkId, RelayCount, RelayOptions, RouteId, RouteOptions, SourceRef,
};
use portunus_rtp::Ssrc;

use crate::capacity::Rank;
use crate::far_node_id::Key;
use crate::{SourceId, Wanted};

const ENCODINGS: usize = 3;

/// A source that is sent to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SentId {
    /// One of this node.
    Own(SourceId),
    /// One of a third node, which this one carries.
    Carried(Key),
}

/// A source that another node wants.
#[derive(Debug)]
pub(crate) struct Sending {
    link: NodeLinkId,
    source: SourceRef,
    is_video: bool,
    streams: [Option<Stream>; ENCODINGS],
    spatial: u8,
    temporal: u8,
    /// The other node tells again what it wants, and has not named this yet.
    pub(crate) stale_since: Option<Instant>,
}

/// An encoding that crosses the link.
#[derive(Debug)]
struct Stream {
    wanted: Wanted,
    outlet: RouteId,
    count: Arc<RelayCount>,
    counted: u64,
    /// In bit/s, when it was measured last while it was sent.
    bitrate: f64,
    is_withheld: bool,
}

impl Sending {
    pub(crate) fn new(link: NodeLinkId, source: SourceRef, is_video: bool) -> Self {
        Self {
            link,
            source,
            is_video,
            streams: [None, None, None],
            spatial: 2,
            temporal: 2,
            stale_since: None,
        }
    }

    /// Sends what the other node wants, and nothing else.
    pub(crate) fn apply(
        &mut self,
        media: &MediaPlane,
        wanted: &[Wanted],
        (spatial, temporal): (u8, u8),
    ) {
        self.stale_since = None;
        let layers = (spatial.min(2), temporal.min(2));
        let relayered = layers != (self.spatial, self.temporal);
        (self.spatial, self.temporal) = layers;
        for encoding in 0..ENCODINGS {
            let wanted = wanted
                .iter()
                .find(|it| usize::from(it.encoding) == encoding);
            let wanted = wanted.filter(|it| (1..=portunus_media::MAX_SSRC).contains(&it.ssrc));
            let known = self.streams.get(encoding).and_then(Option::as_ref);
            match (wanted, known) {
                (Some(wanted), Some(known)) if known.wanted == *wanted => {
                    if relayered {
                        let options = self.options(!known.is_withheld);
                        media.set_route(known.outlet, options);
                    }
                }
                (wanted, known) => {
                    if let Some(known) = known {
                        media.remove_route(known.outlet);
                    }
                    let begun = wanted.map(|wanted| self.begin(media, wanted));
                    if let Some(place) = self.streams.get_mut(encoding) {
                        *place = begun;
                    }
                }
            }
        }
    }

    fn begin(&self, media: &MediaPlane, wanted: &Wanted) -> Stream {
        let relay = RelayOptions {
            link: self.link,
            far: wanted.worker,
            ssrc: Ssrc(wanted.ssrc),
            encoding: wanted.encoding,
        };
        let (outlet, count) = media.relay(self.source, self.options(true), relay);
        Stream {
            wanted: *wanted,
            outlet,
            count,
            counted: 0,
            bitrate: 0.0,
            is_withheld: false,
        }
    }

    fn options(&self, enabled: bool) -> RouteOptions {
        RouteOptions {
            enabled,
            spatial: self.spatial,
            temporal: self.temporal,
            ..RouteOptions::default()
        }
    }

    /// What the other node wants.
    pub(crate) fn demand(&self) -> Demand {
        let streams = (0..).zip(&self.streams);
        let bits = streams.filter(|(_, stream)| stream.is_some());
        let encodings = bits.fold(0, |bits, (encoding, _)| bits | 1 << encoding);
        match encodings {
            0 => Demand::NOTHING,
            _ => Demand {
                encodings,
                spatial: self.spatial,
                temporal: self.temporal,
            },
        }
    }

    /// Measures the bitrates of the last `seconds`. Returns their sum.
    pub(crate) fn measure(&mut self, seconds: f64) -> f64 {
        let mut sum = 0.0;
        for stream in self.streams.iter_mut().flatten() {
            let bytes = stream.count.bytes();
            let bits = bytes.saturating_sub(stream.counted) as f64 * 8.0;
            stream.counted = bytes;
            if !stream.is_withheld {
                stream.bitrate = bits / seconds.max(0.001);
                sum += stream.bitrate;
            }
        }
        sum
    }

    /// The encodings that are sent, or that are withheld, with their ranks.
    pub(crate) fn ranks(&self, withheld: bool) -> impl Iterator<Item = (u8, Rank)> {
        let streams = self.streams.iter().flatten();
        let of = streams.filter(move |stream| stream.is_withheld == withheld);
        of.map(|stream| {
            let encoding = stream.wanted.encoding;
            let rank = Rank::new(self.is_video, encoding, stream.bitrate);
            (encoding, rank)
        })
    }

    /// The bitrate of an encoding, in bit/s.
    pub(crate) fn bitrate(&self, encoding: u8) -> f64 {
        let stream = self.streams.get(usize::from(encoding));
        stream.and_then(Option::as_ref).map_or(0.0, |it| it.bitrate)
    }

    /// Withholds an encoding, or sends it again.
    pub(crate) fn withhold(&mut self, media: &MediaPlane, encoding: u8, withheld: bool) {
        let options = self.options(!withheld);
        let stream = self.streams.get_mut(usize::from(encoding));
        if let Some(stream) = stream.and_then(Option::as_mut) {
            stream.is_withheld = withheld;
            media.set_route(stream.outlet, options);
        }
    }

    /// The number of streams.
    pub(crate) fn streams(&self) -> usize {
        self.streams.iter().flatten().count()
    }

    /// The encodings that are withheld.
    pub(crate) fn withheld(&self) -> Vec<u8> {
        self.ranks(true).map(|(encoding, _)| encoding).collect()
    }

    /// Sends nothing any more.
    pub(crate) fn end(&mut self, media: &MediaPlane) {
        self.apply(media, &[], (2, 2));
    }
}
