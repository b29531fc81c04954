//! A peer and its routes as their worker has them.

use std::mem;
use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::Connection;
use portunus_rtc::bandwidth::Decision;
use portunus_srtp::{fetch, fetch_head};
use smallvec::SmallVec;

use super::adaptation::Adaptation;
use super::relay::{Behind, Pacing, Progress};
use super::talk::Ears;
use super::tcp::PipeKey;
use crate::graph::{ENCODINGS, Inspector, Selector, Sink, SourceKey};
use crate::plane::{PeerId, RouteId};
use crate::{DtlsState, IceState, RouteOptions, SourceRef, TrackRef};

/// A peer. What each packet needs stands first and begins with a cache line, together with the same of its connection.
#[repr(C, align(64))]
pub(super) struct Peer {
    /// An entry an m-line.
    pub(super) tracks: Vec<Track>,
    pub(super) id: PeerId,
    /// What leaves waits for its time.
    pub(super) pacer: Option<Box<Pacing>>,
    /// What leaves is recorded, so that feedback tells of the link.
    pub(super) is_recorded: bool,
    pub(super) touched: bool,
    /// The TCP connection that it uses, if it does not use UDP.
    pub(super) pipe: Option<PipeKey>,
    pub(super) connection: Connection,
    /// Its ICE agent is the controlling one.
    pub(super) controlling: bool,
    /// What it sends, or is to send, as far as anybody asked for it.
    pub(super) sources: SmallVec<[SourceKey; 2]>,
    /// Slots of the routes to it.
    pub(super) routes: SmallVec<[usize; 4]>,
    pub(super) ufrags: SmallVec<[String; 1]>,
    pub(super) addresses: SmallVec<[SocketAddr; 2]>,
    /// Its TCP connections.
    pub(super) pipes: Box<[PipeKey]>,
    /// The deadline that the timers have for it.
    pub(super) timer: Option<Instant>,
    /// What it has yet to get of what sources keep for new sinks.
    pub(super) behind: Option<Box<Behind>>,
    /// Layers are chosen by what the link carries.
    pub(super) adaptation: Option<Box<Adaptation>>,
    pub(super) ice: IceState,
    pub(super) dtls: Option<DtlsState>,
    pub(super) refused: u64,
    /// What it sends is encrypted end to end.
    pub(super) is_opaque: bool,
}

/// Both directions of an m-line.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Track {
    pub(super) sink: Option<Sink>,
    pub(super) source: Option<SourceKey>,
    pub(super) inspectors: [Inspector; ENCODINGS],
    /// Listens to what the peer sends.
    pub(super) ears: Ears,
}

impl Track {
    /// Fetches what listens to an encoding, ahead.
    #[inline]
    pub(super) fn fetch_inspector(&self, encoding: u8) {
        fetch(&self.ears);
        if let Some(inspector) = self.inspectors.get(usize::from(encoding)) {
            fetch(inspector);
        }
    }
}

/// A route; it lives on its sink's worker. What each packet needs stands first and begins with a cache line.
#[repr(C, align(64))]
pub(super) struct Route {
    /// Slot of the peer and index of its m-line, once both are there.
    pub(super) sink: Option<(usize, usize)>,
    pub(super) id: RouteId,
    /// Whether it relays already.
    pub(super) progress: Progress,
    /// The numbering that the sink's sender reports stand for.
    pub(super) clock_of: Option<(u8, u32)>,
    pub(super) selector: Selector,
    /// What the client asks for, as far as the link carries it.
    pub(super) wanted: RouteOptions,
    pub(super) source: SourceKey,
    /// The last frame, by encoding and timestamp, that was left out because too many packets waited.
    pub(super) spared: Option<(u8, u32)>,
    /// What the client asks for.
    pub(super) options: RouteOptions,
    /// What was decided for the link.
    pub(super) decision: Option<Decision>,
    pub(super) from: SourceRef,
    pub(super) to: TrackRef,
}

impl Peer {
    /// Bytes at its start that sending to it reads.
    pub(super) const HEAD: usize = mem::offset_of!(Self, connection) + Connection::HEAD;

    /// Fetches what sending on an m-line reads, once the peer itself is there.
    #[inline]
    pub(super) fn fetch_stream(&self, media: usize) {
        if let Some(track) = self.tracks.get(media) {
            fetch_head(&track.sink, Sink::HEAD);
        }
        self.connection.fetch_stream(media);
    }
}

impl Route {
    /// Bytes at its start that relaying reads.
    pub(super) const HEAD: usize = mem::offset_of!(Self, decision);
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    /// A cache line more is a miss more for each sink of each packet.
    #[test]
    fn what_sending_reads_takes_few_cache_lines() {
        let lines = |bytes: usize| bytes.div_ceil(64);
        assert_eq!((lines(Peer::HEAD), lines(Route::HEAD)), (5, 5));
        assert_eq!(lines(Sink::HEAD), 4);
    }

    /// What is fetched ahead is the start of the place.
    #[test]
    fn a_place_begins_with_its_value() {
        assert_eq!(size_of::<Option<Peer>>(), size_of::<Peer>());
        assert_eq!(size_of::<Option<Route>>(), size_of::<Route>());
        assert_eq!(size_of::<Option<Sink>>(), size_of::<Sink>());
    }
}
