//! Pacing: if the link of a viewer is measured, packets leave no faster than it can take them.

use std::sync::Arc;
use std::time::Instant;

use portunus_graph::{Packet, Selection, Source};
use portunus_rtc::bandwidth::Lane;
use portunus_rtc::streams::Burst;

use super::{Relay, Relaying};
use crate::worker::graph::Route;
use crate::worker::network::Way;
use crate::worker::peers::Queued;

impl Relaying<'_> {
    /// Sends the paced packets that are due.
    pub(in crate::worker) fn release_paced(&mut self, slot: usize, now: Instant) {
        let is_paced = self
            .peers
            .get(slot)
            .is_some_and(|peer| peer.sending.pacer().is_some());
        if !is_paced {
            return;
        }
        let send_time = self.network.send_time(now);
        while let Some(peer) = self.peers.get_mut(slot)
            && let Some(pacer) = peer.sending.pacer_mut()
        {
            let Some(queued) = pacer.pop(now) else {
                if pacer.is_empty() && !peer.sending.is_recorded() {
                    peer.sending.stop_pacing();
                }
                return;
            };
            let Some(key) = self.graph.route(queued.route).map(|route| route.source) else {
                continue;
            };
            let Some((route, source)) = self.graph.relayed(queued.route, key) else {
                continue;
            };
            let Some((_, media)) = route.sink else {
                continue;
            };
            let mut relay = Relay {
                key,
                source,
                slot: queued.route,
                route,
                peer,
                media,
                network: self.network,
                counters: self.counters,
                send_time,
                now,
            };
            relay.depart(&queued);
        }
    }
}

impl Route {
    /// Whether a packet is dropped because too many wait: whole frames of the highest temporal
    /// layer are.
    fn spares(&mut self, packet: &Packet, source: &Source, is_crowded: bool) -> bool {
        let frame = (packet.encoding, packet.header.timestamp);
        if is_crowded && packet.layers.start && source.flow.can_spare(packet) {
            self.spared = Some(frame);
        }
        self.spared == Some(frame) && source.flow.can_spare(packet)
    }
}

impl Relay<'_> {
    /// Sends, queues or drops a packet of a paced peer.
    pub(super) fn pace(
        &mut self,
        packet: &Arc<Packet>,
        selection: Selection,
        way: Option<&Way>,
        burst: &mut Burst,
    ) {
        let selection = match selection {
            Selection::Other => return,
            // Drops padding, keep-alives, and packets that the peer has no payload type for.
            Selection::Forward(_) if packet.payload().is_empty() || !self.takes(packet) => {
                Selection::Skip
            }
            selection => selection,
        };
        let (now, is_video) = (self.now, self.source.format.is_video);
        let Some(pacer) = self.peer.sending.pacer_mut() else {
            return;
        };
        let selection = match selection {
            Selection::Forward(_) if self.route.spares(packet, self.source, pacer.is_crowded()) => {
                self.counters.pacer_full();
                Selection::Skip
            }
            selection => selection,
        };
        let (waits, bytes) = match selection {
            Selection::Forward(_) => (is_video && !pacer.is_clear(now), packet.data.len()),
            Selection::Skip | Selection::Other => (is_video && !pacer.is_empty(), 0),
        };
        if waits && way.is_some() {
            let queued = Queued {
                route: self.slot,
                packet: Arc::clone(packet),
                selection,
            };
            // A packet that finds no room is lost like any other.
            if pacer.push(Lane::Video, bytes, queued, now).is_err() {
                self.counters.pacer_full();
            }
            return;
        }
        match selection {
            Selection::Forward(part) => {
                let sent = way.and_then(|way| self.send(packet, part, way, burst));
                if let (Some(bytes), Some(pacer)) = (sent, self.peer.sending.pacer_mut()) {
                    pacer.spent(bytes, now);
                }
            }
            Selection::Skip | Selection::Other => self.skip(packet),
        }
    }

    /// Sends a packet that has waited.
    fn depart(&mut self, queued: &Queued) {
        let Selection::Forward(part) = queued.selection else {
            return self.skip(&queued.packet);
        };
        let Some(way) = self.way() else {
            return;
        };
        let mut burst = Burst::default();
        // Without keys or codec, it is lost like any other.
        let _ = self.send(&queued.packet, part, &way, &mut burst);
        self.peer.connection.sent(self.media, &burst, self.now);
    }
}
