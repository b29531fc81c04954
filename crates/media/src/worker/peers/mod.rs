//! The peers of a worker: how they are found, and which of them have something to do.

mod adaptation;
mod addresses;
mod audio_levels;
mod captures;
mod catch_up;
mod checks;
mod claims;
mod endpoints;
mod figures;
mod foreign_claims;
mod lifecycle;
mod minute;
mod pacing;
mod peer;
mod record;
mod sampling;
mod sending;
mod timers;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use portunus_rtc::streams::NtpClock;
use portunus_rtc::{Connection, Identity, LocalCandidate, StreamConfig, TransportConfig};
use portunus_sdp::negotiated::{IceCredentials, Kind};

use super::slots::Slots;
use crate::PeerId;
use crate::TrackRef;

pub(super) use adaptation::Adaptation;
use addresses::Addresses;
pub(super) use addresses::DatagramOwner;
pub(super) use audio_levels::IngestLevels;
pub(super) use catch_up::{AHEAD, AHEAD_OF_KEYFRAME, CatchUp, Pace};
pub(super) use claims::Claim;
use foreign_claims::ForeignClaims;
pub(super) use pacing::Queued;
pub(super) use peer::{Peer, Track};
use timers::Timers;

/// The setup that all peers of a worker share.
pub(super) struct PeerSetup {
    /// The index of the worker.
    pub(super) index: u16,
    /// The number of workers that share its port, or 0.
    pub(super) sharing: u16,
    pub(super) identity: Arc<Identity>,
    pub(super) candidates: Vec<LocalCandidate>,
    pub(super) ice_lite: bool,
    pub(super) bandwidth_adaptation: bool,
    pub(super) streams: StreamConfig,
    pub(super) clock: NtpClock,
    /// The number of present and coming peers, by which workers are chosen.
    pub(super) count: Arc<AtomicUsize>,
}

/// The peers of a worker. Invariants:
///
/// - A peer keeps its slot from [`Peers::create`] to [`Peers::remove`], and can be found by its id.
/// - User fragments and addresses lead to existing peers. Each peer knows those that may lead to
///   it.
/// - An address leads to a peer of this worker, to another worker, or nowhere.
/// - A peer is queued to be polled at most once ([`Peers::touch`]).
/// - The deadline of a peer has an entry in the timers. Stale entries are skipped.
pub(super) struct Peers {
    slots: Slots<Peer>,
    by_id: HashMap<PeerId, usize>,
    addresses: Addresses,
    foreign_claims: ForeignClaims,
    timers: Timers,
    /// The peers to poll.
    touched: Vec<usize>,
    setup: PeerSetup,
}

impl Peers {
    pub(super) fn new(setup: PeerSetup) -> Self {
        Self {
            slots: Slots::new(),
            by_id: HashMap::new(),
            addresses: Addresses::default(),
            foreign_claims: ForeignClaims::default(),
            timers: Timers::default(),
            touched: Vec::new(),
            setup,
        }
    }

    /// Sets the certificate of new peers.
    pub(super) fn set_identity(&mut self, identity: Arc<Identity>) {
        self.setup.identity = identity;
    }

    /// Whether layers are chosen by what the links of viewers carry.
    pub(super) fn adapts(&self) -> bool {
        self.setup.bandwidth_adaptation
    }

    /// Sets the candidates of new peers.
    pub(super) fn set_candidates(&mut self, candidates: Vec<LocalCandidate>) {
        self.setup.candidates = candidates;
    }

    /// Creates a peer.
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

    /// Restarts ICE of a peer, which can still be found by its last user fragments.
    pub(super) fn restart_ice(&mut self, slot: usize, ice: IceCredentials, now: Instant) {
        if let Some(peer) = self.slots.get_mut(slot) {
            self.addresses.add_ufrag(peer, slot, ice.ufrag.clone());
            let controlling = peer.lifecycle.is_controlling();
            peer.connection.transport.restart_ice(ice, controlling, now);
        }
        self.touch(slot);
    }

    /// Removes a peer, and what leads to it.
    pub(super) fn remove(&mut self, slot: usize) -> Option<Peer> {
        let peer = self.slots.try_remove(slot)?;
        self.by_id.remove(&peer.id);
        self.addresses.forget(&peer, slot);
        self.setup.count.fetch_sub(1, Ordering::Relaxed);
        Some(peer)
    }

    /// Returns the slot of a peer.
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

    /// Returns a peer with its slot.
    pub(super) fn find_mut(&mut self, peer: PeerId) -> Option<(usize, &mut Peer)> {
        let slot = self.slot(peer)?;
        Some((slot, self.slots.get_mut(slot)?))
    }

    /// Returns the slot of a peer without reading it.
    #[inline]
    pub(super) fn place(&self, slot: usize) -> Option<&Option<Peer>> {
        self.slots.place(slot)
    }

    /// Changes how the streams of all peers are monitored.
    pub(super) fn set_streams(&mut self, change: impl Fn(&mut StreamConfig)) {
        change(&mut self.setup.streams);
        let streams = self.setup.streams;
        for peer in self.slots.iter_mut().map(|(_, peer)| peer) {
            peer.connection.set_streams(streams);
        }
    }

    /// The ids of all peers.
    pub(super) fn ids(&self) -> Vec<PeerId> {
        self.by_id.keys().copied().collect()
    }

    /// Returns an m-line of a peer, and creates it if necessary.
    pub(super) fn track(&mut self, slot: usize, index: usize) -> Option<&mut Track> {
        let tracks = &mut self.slots.get_mut(slot)?.tracks;
        while tracks.len() <= index {
            tracks.push(Track::default());
        }
        tracks.get_mut(index)
    }

    /// Returns the m-line with the data channels of a peer.
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

    /// Closes the data channel of a route that ends.
    pub(super) fn close_channel(&mut self, slot: usize, label: &str, now: Instant) {
        if let Some(peer) = self.slots.get_mut(slot) {
            // There is no channel if no message was relayed.
            let _ = peer.connection.transport.close_data(label, now);
        }
        self.touch(slot);
    }

    /// Changes a peer, and polls it.
    pub(super) fn change(&mut self, peer: PeerId, change: impl FnOnce(&mut Peer)) {
        if let Some((slot, peer)) = self.find_mut(peer) {
            change(peer);
            self.touch(slot);
        }
    }

    /// Calls `ask` with the peer that sends a track, and the index of the track. Polls the peer.
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

    /// Queues a peer to be polled.
    pub(super) fn touch(&mut self, slot: usize) {
        if let Some(peer) = self.slots.get_mut(slot)
            && !std::mem::replace(&mut peer.touched, true)
        {
            self.touched.push(slot);
        }
    }

    /// Whether there are peers to poll.
    pub(super) fn are_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Takes the next peer to poll.
    pub(super) fn next_touched(&mut self) -> Option<usize> {
        while let Some(slot) = self.touched.pop() {
            if let Some(peer) = self.slots.get_mut(slot) {
                peer.touched = false;
                return Some(slot);
            }
        }
        None
    }

    /// Sets a timer of a peer.
    pub(super) fn wake_at(&mut self, slot: usize, at: Instant) {
        // An earlier entry in the timers does no harm: the peer is polled once more.
        if let Some(peer) = self.slots.get_mut(slot)
            && peer.timer.is_none_or(|timer| at < timer)
        {
            peer.timer = Some(at);
            self.timers.set(slot, at);
        }
    }

    /// When the next timer is due.
    pub(super) fn timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Takes the next peer whose timer is due.
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

    /// The number of peers.
    #[cfg(all(test, feature = "testing"))]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number of known addresses, and of checks under way.
    #[cfg(all(test, feature = "testing"))]
    pub(super) fn known(&self) -> (usize, usize) {
        self.addresses.known()
    }

    /// Returns the peer at an address.
    #[cfg(test)]
    pub(super) fn owner(&self, address: std::net::SocketAddr) -> Option<PeerId> {
        Some(self.slots.get(self.by_address(address)?)?.id)
    }
}
