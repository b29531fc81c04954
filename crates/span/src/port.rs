//! What a kind of thing has of the cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use portunus_cluster::{Cluster, Demand, HomeKey, KeyError, NodeId, Place};
use portunus_media::{IngestId, SourceRef};
use portunus_relay::{Offer, SourceDescription, SourceId, Sources};

use crate::fragments::{self, split};
use crate::sources::{Crossings, Kind, NodeSources};

/// The channel of messages about media links, and that of messages about things.
pub(crate) const LINKS: u32 = 1;
pub(crate) const THINGS: u32 = 2;

/// The longest value of an item in bytes.
const LONGEST: usize = 61_440;

/// Numbers the messages of this process that are sent in parts.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

/// The way of a kind of thing to the other nodes; cheap to clone.
#[derive(Debug, Clone)]
pub struct Port {
    kind: Kind,
    cluster: Cluster,
    crossings: Arc<Crossings>,
}

/// A value or a message cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// It is too long.
    #[error("{0} bytes are too long for the cluster: 61,440 at most, and 8 MiB for messages")]
    Long(usize),
}

/// Something that a kind has to know.
#[derive(Debug, Clone, PartialEq)]
pub enum PortEvent {
    /// Another node has an item, has changed it, or (`None`) has it no longer.
    Item {
        /// Of what.
        key: HomeKey,
        /// Whose.
        node: NodeId,
        /// Its name.
        item: String,
        /// Its value.
        value: Option<Bytes>,
    },
    /// Where a thing is at home, at first and after each change.
    Home {
        /// The thing.
        key: HomeKey,
        /// Where.
        place: Place,
    },
    /// All items that the other nodes have of a thing have come.
    Complete {
        /// The thing.
        key: HomeKey,
    },
    /// Its home has ended a thing, which is no longer open here.
    Ended {
        /// The thing.
        key: HomeKey,
    },
    /// A message of another node about a thing.
    Message {
        /// The thing.
        key: HomeKey,
        /// Who has sent it.
        from: NodeId,
        /// The content.
        body: Bytes,
    },
    /// There is a connection to a node, which there was not, or the connection was replaced: messages
    /// of both may be missing.
    Resumed {
        /// The node.
        node: NodeId,
    },
    /// A node is lost, after 2 s without a word, or has started anew.
    Lost {
        /// The node.
        node: NodeId,
    },
    /// A media link with a node is up. Its sources have to be taken anew: the link before carried
    /// the former ones.
    Linked {
        /// The node.
        node: NodeId,
    },
    /// What all other nodes together want of a source of this one.
    Wanted {
        /// The source.
        source: SourceId,
        /// The encodings and layers.
        demand: portunus_media::Demand,
    },
    /// A source of another node has ended, and so has its ingest.
    SourceEnded {
        /// The node.
        node: NodeId,
        /// The source there.
        source: SourceId,
        /// The ingest that took it here.
        ingest: IngestId,
    },
}

impl Port {
    pub(crate) fn new(kind: Kind, cluster: Cluster, crossings: Arc<Crossings>) -> Self {
        Port {
            kind,
            cluster,
            crossings,
        }
    }

    /// Returns the name of this node.
    pub fn node(&self) -> &NodeId {
        self.cluster.id()
    }

    /// Returns the key of the thing with this name.
    pub fn key(&self, name: &str) -> Result<HomeKey, KeyError> {
        HomeKey::new(self.kind, name)
    }

    /// Returns whether the thing has a home on any node.
    pub async fn has_home(&self, key: &HomeKey) -> bool {
        self.cluster.has_home(key).await
    }

    /// Returns the home of the thing, if it is this node or one that there is a link to.
    pub async fn home_of(&self, key: &HomeKey) -> Option<NodeId> {
        self.cluster.home_of(key).await
    }

    /// Returns the names of all things of this kind with such homes.
    pub async fn names(&self) -> Vec<String> {
        self.cluster.names_of(self.kind).await
    }

    /// As [`Port::open`], for a thing that only this node can have. It has to be released if another
    /// node is its home already.
    pub async fn claim(&self, key: &HomeKey) {
        self.cluster.demand(Demand::Claim(key.clone())).await;
    }

    /// The thing is used here: its items come, until it is released.
    pub async fn open(&self, key: &HomeKey) {
        self.cluster.demand(Demand::Open(key.clone())).await;
    }

    /// The thing is no longer used here. Its items here are forgotten.
    pub async fn release(&self, key: &HomeKey) {
        self.cluster.demand(Demand::Release(key.clone())).await;
    }

    /// Ends the thing for all nodes, if this one is its home. Otherwise it is released.
    pub async fn end(&self, key: &HomeKey) {
        self.cluster.demand(Demand::End(key.clone())).await;
    }

    /// Sets an item of this node. The name has at most 512 bytes.
    pub async fn set(&self, key: &HomeKey, item: &str, value: Bytes) -> Result<(), PortError> {
        if value.len() > LONGEST {
            return Err(PortError::Long(value.len()));
        }
        let demand = Demand::Set {
            key: key.clone(),
            item: item.to_owned(),
            value,
        };
        self.cluster.demand(demand).await;
        Ok(())
    }

    /// Removes an item of this node.
    pub async fn remove(&self, key: &HomeKey, item: &str) {
        let demand = Demand::Remove {
            key: key.clone(),
            item: item.to_owned(),
        };
        self.cluster.demand(demand).await;
    }

    /// Sends a message about a thing to a node, of 8 MiB at most. It is lost if there is no
    /// connection to it.
    pub async fn send(&self, to: &NodeId, key: &HomeKey, body: Bytes) -> Result<(), PortError> {
        if body.len() > fragments::LONGEST {
            return Err(PortError::Long(body.len()));
        }
        let message = MESSAGES.fetch_add(1, Ordering::Relaxed);
        for envelope in split(key, &body, message) {
            let demand = Demand::Direct {
                to: to.clone(),
                channel: THINGS,
                payload: envelope.to_bytes(),
            };
            self.cluster.demand(demand).await;
        }
        Ok(())
    }

    /// Offers a source of this node to the others, who learn of it by an item.
    pub fn offer(&self, source: SourceRef, description: SourceDescription) -> Offer {
        let offer = self.crossings.relays.offer(source, description);
        self.crossings.note_offer(offer.id, self.kind);
        offer
    }

    /// Withdraws an offer, because the source is gone.
    pub fn withdraw(&self, source: SourceId) {
        self.crossings.forget_offer(source);
        self.crossings.relays.withdraw(source);
    }

    /// Returns the sources of a node, whether there is a media link to it or not.
    pub fn sources(&self, node: &NodeId) -> Arc<dyn Sources> {
        Arc::new(NodeSources {
            crossings: self.crossings.clone(),
            node: node.clone(),
            kind: self.kind,
        })
    }
}
