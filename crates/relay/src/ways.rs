//! The ways by which sources of other nodes come here: from their own node, or through a carrier.

use std::time::Instant;

use crate::course::{ANSWERS, RETRY, STEADY, Step};
use crate::far_node_id::{FarNodeId, Key};
use crate::pending::Subject;
use crate::receiving::Parent;
use crate::sending::SentId;
use crate::state::{Event, State, TreeFigures};
use crate::{Message, NodeName, SourceId};

impl State {
    /// Does what follows from what is asked for now.
    pub(crate) fn update(&mut self, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        if receiving.asks() {
            match receiving.parent() {
                Some(_) => self.open_streams(key, now),
                None if receiving.course.step == Step::Settled => self.choose(key, now),
                None => {}
            }
            return;
        }
        receiving.course.reset();
        let ended = receiving.close(now);
        // The source's node notes who takes it from carriers.
        let all = ended.into_iter().flatten().chain([key.0]);
        for node in all.collect::<std::collections::BTreeSet<_>>() {
            self.push_want(node, key);
        }
    }

    /// Chooses the first way.
    fn choose(&mut self, key: Key, now: Instant) {
        let works = self.nodes.get(&key.0).is_some_and(|node| node.works(now));
        match works {
            true => self.take_directly(key, now),
            false => self.seek(key, now),
        }
    }

    fn take_directly(&mut self, key: Key, now: Instant) {
        let (Some(node), Some(receiving)) = (self.nodes.get(&key.0), self.receiving.get_mut(&key))
        else {
            return;
        };
        receiving.course.step = Step::Settled;
        receiving.course.is_blocked = false;
        let parent = node.parent(key.0, receiving.description().worker);
        match receiving.parent() == Some(key.0) {
            true => self.push_want(key.0, key),
            false => self.take_from(parent, key, now),
        }
    }

    /// Takes a source from a node from now on, and for a moment from the one before, too.
    fn take_from(&mut self, parent: Parent, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        if let Some(ended) = receiving.take_from(parent, now) {
            self.push_want(ended, key);
        }
        self.open_streams(key, now);
    }

    fn open_streams(&mut self, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        let Some(parent) = receiving.parent() else {
            return;
        };
        if let Some(node) = self.nodes.get_mut(&parent) {
            receiving.update(&self.media, &mut node.ssrcs, now);
        }
        self.push_want(parent, key);
    }

    /// Tells a node what is wanted of a source.
    pub(crate) fn push_want(&mut self, node: FarNodeId, key: Key) {
        let subject = match node == key.0 {
            true => Some(Subject::Want(key.1)),
            false => self
                .name_of(key.0)
                .map(|of| Subject::Carry(of.clone(), key.1)),
        };
        let state = self.nodes.get_mut(&node);
        if let (Some(state), Some(subject)) = (state, subject) {
            state.pending.push(subject);
        }
    }

    pub(crate) fn name_of(&self, node: FarNodeId) -> Option<&NodeName> {
        self.nodes.get(&node)?.name()
    }

    /// Asks the node of a source for carriers.
    fn seek(&mut self, key: Key, now: Instant) {
        let (Some(node), Some(receiving)) =
            (self.nodes.get_mut(&key.0), self.receiving.get_mut(&key))
        else {
            return;
        };
        if node.place.is_some() {
            let until = now + ANSWERS;
            receiving.course.step = Step::Seeking { until };
            receiving.course.is_blocked = true;
            node.pending.push(Subject::Seek(key.1));
        }
    }

    /// Takes the answer, or carriers that the node of a source names instead of sending it.
    pub(crate) fn take_carriers(&mut self, key: Key, names: &[NodeName], now: Instant) {
        let known = names.iter().filter_map(|name| self.by_name.get(name));
        let known: Vec<FarNodeId> = known.filter(|node| **node != key.0).copied().collect();
        let Some(receiving) = self.receiving.get_mut(&key).filter(|it| it.asks()) else {
            return;
        };
        let was_sought = matches!(receiving.course.step, Step::Seeking { .. });
        if !was_sought {
            if !receiving.carried_for.is_empty() {
                // Others depend on it meanwhile: say so.
                self.push_want(key.0, key);
                return;
            }
            if receiving.parent() == Some(key.0) {
                receiving.close_way(now);
            }
            receiving.course.insists |= known.is_empty();
        }
        receiving.course.set_reserve(known.into_iter());
        self.ask_next(key, now);
    }

    /// Asks the next carrier. Without one the source's node sends the source itself, if it can.
    fn ask_next(&mut self, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        let name = self.nodes.get(&key.0).and_then(|it| it.name()).cloned();
        while let (Some(name), Some(next)) = (&name, receiving.course.next_carrier()) {
            let Some(node) = self.nodes.get_mut(&next) else {
                continue;
            };
            if node.place.is_none() || node.health.is_silent(now) || !node.works(now) {
                // The source's node must not name it again.
                receiving.course.fail(next, now);
                continue;
            }
            if receiving.parent() == Some(next) {
                receiving.course.step = Step::Settled;
                return;
            }
            let until = now + ANSWERS;
            receiving.course.step = Step::Asking { node: next, until };
            node.pending.push(Subject::Ask(name.clone(), key.1));
            return;
        }
        let works = self.nodes.get(&key.0).is_some_and(|node| node.works(now));
        if works {
            self.take_directly(key, now);
        } else {
            let until = now + RETRY;
            receiving.course.step = Step::Waiting { until };
        }
    }

    /// Takes the consent of a carrier.
    pub(crate) fn take_carrying(&mut self, from: FarNodeId, key: Key, worker: u16, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        let step = receiving.course.step;
        let is_asked = matches!(step, Step::Asking { node, .. } if node == from);
        let Some(node) = self.nodes.get(&from).filter(|_| is_asked) else {
            // It is told that nothing is wanted, unless something is.
            self.push_want(from, key);
            return;
        };
        receiving.course.step = Step::Settled;
        let parent = node.parent(from, worker);
        tracing::debug!(source = ?key.1, carrier = ?node.name(), "a source comes through another node");
        self.take_from(parent, key, now);
    }

    /// Takes the refusal of a carrier.
    pub(crate) fn take_refusal(&mut self, from: FarNodeId, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        match receiving.course.step {
            Step::Asking { node, .. } if node == from => {
                receiving.course.fail(from, now);
                self.ask_next(key, now);
            }
            Step::Settled if receiving.parent() == Some(from) => self.fail_over(key, now),
            _ => {}
        }
    }

    /// Whether a node carries a source for this one, or was asked to.
    pub(crate) fn is_carrier(&self, node: FarNodeId, key: Key) -> bool {
        self.receiving.get(&key).is_some_and(|it| {
            let asks = matches!(it.course.step, Step::Asking { node: asked, .. } if asked == node);
            asks || it.parent() == Some(node)
        })
    }

    /// Looks for another way, as the present one does not work.
    fn fail_over(&mut self, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        if let Some(carrier) = receiving.parent().filter(|parent| *parent != key.0) {
            receiving.course.fail(carrier, now);
        }
        let has_more = receiving.course.has_reserve();
        let works = self.nodes.get(&key.0).is_some_and(|node| node.works(now));
        match (has_more, works) {
            (true, _) => self.ask_next(key, now),
            (false, true) => self.take_directly(key, now),
            (false, false) => self.seek(key, now),
        }
    }

    /// A node is gone: what came through it is taken by another way.
    pub(crate) fn lose_carrier(&mut self, node: FarNodeId, now: Instant) {
        let keys: Vec<Key> = self.receiving.keys().copied().collect();
        for key in keys {
            let Some(receiving) = self.receiving.get_mut(&key) else {
                continue;
            };
            let asked =
                matches!(receiving.course.step, Step::Asking { node: it, .. } if it == node);
            receiving.course.lose(node);
            if receiving.lose(node) && !asked && receiving.asks() {
                self.fail_over(key, now);
            } else if asked {
                self.ask_next(key, now);
            }
        }
    }

    /// Does what is due for sources of other nodes.
    pub(crate) fn handle_ways(&mut self, now: Instant) {
        let receiving = self.receiving.iter();
        let due = receiving.filter(|(_, it)| it.poll_timeout().is_some_and(|at| at <= now));
        let due: Vec<Key> = due.map(|(key, _)| *key).collect();
        for key in due {
            let Some(receiving) = self.receiving.get_mut(&key) else {
                continue;
            };
            let (changes, ended) = receiving.handle_timeout(&self.media, now);
            if let Some(ended) = ended {
                self.push_want(ended, key);
            }
            if changes {
                self.update(key, now);
            }
            self.handle_step(key, now);
        }
    }

    fn handle_step(&mut self, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        match receiving.course.step {
            Step::Asking { node, until } if until <= now => {
                receiving.course.fail(node, now);
                self.ask_next(key, now);
            }
            Step::Seeking { until } if until <= now => self.guess(key, now),
            Step::Waiting { until } if until <= now => {
                receiving.course.step = Step::Settled;
                self.choose(key, now);
            }
            _ => {}
        }
    }

    /// The node of a source does not say who carries it: others are asked, which know themselves
    /// whether they can.
    fn guess(&mut self, key: Key, now: Instant) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        let failed: Vec<FarNodeId> = receiving.course.failed().collect();
        let nodes = self.nodes.iter().filter(|(id, node)| {
            **id != key.0 && node.place.is_some() && node.works(now) && !failed.contains(id)
        });
        receiving.course.set_reserve(nodes.map(|(id, _)| *id));
        self.ask_next(key, now);
    }

    /// Looks at the links, and at the ways that depend on them.
    pub(crate) fn look(&mut self, now: Instant) {
        let mut back = Vec::new();
        for (id, node) in &mut self.nodes {
            let Some(place) = &node.place else { continue };
            match node.health.take(node.link.signs_of_life(), now) {
                Some(true) => {
                    tracing::info!(node = %place.name, "cluster: the media link works");
                    back.push(*id);
                }
                Some(false) => tracing::warn!(
                    node = %place.name,
                    "cluster: the media link carries nothing: UDP does not pass to the node or back"
                ),
                None => {}
            }
        }
        let keys: Vec<Key> = self.receiving.keys().copied().collect();
        for key in keys {
            if let Some(receiving) = self.receiving.get_mut(&key) {
                receiving.course.forgive(&back, now);
            }
            self.look_at_children(key, now);
            self.look_at_way(key, now);
        }
        self.rebuild_trees(now);
    }

    fn look_at_way(&mut self, key: Key, now: Instant) {
        let (Some(receiving), Some(origin)) = (self.receiving.get(&key), self.nodes.get(&key.0))
        else {
            return;
        };
        let course = &receiving.course;
        if course.step != Step::Settled || !receiving.asks() {
            return;
        }
        let Some(parent) = receiving.parent() else {
            return;
        };
        let is_direct = parent == key.0;
        let is_broken = self
            .nodes
            .get(&parent)
            .is_none_or(|node| !node.works(now) || !is_direct && node.health.is_silent(now));
        if is_broken {
            self.fail_over(key, now);
        } else if !is_direct && course.is_blocked && origin.health.works_for(now) >= STEADY {
            self.take_directly(key, now);
        }
    }

    /// The sources of a node end here, as it is gone.
    pub(crate) fn end_sources_of(&mut self, node: FarNodeId, name: Option<&NodeName>) {
        let keys = self.receiving.keys().filter(|(of, _)| *of == node);
        let keys: Vec<Key> = keys.copied().collect();
        for key in keys {
            if let Some(name) = name {
                self.stop_carrying(key, &Subject::Refused(name.clone(), key.1));
            }
            self.end_receiving(key, name);
        }
    }

    /// A source has ended at its node.
    pub(crate) fn end_source(&mut self, key: Key) {
        let name = self.name_of(key.0).cloned();
        if let Some(name) = &name {
            self.stop_carrying(key, &Subject::Gone(name.clone(), key.1));
        }
        self.end_receiving(key, name.as_ref());
    }

    fn end_receiving(&mut self, key: Key, name: Option<&NodeName>) {
        let Some(receiving) = self.receiving.remove(&key) else {
            return;
        };
        let ingest = receiving.ingest();
        receiving.end(&self.media);
        self.by_ingest.remove(&ingest);
        for parent in receiving.parents().filter(|parent| *parent != key.0) {
            // A carrier may not know it.
            if let (Some(node), Some(name)) = (self.nodes.get_mut(&parent), name) {
                node.pending.push(Subject::Carry(name.clone(), key.1));
            }
        }
        if receiving.is_local {
            self.events.push_back(Event::Ended {
                node: key.0,
                source: key.1,
                ingest,
            });
        }
    }

    /// Removes a source of another node that nobody needs any more.
    pub(crate) fn end_if_unused(&mut self, key: Key) {
        if !self.receiving.get(&key).is_some_and(|it| it.is_unused()) {
            return;
        }
        let Some(receiving) = self.receiving.remove(&key) else {
            return;
        };
        self.by_ingest.remove(&receiving.ingest());
        if receiving.asks() {
            for node in receiving.parents().chain([key.0]) {
                self.push_want(node, key);
            }
        }
        receiving.end(&self.media);
    }

    /// Notes encodings of a source that do not come, because a link before carries no more.
    pub(crate) fn note_withheld(&mut self, key: Key, encodings: &[u8]) {
        let Some(receiving) = self.receiving.get_mut(&key) else {
            return;
        };
        receiving.withheld = encodings.iter().copied().take(3).collect();
        let encodings = receiving.withheld.clone();
        for child in receiving.carried_for.keys() {
            if let Some(node) = self.nodes.get_mut(child) {
                node.pending.push(Subject::Withheld(SentId::Carried(key)));
            }
        }
        if receiving.is_local {
            let ingest = receiving.ingest();
            self.events.push_back(Event::Withheld { ingest, encodings });
        }
    }

    /// What this node wants of another one, as messages are made of.
    pub(crate) fn wants_of(&self, node: FarNodeId) -> impl Iterator<Item = Subject> {
        self.receiving.iter().filter_map(move |(key, receiving)| {
            if !receiving.parents().any(|parent| parent == node) {
                return None;
            }
            match node == key.0 {
                true => Some(Subject::Want(key.1)),
                false => Some(Subject::Carry(self.name_of(key.0)?.clone(), key.1)),
            }
        })
    }

    /// Returns the message that tells a node what is wanted of a source.
    pub(crate) fn want_message(&self, node: FarNodeId, source: SourceId) -> Message {
        let receiving = self.receiving.get(&(node, source));
        let streams = receiving.map(|it| it.wanted_of(node)).unwrap_or_default();
        let asked = receiving.map(|it| it.asked()).unwrap_or_default();
        let direct = receiving.is_some_and(|it| it.course.insists || !it.carried_for.is_empty());
        Message::Want {
            source,
            streams,
            spatial: asked.spatial,
            temporal: asked.temporal,
            direct,
            without: self.failed_of((node, source)),
        }
    }

    /// The names of the carriers of a source that have failed.
    pub(crate) fn failed_of(&self, key: Key) -> Vec<NodeName> {
        let receiving = self.receiving.get(&key).into_iter();
        let failed = receiving.flat_map(|it| it.course.failed());
        failed
            .filter_map(|node| self.name_of(node).cloned())
            .collect()
    }

    /// Returns what this node and another one do for each other and for third ones.
    pub fn tree_figures(&self, node: FarNodeId, now: Instant) -> Option<TreeFigures> {
        let state = self.nodes.get(&node)?;
        let mut figures = TreeFigures {
            works: state.works(now),
            carried_streams: state.carried_streams(),
            ..TreeFigures::default()
        };
        let sources = self.receiving.iter().filter(|(key, _)| key.0 == node);
        let parents = sources.filter_map(|(_, it)| it.parent());
        for carrier in parents.filter(|parent| *parent != node) {
            if let Some(name) = self.name_of(carrier) {
                *figures.through.entry(name.clone()).or_default() += 1;
            }
        }
        Some(figures)
    }
}
