//! At the node of a source: who takes it from here, and who from a carrier.

use std::cmp::Reverse;
use std::time::Instant;

use crate::course::MAX_CARRIERS;
use crate::far_node::FarNodeState;
use crate::far_node_id::FarNodeId;
use crate::pending::Subject;
use crate::sending::SentId;
use crate::state::State;
use crate::{NodeName, SourceId};

impl State {
    /// Returns the carriers from which a node is to take a source of this one. Empty means that the
    /// source is sent to it from here.
    pub(crate) fn assign(
        &self,
        node: FarNodeId,
        source: SourceId,
        without: &[NodeName],
        now: Instant,
    ) -> Vec<NodeName> {
        let id = SentId::Own(source);
        let Some((state, wanting)) = self.place_of(node) else {
            return Vec::new();
        };
        if state.sends(id) {
            return Vec::new();
        }
        let (own, region) = (self.region(), wanting.region.as_str());
        let is_far = region != own;
        let takers = self.nodes.values().filter(|it| it.sends(id)).count();
        let has_near = self.takers(id).any(|(_, place)| place.region == region);
        // The first node of a region takes it from here, so that the others of the region can take
        // it from that one, as long as there are not too many regions.
        let limit = match is_far && !has_near {
            true => self.tree.fan_out.saturating_mul(2),
            false => self.tree.fan_out,
        };
        if takers < limit && !(is_far && has_near) {
            return Vec::new();
        }
        let only_near = is_far && has_near;
        let candidates = self.takers(id).filter(|(state, place)| {
            (!only_near || place.region == region)
                && self.may_carry_more(state, node, source, without, now)
        });
        self.best(candidates, region, source)
    }

    /// Answers a node that the media of this one does not reach.
    pub(crate) fn take_seek(
        &mut self,
        node: FarNodeId,
        source: SourceId,
        without: &[NodeName],
        now: Instant,
    ) {
        let Some((_, wanting)) = self.place_of(node) else {
            return;
        };
        let region = wanting.region.clone();
        if !self.offers.contains_key(&source) {
            if let Some(state) = self.nodes.get_mut(&node) {
                state.tell_ended(source);
            }
            return;
        }
        let nodes = self.nodes.iter().filter(|(of, _)| **of != node);
        let others = nodes.filter_map(|(_, state)| Some((state, state.place.as_ref()?)));
        // Who takes it from a carrier cannot carry it.
        let others = others.filter(|(state, _)| {
            !state.assigned.contains_key(&source)
                && self.may_carry_more(state, node, source, without, now)
        });
        let carriers = self.best(others, &region, source);
        if let Some(state) = self.nodes.get_mut(&node) {
            state.assigned.insert(source, carriers);
            state.pending.push(Subject::Carriers(source));
        }
    }

    pub(crate) fn region(&self) -> &str {
        let place = self.tree.place.as_ref();
        place.map_or("", |place| place.region.as_str())
    }

    fn place_of(&self, node: FarNodeId) -> Option<(&FarNodeState, &crate::NodePlace)> {
        let state = self.nodes.get(&node)?;
        Some((state, state.place.as_ref()?))
    }

    /// The nodes that take a source from here, and can carry it.
    pub(crate) fn takers(
        &self,
        id: SentId,
    ) -> impl Iterator<Item = (&FarNodeState, &crate::NodePlace)> {
        let takers = self.nodes.values().filter(move |state| state.sends(id));
        takers.filter_map(|state| Some((state, state.place.as_ref()?)))
    }

    fn may_carry_more(
        &self,
        state: &FarNodeState,
        for_node: FarNodeId,
        source: SourceId,
        without: &[NodeName],
        now: Instant,
    ) -> bool {
        let Some(name) = state.name() else {
            return false;
        };
        let is_same = self.by_name.get(name) == Some(&for_node);
        !is_same
            && !without.contains(name)
            && state.works(now)
            && !state.health.is_silent(now)
            && self.children(name, source) < self.tree.fan_out
    }

    /// How many nodes were told to take a source from this one.
    fn children(&self, carrier: &NodeName, source: SourceId) -> usize {
        let assigned = self
            .nodes
            .values()
            .filter_map(|it| it.assigned.get(&source));
        let of = assigned.filter(|carriers| carriers.first() == Some(carrier));
        of.count()
    }

    /// Returns the best carriers: those that have the source already, then those of the region, then
    /// those with the fewest nodes to serve.
    fn best<'s>(
        &'s self,
        candidates: impl Iterator<Item = (&'s FarNodeState, &'s crate::NodePlace)>,
        region: &str,
        source: SourceId,
    ) -> Vec<NodeName> {
        let id = SentId::Own(source);
        let mut ranked: Vec<_> = candidates
            .map(|(state, place)| {
                let is_near = Reverse(place.region == region);
                let children = self.children(&place.name, source);
                ((Reverse(state.sends(id)), is_near, children), &place.name)
            })
            .collect();
        ranked.sort();
        let best = ranked.into_iter().take(MAX_CARRIERS);
        best.map(|(_, name)| name.clone()).collect()
    }
}
