//! Removal of peers, routes and sources, with everything that depends on them.

use std::sync::atomic::Ordering;
use std::time::Instant;

use smallvec::SmallVec;

use super::Worker;
use crate::command::{Command, SourceCommand};
use crate::{CloseReason, Event, PeerEvent, PeerStats, SourceRef};
use crate::{PeerId, RouteId};

impl Worker {
    /// Closes a peer at the control plane's request, and notifies it.
    pub(super) fn close_peer(&mut self, peer: PeerId, now: Instant) {
        let Some(slot) = self.peers.slot(peer) else {
            return;
        };
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.connection.transport.close();
        }
        self.transmit(slot, now);
        self.end_peer(slot, CloseReason::Requested, now);
    }

    /// Removes a peer with its sources, sinks and routes.
    pub(super) fn end_peer(&mut self, slot: usize, reason: CloseReason, now: Instant) {
        let last = self.last_stats(slot, &reason, now);
        let Some(peer) = self.peers.remove(slot) else {
            return;
        };
        self.close_pipes_of(&peer);
        for (worker, claim) in self.peers.end_claims(&peer) {
            self.handover.send_claim(worker, claim);
        }
        let id = |slot: &usize| Some(self.graph.route(*slot)?.id);
        let fed: SmallVec<[RouteId; 4]> = peer.routes.iter().filter_map(id).collect();
        for route in fed {
            self.remove_route(route, now);
        }
        for key in &peer.sources {
            if let Some(is) = self.graph.source(*key).map(|source| source.is) {
                self.end_source(is, now);
            }
        }
        let event = PeerEvent::new(peer.id, Event::Closed(reason));
        self.outbox.send_event(event.with_last(last));
    }

    /// Returns the last statistics of a peer, if they are wanted and could not be requested before.
    fn last_stats(
        &mut self,
        slot: usize,
        reason: &CloseReason,
        now: Instant,
    ) -> Option<Box<PeerStats>> {
        let wanted = *reason != CloseReason::Requested && self.last_stats.load(Ordering::Relaxed);
        let peer = self.peers.get(slot).filter(|_| wanted)?.id;
        Some(Box::new(self.peers.figures(peer, &self.graph, now)?))
    }

    /// Removes a route or an outlet.
    pub(super) fn remove_route(&mut self, id: RouteId, now: Instant) {
        let (peers, others) = (&mut self.peers, &self.others);
        if !self.graph.remove_route(id, peers, others, now) {
            let registry = self.poller.registry();
            let with = (registry, &mut self.node_links);
            self.outlets.remove(id, &mut self.graph, with);
        }
    }

    /// Removes a source and all its routes, here and on other workers.
    pub(super) fn end_source(&mut self, is: SourceRef, now: Instant) {
        let Some(key) = self.graph.key(is) else {
            return;
        };
        let (watchers, routes) = self.graph.take_audience(key);
        for worker in watchers {
            self.others
                .send(worker, Command::Source(is, SourceCommand::End));
        }
        for route in routes {
            self.remove_route(route, now);
        }
        let registry = self.poller.registry();
        let with = (registry, &mut self.node_links);
        self.outlets.end_all(key, &mut self.graph, with);
        self.legs.end_all(key, &mut self.graph);
        self.graph.remove_source(is, &mut self.peers);
    }
}
