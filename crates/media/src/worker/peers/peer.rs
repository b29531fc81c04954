//! A peer as its worker has it.

use std::mem;
use std::time::Instant;

use portunus_graph::{ENCODINGS, Inspector, PeerId, Sink, SourceKey};
use portunus_rtc::Connection;
use portunus_srtp::{fetch, fetch_head};
use smallvec::SmallVec;

use super::audio_levels::AudioLevels;
use super::endpoints::Endpoints;
use super::lifecycle::Lifecycle;
use super::record::Record;
use super::sending::Sending;
use crate::worker::network::Link;

/// A peer. The fields that each packet needs come first. They start with a cache line, together
/// with those of the connection.
#[repr(C, align(64))]
pub(in crate::worker) struct Peer {
    /// One entry for each m-line.
    pub(in crate::worker) tracks: Vec<Track>,
    pub(in crate::worker) id: PeerId,
    pub(in crate::worker) sending: Sending,
    /// It is queued to be polled.
    pub(super) touched: bool,
    /// What it uses instead of plain UDP, if it does.
    pub(in crate::worker) link: Link,
    pub(in crate::worker) connection: Connection,
    pub(in crate::worker) lifecycle: Lifecycle,
    pub(in crate::worker) endpoints: Endpoints,
    /// The sources that it sends, or is to send, as far as they were asked for.
    pub(in crate::worker) sources: SmallVec<[SourceKey; 2]>,
    /// The slots of the routes to it.
    pub(in crate::worker) routes: SmallVec<[usize; 4]>,
    /// Its deadline in the timers.
    pub(super) timer: Option<Instant>,
    /// Its media is encrypted end to end.
    pub(in crate::worker) is_opaque: bool,
    pub(in crate::worker) record: Record,
}

/// Both directions of an m-line.
#[derive(Default)]
#[repr(C, align(64))]
pub(in crate::worker) struct Track {
    pub(in crate::worker) sink: Option<Sink>,
    pub(in crate::worker) source: Option<SourceKey>,
    pub(in crate::worker) inspectors: [Inspector; ENCODINGS],
    /// Measures the audio levels of what the peer sends.
    pub(in crate::worker) levels: AudioLevels,
}

impl Track {
    /// Prefetches what inspects an encoding.
    #[inline]
    pub(in crate::worker) fn fetch_inspector(&self, encoding: u8) {
        fetch(&self.levels);
        if let Some(inspector) = self.inspectors.get(usize::from(encoding)) {
            fetch(inspector);
        }
    }
}

impl Peer {
    /// Returns a new peer, whose ICE agent may be the controlling one.
    pub(super) fn new(id: PeerId, connection: Connection, controlling: bool, now: Instant) -> Self {
        Self {
            tracks: Vec::new(),
            id,
            sending: Sending::default(),
            touched: false,
            link: Link::default(),
            connection,
            lifecycle: Lifecycle::new(controlling, now),
            endpoints: Endpoints::default(),
            sources: SmallVec::new(),
            routes: SmallVec::new(),
            timer: None,
            is_opaque: false,
            record: Record::default(),
        }
    }

    /// Prefetches what taking a datagram reads first.
    #[inline]
    pub(in crate::worker) fn fetch_receiver(&self) {
        self.connection.fetch_receiver();
        fetch(&self.tracks);
        fetch(&self.touched);
    }

    /// The size of the part at the start that sending reads.
    pub(in crate::worker) const HEAD: usize = mem::offset_of!(Self, connection) + Connection::HEAD;

    /// Prefetches what sending on an m-line reads. The peer should be in the cache already.
    #[inline]
    pub(in crate::worker) fn fetch_stream(&self, media: usize) {
        if let Some(track) = self.tracks.get(media) {
            fetch_head(&track.sink, Sink::HEAD);
        }
        self.connection.fetch_stream(media);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    /// A cache line more is a miss more for each sink of each packet.
    #[test]
    fn what_sending_reads_takes_few_cache_lines() {
        let lines = |bytes: usize| bytes.div_ceil(64);
        assert_eq!(lines(Peer::HEAD), 5);
        assert_eq!(lines(Sink::HEAD), 4);
    }

    /// What is fetched ahead is the start of the place.
    #[test]
    fn a_place_begins_with_its_value() {
        assert_eq!(size_of::<Option<Peer>>(), size_of::<Peer>());
        assert_eq!(size_of::<Option<Sink>>(), size_of::<Sink>());
    }
}
