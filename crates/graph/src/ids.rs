//! The ids of peers, ingests, tracks, sources and routes.

use portunus_rtp::Mid;

/// The id of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId {
    /// The worker that the peer lives on.
    pub worker: u16,
    /// Its number on the media plane.
    pub serial: u64,
}

impl PeerId {
    /// The index of the worker that the peer lives on, as in the statistics of workers.
    #[inline]
    pub const fn worker(self) -> usize {
        self.worker as usize
    }
}

/// The id of a route from a source to a track, or of an outlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId {
    /// The worker of the sink.
    pub worker: u16,
    /// Its number on the media plane.
    pub serial: u64,
}

/// The id of an ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IngestId {
    /// The worker that the ingest lives on.
    pub worker: u16,
    /// Its number on the media plane.
    pub serial: u64,
}

impl IngestId {
    /// The index of the worker that the ingest lives on.
    #[inline]
    pub fn worker(self) -> usize {
        usize::from(self.worker)
    }
}

/// An m-line of a peer: a source (what the peer sends) or a sink (what the peer receives).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrackRef {
    /// The peer.
    pub peer: PeerId,
    /// The m-line.
    pub mid: Mid,
}

/// The start of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceRef {
    /// An m-line on which a peer sends.
    Track(TrackRef),
    /// An ingest: a source without a PeerConnection.
    Ingest(IngestId),
}

impl SourceRef {
    /// Returns the track, or `None` for an ingest.
    #[inline]
    pub fn track(self) -> Option<TrackRef> {
        match self {
            SourceRef::Track(track) => Some(track),
            SourceRef::Ingest(_) => None,
        }
    }

    /// The worker that the source lives on.
    #[inline]
    pub fn worker(self) -> u16 {
        match self {
            SourceRef::Track(track) => track.peer.worker,
            SourceRef::Ingest(ingest) => ingest.worker,
        }
    }
}

impl From<TrackRef> for SourceRef {
    fn from(track: TrackRef) -> Self {
        SourceRef::Track(track)
    }
}

impl From<IngestId> for SourceRef {
    fn from(ingest: IngestId) -> Self {
        SourceRef::Ingest(ingest)
    }
}
