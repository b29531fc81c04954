//! Relays sources to the far ends of the legs that they are routed to.

use std::time::Instant;

use portunus_graph::{Sent, SourceKey};
use portunus_sdp::negotiated::Codec;
use smallvec::SmallVec;

use super::{Legs, count};
use crate::leg::Written;
use crate::worker::graph::Graph;

impl Legs {
    /// Sends packets again that the far end of a leg has lost, if their sources still store them.
    pub(super) fn send_again(&mut self, slot: usize, graph: &Graph) {
        let Some(leg) = self.slots.get_mut(slot) else {
            return;
        };
        for seq in leg.state.take_lost() {
            let find = |sent: &Sent| {
                let source = graph.source(sent.source)?;
                Some(&**source.remembered(sent.encoding, sent.seq)?)
            };
            let written = leg
                .state
                .outgoing
                .write_again(seq, find, &mut self.room[..]);
            if let Some(len) = written {
                let datagram = self.room.get(..len).unwrap_or_default();
                let left = leg.send(datagram);
                count(&mut self.sent, len, left);
            }
        }
    }

    /// Sends the fresh packets of a source to its legs.
    pub(in crate::worker) fn feed(&mut self, key: SourceKey, graph: &mut Graph, now: Instant) {
        let Some(source) = graph.source(key) else {
            return;
        };
        if source.legs.is_empty() || source.format.messages.is_some() {
            return;
        }
        let (legs, format): (SmallVec<[usize; 1]>, _) = (source.legs.clone(), source.format);
        let packets = graph.take_packets(key);
        for slot in legs {
            let Some(leg) = self.slots.get_mut(slot) else {
                continue;
            };
            if leg.key() != Some(key) {
                for packet in &packets {
                    leg.state.take_key(packet, format.clock_rate, now);
                }
                self.schedule(slot);
                continue;
            }
            for packet in &packets {
                if packet.codec == Codec::TelephoneEvent {
                    leg.state.hear(packet, now);
                }
                match leg.state.write(key, packet, &format, &mut self.room[..]) {
                    Written::Datagram(len) => {
                        let datagram = self.room.get(..len).unwrap_or_default();
                        let left = leg.send(datagram);
                        count(&mut self.sent, len, left);
                    }
                    Written::Unshared => leg.state.status.note_unshared(),
                    Written::Nothing => {}
                }
            }
            let wanted = leg.state.outgoing.keyframe_wanted(format.encodings, now);
            if let Some(encoding) = wanted {
                graph.want_keyframe(key, encoding);
            }
            if packets.iter().any(|it| it.codec == Codec::TelephoneEvent) {
                self.schedule(slot);
            }
        }
        graph.return_packets(key, packets);
    }
}
