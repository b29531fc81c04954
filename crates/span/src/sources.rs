//! The sources of the other nodes, and those that this one offers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use portunus_cluster::NodeId;
use portunus_media::IngestId;
use portunus_relay::{FarNode, FarNodeId, NodeName, NodePlace, Offer, Relays, SourceId, Sources};

use crate::figures::{LinkFigures, Rates};

/// The name of a kind of thing, such as `room.videoroom`.
pub(crate) type Kind = &'static str;

/// The other nodes with a media link, and who has which source.
#[derive(Debug)]
pub(crate) struct Crossings {
    pub(crate) relays: Relays,
    /// Locked for moments.
    known: Mutex<Known>,
    rates: Mutex<Rates>,
}

#[derive(Debug, Default)]
struct Known {
    nodes: HashMap<NodeId, (FarNodeId, FarNode)>,
    /// Which kind offers a source of this node.
    offered: HashMap<SourceId, Kind>,
    /// Which kind has taken an ingest, and of which node.
    taken: HashMap<IngestId, (Kind, NodeId)>,
}

/// The sources of one other node, for one kind.
#[derive(Debug)]
pub(crate) struct NodeSources {
    pub(crate) crossings: Arc<Crossings>,
    pub(crate) node: NodeId,
    pub(crate) kind: Kind,
}

/// Returns a node as trees of nodes know it.
pub(crate) fn place(node: &NodeId, region: String) -> Option<NodePlace> {
    // Names of nodes are shorter than these may be.
    let name = NodeName::new(node.as_str()).ok()?;
    Some(NodePlace { name, region })
}

impl Crossings {
    pub(crate) fn new(relays: Relays) -> Self {
        Crossings {
            relays,
            known: Mutex::default(),
            rates: Mutex::default(),
        }
    }

    fn rates(&self) -> MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures the rates of the links.
    pub(crate) fn measure(&self, now: Instant) {
        let nodes = self.nodes();
        let mut rates = self.rates();
        rates.keep(|node| nodes.iter().any(|(known, _)| known == node));
        for (node, id) in &nodes {
            if let Some(stats) = self.relays.stats(*id) {
                rates.measure(node, &stats, now);
            }
        }
    }

    /// Returns what the links carry.
    pub(crate) fn figures(&self) -> Vec<LinkFigures> {
        let nodes = self.nodes();
        let rates = self.rates();
        let figures = nodes.into_iter().filter_map(|(node, id)| {
            let stats = self.relays.stats(id)?;
            let tree = self.relays.tree_figures(id)?;
            Some(rates.figures(node, &stats, &tree))
        });
        figures.collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_node(&self, node: NodeId, id: FarNodeId, far: FarNode) {
        self.known().nodes.insert(node, (id, far));
    }

    pub(crate) fn remove_node(&self, node: &NodeId) -> Option<FarNodeId> {
        self.known().nodes.remove(node).map(|(id, _)| id)
    }

    /// Returns the media link with a node.
    pub(crate) fn node(&self, node: &NodeId) -> Option<FarNodeId> {
        self.known().nodes.get(node).map(|(id, _)| *id)
    }

    /// Returns the nodes with a media link.
    pub(crate) fn nodes(&self) -> Vec<(NodeId, FarNodeId)> {
        let known = self.known();
        let nodes = known.nodes.iter();
        nodes.map(|(node, (id, _))| (node.clone(), *id)).collect()
    }

    /// Returns the node of a media link.
    pub(crate) fn name_of(&self, id: FarNodeId) -> Option<NodeId> {
        let known = self.known();
        let mut nodes = known.nodes.iter();
        nodes.find_map(|(node, (of, _))| (*of == id).then(|| node.clone()))
    }

    pub(crate) fn note_offer(&self, source: SourceId, kind: Kind) {
        self.known().offered.insert(source, kind);
    }

    pub(crate) fn forget_offer(&self, source: SourceId) {
        self.known().offered.remove(&source);
    }

    /// Returns who offers a source.
    pub(crate) fn offerer(&self, source: SourceId) -> Option<Kind> {
        self.known().offered.get(&source).copied()
    }

    /// Forgets an ingest that has ended. Returns who had taken it, and of which node.
    pub(crate) fn forget_taken(&self, ingest: IngestId) -> Option<(Kind, NodeId)> {
        self.known().taken.remove(&ingest)
    }
}

impl Sources for NodeSources {
    fn take(&self, offer: &Offer) -> Option<IngestId> {
        let far = {
            let known = self.crossings.known();
            known.nodes.get(&self.node).map(|(_, far)| far.clone())?
        };
        let ingest = far.take(offer)?;
        self.crossings
            .known()
            .taken
            .insert(ingest, (self.kind, self.node.clone()));
        Some(ingest)
    }

    fn release(&self, ingest: IngestId) {
        self.crossings.forget_taken(ingest);
        self.crossings.relays.unsubscribe(ingest);
    }
}
