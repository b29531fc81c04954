//! At the node of a source: its tree follows the nodes that come and go.
//!
//! A node keeps the way that it was given. When there is a better one today, the source's node
//! names the carriers of today, or none. The node then takes the source by both ways for a moment,
//! so that no picture is missing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::course::STEADY;
use crate::far_node_id::FarNodeId;
use crate::pending::Subject;
use crate::sending::SentId;
use crate::state::State;
use crate::{NodeName, SourceId};

/// How long a node stays where it was moved to.
const STAYS: Duration = Duration::from_secs(30);

impl State {
    /// Moves a node of each source to the way that it would be given today.
    pub(crate) fn rebuild_trees(&mut self, now: Instant) {
        if !self.rebuild.is_due(now) {
            return;
        }
        let assigned = self.nodes.values().flat_map(|state| state.assigned.keys());
        let sources: BTreeSet<SourceId> = assigned.copied().collect();
        for source in sources {
            if let Some((node, carriers)) = self.next_move(source, now)
                && let Some(state) = self.nodes.get_mut(&node)
            {
                tracing::debug!(?source, node = ?state.name(), ?carriers, "a node gets another way");
                let stays = |at: &Instant| now.saturating_duration_since(*at) < STAYS;
                state.moved.retain(|_, at| stays(at));
                state.moved.insert(source, now);
                state.assigned.insert(source, carriers);
                state.pending.push(Subject::Carriers(source));
            }
        }
    }

    /// Returns a node that has a worse way than it would be given today, and the carriers of today.
    /// None means that the source is sent to it from here.
    fn next_move(&self, source: SourceId, now: Instant) -> Option<(FarNodeId, Vec<NodeName>)> {
        let takers = self.takers(SentId::Own(source));
        let regions: Vec<&str> = takers.map(|(_, place)| place.region.as_str()).collect();
        let is_free = |limit: usize| regions.len() < limit;
        let mut nodes = self.nodes.iter();
        nodes.find_map(|(node, state)| {
            let region = state.place.as_ref()?.region.as_str();
            let carriers = state.assigned.get(&source)?;
            let moved = state.moved.get(&source);
            if state.sends(SentId::Own(source))
                || moved.is_some_and(|at| now.saturating_duration_since(*at) < STAYS)
            {
                return None;
            }
            let is_far = region != self.region();
            let by_region = is_far && regions.contains(&region);
            let is_outdated = match (by_region, is_far) {
                (true, _) => self.region_of(carriers.first()) != Some(region),
                (false, true) => is_free(self.tree.fan_out.saturating_mul(2)),
                (false, false) => is_free(self.tree.fan_out),
            };
            if !is_outdated || state.health.works_for(now) < STEADY {
                return None;
            }
            let today = self.assign(*node, source, &[], now);
            // The nodes of its region may have no room.
            (today.is_empty() != by_region).then_some((*node, today))
        })
    }

    fn region_of(&self, node: Option<&NodeName>) -> Option<&str> {
        let state = self.nodes.get(self.by_name.get(node?)?)?;
        Some(state.place.as_ref()?.region.as_str())
    }
}
