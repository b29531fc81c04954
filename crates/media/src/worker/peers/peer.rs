//! A peer as its worker has it.

use std::mem;
use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::Connection;
use portunus_srtp::{fetch, fetch_head};
use smallvec::SmallVec;

use super::adaptation::Adaptation;
use super::claims::Made;
use super::minute::Minute;
use super::talk::AudioLevels;
use crate::capture::Capturing;
use crate::graph::{ENCODINGS, Inspector, Sink, SourceKey};
use crate::plane::PeerId;
use crate::worker::network::Link;
use crate::worker::relay::{CatchUp, Pacing};
use crate::worker::tcp::PipeKey;
use crate::{DtlsState, IceState};

/// A peer. What each packet needs stands first and begins with a cache line, together with the same of its connection.
#[repr(C, align(64))]
pub(in crate::worker) struct Peer {
    /// An entry an m-line.
    pub(in crate::worker) tracks: Vec<Track>,
    pub(in crate::worker) id: PeerId,
    /// What leaves waits for its time.
    pub(in crate::worker) pacer: Option<Box<Pacing>>,
    /// What leaves is recorded, so that feedback tells of the link.
    pub(in crate::worker) is_recorded: bool,
    pub(super) touched: bool,
    /// What it uses if it does not use plain UDP.
    pub(in crate::worker) link: Link,
    pub(in crate::worker) connection: Connection,
    /// Its ICE agent is the controlling one.
    pub(super) controlling: bool,
    /// What it sends, or is to send, as far as anybody asked for it.
    pub(in crate::worker) sources: SmallVec<[SourceKey; 2]>,
    /// Slots of the routes to it.
    pub(in crate::worker) routes: SmallVec<[usize; 4]>,
    pub(super) ufrags: SmallVec<[String; 1]>,
    pub(super) addresses: SmallVec<[SocketAddr; 2]>,
    /// What other workers were told of its addresses.
    pub(super) claims: Box<[Made]>,
    /// Its TCP connections.
    pub(in crate::worker) pipes: Box<[PipeKey]>,
    /// The deadline that the timers have for it.
    pub(super) timer: Option<Instant>,
    /// What it has yet to get of what sources keep for new sinks.
    pub(in crate::worker) catch_up: Option<Box<CatchUp>>,
    /// Layers are chosen by what the link carries.
    pub(in crate::worker) adaptation: Option<Box<Adaptation>>,
    pub(in crate::worker) ice: IceState,
    /// The control plane was told of a pair that media uses.
    pub(in crate::worker) has_pair: bool,
    pub(in crate::worker) dtls: Option<DtlsState>,
    pub(in crate::worker) refused: u64,
    /// What it sends is encrypted end to end.
    pub(in crate::worker) is_opaque: bool,
    /// When it came.
    pub(super) created: Instant,
    /// When a pair worked first, and since when none does any more.
    pub(super) connected: Option<Instant>,
    pub(super) disconnected: Option<Instant>,
    /// What it said last that it can receive, in bit/s.
    pub(in crate::worker) remb: Option<u64>,
    /// Packets of it that were too large.
    pub(in crate::worker) too_large: u64,
    /// None before anything came or left.
    pub(super) minute: Option<Box<Minute>>,
    pub(in crate::worker) capture: Option<Box<Capturing>>,
}

/// Both directions of an m-line.
#[derive(Default)]
#[repr(C, align(64))]
pub(in crate::worker) struct Track {
    pub(in crate::worker) sink: Option<Sink>,
    pub(in crate::worker) source: Option<SourceKey>,
    pub(in crate::worker) inspectors: [Inspector; ENCODINGS],
    /// Listens to what the peer sends.
    pub(in crate::worker) levels: AudioLevels,
}

impl Track {
    /// Fetches what listens to an encoding, ahead.
    #[inline]
    pub(in crate::worker) fn fetch_inspector(&self, encoding: u8) {
        fetch(&self.levels);
        if let Some(inspector) = self.inspectors.get(usize::from(encoding)) {
            fetch(inspector);
        }
    }
}

impl Peer {
    /// One that has just come; its ICE agent is the controlling one, or is not.
    pub(super) fn new(id: PeerId, connection: Connection, controlling: bool, now: Instant) -> Self {
        Self {
            id,
            connection,
            controlling,
            tracks: Vec::new(),
            sources: SmallVec::new(),
            routes: SmallVec::new(),
            ufrags: SmallVec::new(),
            addresses: SmallVec::new(),
            claims: Box::default(),
            link: Link::default(),
            pipes: Box::default(),
            timer: None,
            touched: false,
            is_recorded: false,
            pacer: None,
            catch_up: None,
            adaptation: None,
            ice: IceState::Gathering,
            has_pair: false,
            dtls: None,
            refused: 0,
            is_opaque: false,
            created: now,
            connected: None,
            disconnected: None,
            remb: None,
            too_large: 0,
            minute: None,
            capture: None,
        }
    }

    /// The ICE agent changes its state; says whether it is another than before.
    pub(in crate::worker) fn set_ice(&mut self, state: IceState, now: Instant) -> bool {
        let is_new = std::mem::replace(&mut self.ice, state) != state;
        match state {
            IceState::Connected | IceState::Ready => {
                self.connected.get_or_insert(now);
                self.disconnected = None;
            }
            IceState::Disconnected | IceState::Failed => {
                self.disconnected.get_or_insert(now);
            }
            IceState::Gathering | IceState::Connecting => {}
        }
        is_new
    }

    /// Fetches what taking a datagram of it reads first.
    #[inline]
    pub(in crate::worker) fn fetch_receiver(&self) {
        self.connection.fetch_receiver();
        fetch(&self.tracks);
        fetch(&self.touched);
    }

    /// Bytes at its start that sending to it reads.
    pub(in crate::worker) const HEAD: usize = mem::offset_of!(Self, connection) + Connection::HEAD;

    /// Fetches what sending on an m-line reads, once the peer itself is there.
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
