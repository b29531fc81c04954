//! At a carrier: sources of other nodes that this one takes and passes on to third nodes.

use std::time::{Duration, Instant};

use portunus_media::SourceRef;

use crate::far_node_id::{FarNodeId, Key};
use crate::pending::Subject;
use crate::sending::{Sending, SentId};
use crate::state::State;
use crate::{Message, NodeName, Offer, SourceId, Wanted};

/// How long a node that has asked has to say what it wants.
const SAYS: Duration = Duration::from_secs(5);
/// The maximum number of sources that are carried for one node.
const MAX_CARRIED: usize = 4_096;

impl State {
    /// Takes a node's request to carry a source of a third one.
    pub(crate) fn take_ask(&mut self, from: FarNodeId, of: &NodeName, offer: &Offer, now: Instant) {
        let key = self.key_of(of, offer.id);
        let key = key.filter(|key| self.may_carry(from, *key, now));
        let (Some(key), Some(node)) = (key, self.nodes.get_mut(&from)) else {
            if let Some(node) = self.nodes.get_mut(&from) {
                node.pending.push(Subject::Refused(of.clone(), offer.id));
            }
            return;
        };
        node.carried.insert(key);
        node.pending.push(Subject::Carrying(of.clone(), offer.id));
        let receiving = self.know(key, offer);
        receiving.carried_for.insert(from, now);
    }

    /// Whether this node carries a source for another one. It has to take it from the source's node
    /// itself, so that no source goes over more than two links, and none in a circle.
    fn may_carry(&self, from: FarNodeId, key: Key, now: Instant) -> bool {
        let (Some(child), Some(origin)) = (self.nodes.get(&from), self.nodes.get(&key.0)) else {
            return false;
        };
        let is_known = child.carried.contains(&key);
        let is_direct = self.receiving.get(&key).is_none_or(|it| {
            let others = it.carried_for.keys().filter(|node| **node != from);
            let is_free = others.count() < self.tree.fan_out;
            !it.course.is_blocked && it.parent().is_none_or(|node| node == key.0) && is_free
        });
        !self.is_draining
            && from != key.0
            && child.place.is_some()
            && origin.works(now)
            && child.has_room()
            && is_direct
            && (is_known || child.carried.len() < MAX_CARRIED)
    }

    /// Takes what a node wants of a source that this one carries.
    pub(crate) fn take_carry(
        &mut self,
        from: FarNodeId,
        (of, source): (&NodeName, SourceId),
        wanted: (&[Wanted], (u8, u8)),
        now: Instant,
    ) {
        let key = self.key_of(of, source);
        let carried = |key: &Key| {
            let node = self.nodes.get(&from);
            node.is_some_and(|node| node.carried.contains(key))
        };
        let Some(key) = key.filter(carried) else {
            if let Some(node) = self.nodes.get_mut(&from)
                && !wanted.0.is_empty()
            {
                node.pending.push(Subject::Refused(of.clone(), source));
            }
            return;
        };
        if wanted.0.is_empty() {
            self.forget_child(key, from);
            return;
        }
        let (Some(receiving), Some(node)) = (self.receiving.get(&key), self.nodes.get_mut(&from))
        else {
            return;
        };
        let link = node.link.id();
        let from = SourceRef::Ingest(receiving.ingest());
        let is_video = receiving.description().codec.codec().is_video();
        let new = || Sending::new(link, from, is_video);
        node.send(&self.media, SentId::Carried(key), new, wanted, now);
        if !receiving.withheld.is_empty() {
            node.pending.push(Subject::Withheld(SentId::Carried(key)));
        }
    }

    /// Carries a source no longer for a node.
    pub(crate) fn forget_child(&mut self, key: Key, child: FarNodeId) {
        if let Some(node) = self.nodes.get_mut(&child) {
            node.carried.remove(&key);
            node.withdraw(&self.media, SentId::Carried(key));
        }
        if let Some(receiving) = self.receiving.get_mut(&key) {
            receiving.carried_for.remove(&child);
        }
        self.end_if_unused(key);
    }

    /// Carries a source no longer for any node, and says so.
    pub(crate) fn stop_carrying(&mut self, key: Key, subject: &Subject) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        for child in std::mem::take(&mut receiving.carried_for).into_keys() {
            if let Some(node) = self.nodes.get_mut(&child) {
                node.carried.remove(&key);
                node.withdraw(&self.media, SentId::Carried(key));
                node.pending.push(subject.clone());
            }
        }
    }

    /// Looks after the nodes that a source is carried for.
    pub(crate) fn look_at_children(&mut self, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get(&key) else {
            return;
        };
        if receiving.carried_for.is_empty() {
            return;
        }
        let is_direct = receiving.parent().is_none_or(|node| node == key.0);
        let origin = self.nodes.get(&key.0);
        if !is_direct || !origin.is_some_and(|node| node.works(now)) {
            if let Some(name) = self.name_of(key.0).cloned() {
                self.stop_carrying(key, &Subject::Refused(name, key.1));
                self.end_if_unused(key);
            }
            return;
        }
        let old = receiving
            .carried_for
            .iter()
            .filter(|(_, at)| now.saturating_duration_since(**at) >= SAYS);
        let old: Vec<FarNodeId> = old.map(|(node, _)| *node).collect();
        for child in old {
            let node = self.nodes.get(&child);
            if !node.is_some_and(|node| node.sends(SentId::Carried(key))) {
                self.forget_child(key, child);
            }
        }
    }

    /// Returns the message about a subject, if there is still something to say.
    pub(crate) fn message_about(&self, node: FarNodeId, subject: Subject) -> Option<Message> {
        let state = self.nodes.get(&node)?;
        Some(match subject {
            Subject::Again => Message::Again,
            Subject::Ended(source) => Message::Ended { source },
            Subject::Want(source) => self.want_message(node, source),
            Subject::Seek(source) => Message::Seek {
                source,
                without: self.failed_of((node, source)),
            },
            Subject::Carriers(source) => Message::Carriers {
                source,
                nodes: state.assigned.get(&source)?.clone(),
            },
            Subject::Ask(of, source) => {
                let receiving = self.receiving.get(&self.key_of(&of, source)?)?;
                let description = receiving.description().clone();
                Message::Ask {
                    of,
                    source,
                    description,
                }
            }
            Subject::Carry(of, source) => self.carry_message(node, of, source),
            Subject::Carrying(of, source) => {
                let receiving = self.receiving.get(&self.key_of(&of, source)?)?;
                let worker = receiving.ingest().worker;
                Message::Carrying { of, source, worker }
            }
            Subject::Refused(of, source) => Message::Refused { of, source },
            Subject::Gone(of, source) => Message::Gone { of, source },
            Subject::Withheld(id) => self.withheld_message(node, id)?,
        })
    }

    fn carry_message(&self, node: FarNodeId, of: NodeName, source: SourceId) -> Message {
        let key = self.key_of(&of, source);
        let receiving = key.and_then(|key| self.receiving.get(&key));
        let streams = receiving.map(|it| it.wanted_of(node)).unwrap_or_default();
        let asked = receiving.map(|it| it.asked()).unwrap_or_default();
        Message::Carry {
            of,
            source,
            streams,
            spatial: asked.spatial,
            temporal: asked.temporal,
        }
    }

    fn withheld_message(&self, node: FarNodeId, id: SentId) -> Option<Message> {
        let mut encodings = self.nodes.get(&node)?.withheld(id)?;
        match id {
            SentId::Own(source) => Some(Message::Withheld { source, encodings }),
            SentId::Carried(key) => {
                let before = &self.receiving.get(&key)?.withheld;
                encodings.extend(
                    before
                        .iter()
                        .filter(|it| !encodings.contains(it))
                        .copied()
                        .collect::<Vec<_>>(),
                );
                let of = self.name_of(key.0)?.clone();
                Some(Message::CarriedWithheld {
                    of,
                    source: key.1,
                    encodings,
                })
            }
        }
    }
}
