//! Who is there: the peers of a worker, by what they are found, and which of them have something to do.

mod adaptation;
mod addresses;
mod captures;
mod checks;
mod claims;
mod elsewhere;
mod figures;
mod minute;
mod peer;
mod sampling;
mod talk;
mod timers;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use portunus_rtc::streams::NtpClock;
use portunus_rtc::{Connection, Identity, LocalCandidate, StreamConfig, TransportConfig};
use portunus_sdp::negotiated::{IceCredentials, Kind};

use super::slots::Slots;
use crate::TrackRef;
use crate::plane::PeerId;

use addresses::Addresses;
pub(super) use addresses::Whose;
pub(super) use claims::Claim;
use elsewhere::Elsewhere;
pub(super) use peer::{Peer, Track};
pub(super) use talk::IngestLevels;
use timers::Timers;

/// What all peers of a worker are set up with.
pub(super) struct PeerSetup {
    /// The number of the worker.
    pub(super) index: u16,
    /// How many workers share its port; 0 where none do.
    pub(super) sharing: u16,
    pub(super) identity: Arc<Identity>,
    pub(super) candidates: Vec<LocalCandidate>,
    pub(super) ice_lite: bool,
    pub(super) bandwidth_adaptation: bool,
    pub(super) streams: StreamConfig,
    pub(super) clock: NtpClock,
    /// How many peers there are, and are to be, for whoever chooses a worker.
    pub(super) count: Arc<AtomicUsize>,
}

/// The peers of a worker. What holds:
///
/// - A peer has one slot from [`Peers::create`] to [`Peers::remove`], and is found by its id all the time.
/// - User fragments and addresses lead to peers that are there; each peer knows which of them may lead to it.
/// - An address leads to a peer of this worker, or to another worker, or nowhere.
/// - A peer is in the queue of those to be polled once, or not at all ([`Peers::touch`]).
/// - A peer's deadline has an entry in the timers; entries of other deadlines are skipped.
pub(super) struct Peers {
    slots: Slots<Peer>,
    by_id: HashMap<PeerId, usize>,
    addresses: Addresses,
    elsewhere: Elsewhere,
    timers: Timers,
    /// Those with something to transmit, tell or wait for.
    touched: Vec<usize>,
    setup: PeerSetup,
}

impl Peers {
    pub(super) fn new(setup: PeerSetup) -> Self {
        Self {
            slots: Slots::new(),
            by_id: HashMap::new(),
            addresses: Addresses::default(),
            elsewhere: Elsewhere::default(),
            timers: Timers::default(),
            touched: Vec::new(),
            setup,
        }
    }

    /// Peers that come from now on present this certificate.
    pub(super) fn set_identity(&mut self, identity: Arc<Identity>) {
        self.setup.identity = identity;
    }

    /// Sets how peers that are created from now on reach this worker.
    pub(super) fn set_candidates(&mut self, candidates: Vec<LocalCandidate>) {
        self.setup.candidates = candidates;
    }

    /// A peer comes.
    pub(super) fn create(
        &mut self,
        id: PeerId,
        ice: IceCredentials,
        controlling: bool,
        now: Instant,
    ) {
        let ufrag = ice.ufrag.clone();
        let setup = &self.setup;
        let transport = TransportConfig {
            local_ice: ice,
            identity: setup.identity.clone(),
            controlling,
            ice_lite: setup.ice_lite,
            candidates: setup.candidates.clone(),
            tie_breaker: rand::random(),
        };
        let connection = Connection::new(transport, setup.streams, setup.clock, now);
        let slot = self
            .slots
            .insert(Peer::new(id, connection, controlling, now));
        self.by_id.insert(id, slot);
        if let Some(peer) = self.slots.get_mut(slot) {
            self.addresses.add_ufrag(peer, slot, ufrag);
        }
        self.touch(slot);
    }

    /// A peer is to be reached anew; it goes on to be found by its last user fragments, too.
    pub(super) fn restart_ice(&mut self, slot: usize, ice: IceCredentials, now: Instant) {
        if let Some(peer) = self.slots.get_mut(slot) {
            self.addresses.add_ufrag(peer, slot, ice.ufrag.clone());
            let controlling = peer.controlling;
            peer.connection.transport.restart_ice(ice, controlling, now);
        }
        self.touch(slot);
    }

    /// A peer goes. Nothing leads to it any more.
    pub(super) fn remove(&mut self, slot: usize) -> Option<Peer> {
        let peer = self.slots.try_remove(slot)?;
        self.by_id.remove(&peer.id);
        self.addresses.forget(&peer, slot);
        self.setup.count.fetch_sub(1, Ordering::Relaxed);
        Some(peer)
    }

    /// The slot of a peer.
    pub(super) fn slot(&self, peer: PeerId) -> Option<usize> {
        self.by_id.get(&peer).copied()
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&Peer> {
        self.slots.get(slot)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Peer> {
        self.slots.get_mut(slot)
    }

    /// A peer by its id, with its slot.
    pub(super) fn find_mut(&mut self, peer: PeerId) -> Option<(usize, &mut Peer)> {
        let slot = self.slot(peer)?;
        Some((slot, self.slots.get_mut(slot)?))
    }

    /// The place of a peer, of which nothing is read.
    #[inline]
    pub(super) fn place(&self, slot: usize) -> Option<&Option<Peer>> {
        self.slots.place(slot)
    }

    /// How the streams of all are watched from now on.
    pub(super) fn set_streams(&mut self, change: impl Fn(&mut StreamConfig)) {
        change(&mut self.setup.streams);
        let streams = self.setup.streams;
        for peer in self.slots.iter_mut().map(|(_, peer)| peer) {
            peer.connection.set_streams(streams);
        }
    }

    /// All that are there.
    pub(super) fn ids(&self) -> Vec<PeerId> {
        self.by_id.keys().copied().collect()
    }

    /// An m-line of a peer; made if there is none yet.
    pub(super) fn track(&mut self, slot: usize, index: usize) -> Option<&mut Track> {
        let tracks = &mut self.slots.get_mut(slot)?.tracks;
        while tracks.len() <= index {
            tracks.push(Track::default());
        }
        tracks.get_mut(index)
    }

    /// The data channels of a peer, if it has any.
    pub(super) fn data_track(&self, slot: usize) -> Option<TrackRef> {
        let peer = self.slots.get(slot)?;
        let mut media = peer.connection.media().iter();
        Some(TrackRef {
            peer: peer.id,
            mid: media.find(|media| media.kind == Kind::Data)?.mid,
        })
    }

    /// Whether a track is the data channels of a peer.
    pub(super) fn brings_messages(&self, track: TrackRef) -> bool {
        let peer = self.slot(track.peer).and_then(|slot| self.slots.get(slot));
        let mut media = peer.into_iter().flat_map(|peer| peer.connection.media());
        media.any(|media| media.mid == track.mid && media.kind == Kind::Data)
    }

    /// Closes the channel of a route that ends, if it is the route's own.
    pub(super) fn close_channel(&mut self, slot: usize, label: &str, now: Instant) {
        if let Some(peer) = self.slots.get_mut(slot) {
            // There is none if no message has come.
            let _ = peer.connection.transport.close_data(label, now);
        }
        self.touch(slot);
    }

    /// Changes a peer, if it is there; it may have something to transmit then.
    pub(super) fn change(&mut self, peer: PeerId, change: impl FnOnce(&mut Peer)) {
        if let Some((slot, peer)) = self.find_mut(peer) {
            change(peer);
            self.touch(slot);
        }
    }

    /// Asks something of the peer that sends a track, of which it is given the index.
    pub(super) fn ask(&mut self, track: TrackRef, ask: impl FnOnce(&mut Connection, usize)) {
        let Some((slot, peer)) = self.find_mut(track.peer) else {
            return;
        };
        let media = peer.connection.media().iter();
        let media = media
            .map(|media| media.mid)
            .position(|mid| mid == track.mid);
        if let Some(media) = media {
            ask(&mut peer.connection, media);
        }
        self.touch(slot);
    }

    /// Notes that a peer may have something to transmit, tell or wait for.
    pub(super) fn touch(&mut self, slot: usize) {
        if let Some(peer) = self.slots.get_mut(slot)
            && !std::mem::replace(&mut peer.touched, true)
        {
            self.touched.push(slot);
        }
    }

    /// Whether any are to be polled.
    pub(super) fn are_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// The next one to be polled.
    pub(super) fn next_touched(&mut self) -> Option<usize> {
        while let Some(slot) = self.touched.pop() {
            if let Some(peer) = self.slots.get_mut(slot) {
                peer.touched = false;
                return Some(slot);
            }
        }
        None
    }

    /// A peer is to be looked at again then.
    pub(super) fn wake_at(&mut self, slot: usize, at: Instant) {
        // An earlier entry in the timers does no harm: it polls the peer once more.
        if let Some(peer) = self.slots.get_mut(slot)
            && peer.timer.is_none_or(|timer| at < timer)
        {
            peer.timer = Some(at);
            self.timers.set(slot, at);
        }
    }

    /// When the next one has something to do.
    pub(super) fn timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The next one whose deadline has come.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<usize> {
        while let Some((at, slot)) = self.timers.pop_due(now) {
            let peer = self.slots.get_mut(slot);
            if let Some(peer) = peer.filter(|peer| peer.timer == Some(at)) {
                peer.timer = None;
                return Some(slot);
            }
        }
        None
    }

    /// How many there are.
    #[cfg(all(test, feature = "testing"))]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// What leads to them by address, and checks that are under way.
    #[cfg(all(test, feature = "testing"))]
    pub(super) fn known(&self) -> (usize, usize) {
        self.addresses.known()
    }

    /// Whose datagrams come from an address.
    #[cfg(test)]
    pub(super) fn owner(&self, address: std::net::SocketAddr) -> Option<PeerId> {
        Some(self.slots.get(self.by_address(address)?)?.id)
    }
}
