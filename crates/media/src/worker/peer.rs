//! A peer and its routes as their worker has them.

use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::Connection;
use portunus_rtc::bandwidth::Decision;
use portunus_srtp::fetch;
use smallvec::SmallVec;

use super::adaptation::Adaptation;
use super::relay::Pacing;
use super::talk::Ears;
use crate::graph::{ENCODINGS, Inspector, Selector, Sink, SourceKey};
use crate::plane::{PeerId, RouteId};
use crate::{DtlsState, IceState, RouteOptions, SourceRef, TrackRef};

/// A peer.
pub(super) struct Peer {
    pub(super) id: PeerId,
    pub(super) connection: Connection,
    /// Its ICE agent is the controlling one.
    pub(super) controlling: bool,
    /// An entry an m-line.
    pub(super) tracks: Vec<Track>,
    /// What it sends, or is to send, as far as anybody asked for it.
    pub(super) sources: SmallVec<[SourceKey; 2]>,
    /// Slots of the routes to it.
    pub(super) routes: SmallVec<[usize; 4]>,
    pub(super) ufrags: SmallVec<[String; 1]>,
    pub(super) addresses: SmallVec<[SocketAddr; 2]>,
    /// The deadline that the timers have for it.
    pub(super) timer: Option<Instant>,
    pub(super) touched: bool,
    /// What leaves is recorded, so that feedback tells of the link.
    pub(super) is_recorded: bool,
    /// What leaves waits for its time.
    pub(super) pacer: Option<Box<Pacing>>,
    /// Layers are chosen by what the link carries.
    pub(super) adaptation: Option<Box<Adaptation>>,
    pub(super) ice: IceState,
    pub(super) dtls: Option<DtlsState>,
    pub(super) refused: u64,
}

/// Both directions of an m-line.
#[derive(Default)]
pub(super) struct Track {
    pub(super) source: Option<SourceKey>,
    pub(super) sink: Option<Sink>,
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

/// A route; it lives on its sink's worker.
pub(super) struct Route {
    pub(super) id: RouteId,
    pub(super) from: SourceRef,
    pub(super) to: TrackRef,
    /// What the client asks for.
    pub(super) options: RouteOptions,
    /// The same, as far as the link carries it.
    pub(super) wanted: RouteOptions,
    /// What was decided for the link.
    pub(super) decision: Option<Decision>,
    pub(super) selector: Selector,
    pub(super) source: SourceKey,
    /// Slot of the peer and index of its m-line, once both are there.
    pub(super) sink: Option<(usize, usize)>,
    /// The numbering that the sink's sender reports stand for.
    pub(super) clock_of: Option<(u8, u32)>,
    /// The last frame, by encoding and timestamp, that was left out because too many packets waited.
    pub(super) spared: Option<(u8, u32)>,
    /// It relays already: what the source kept for new sinks has been sent.
    pub(super) primed: bool,
}
