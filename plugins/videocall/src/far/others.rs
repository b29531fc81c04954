//! The way to the other nodes.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use portunus_core::media::SourceRef;
use portunus_relay::{Offer, SourceDescription, SourceId, Sources};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::message::CallMessage;

/// What waits to be done by the server. Messages beyond that are dropped.
const DEMANDS: usize = 4_096;
/// The places in the queue that data channels leave for what sets up calls.
const SPARE: usize = 1_024;

/// The media of calls between nodes.
pub trait Crossing: fmt::Debug + Send + Sync {
    /// Offers a source to the other nodes.
    fn offer(&self, source: SourceRef, description: SourceDescription) -> Offer;

    /// Withdraws an offer.
    fn withdraw(&self, source: SourceId);

    /// Returns the sources of a node.
    fn sources(&self, node: &str) -> Arc<dyn Sources>;
}

/// Something that the plugin needs of the cluster.
#[derive(Debug)]
pub enum CallDemand {
    /// Claim a name for this node.
    Claim {
        /// The name.
        name: String,
        /// Whether this node has it.
        answer: oneshot::Sender<Result<(), ClaimError>>,
    },
    /// Release a name.
    Release {
        /// The name.
        name: String,
    },
    /// Find the node of a name.
    Find {
        /// The name.
        name: String,
        /// The node. `None` if no node that can be reached has it.
        answer: oneshot::Sender<Option<String>>,
    },
    /// List the names of all nodes that can be reached.
    List {
        /// The names.
        answer: oneshot::Sender<Vec<String>>,
    },
    /// Send a message to a node.
    Send {
        /// The node.
        node: String,
        /// The content.
        message: Bytes,
    },
}

/// A name cannot be claimed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Another node has it.
    #[error("another node has the name")]
    Taken,
    /// Nobody can tell, for this reason.
    #[error("{0}")]
    Unknown(String),
}

/// The way to the other nodes; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Others {
    pub(super) crossing: Arc<dyn Crossing>,
    demands: mpsc::Sender<CallDemand>,
}

impl Others {
    /// Returns the way, and what the plugin needs of the cluster.
    pub(crate) fn new(crossing: Arc<dyn Crossing>) -> (Self, mpsc::Receiver<CallDemand>) {
        let (demands, taken) = mpsc::channel(DEMANDS);
        (Others { crossing, demands }, taken)
    }

    /// Claims a name for this node.
    pub(crate) async fn claim(&self, name: String) -> Result<(), ClaimError> {
        let (answer, claimed) = oneshot::channel();
        let ended = || ClaimError::Unknown("the server ends".to_owned());
        let demand = CallDemand::Claim { name, answer };
        self.demands.send(demand).await.map_err(|_| ended())?;
        claimed.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Releases a name of this node.
    pub(crate) fn release(&self, name: String) {
        let release = self.demands.try_send(CallDemand::Release { name });
        let Err(TrySendError::Full(release)) = release else {
            return;
        };
        // Without a runtime the server ends, and all names are free.
        if let Ok(runtime) = Handle::try_current() {
            let demands = self.demands.clone();
            runtime.spawn(async move { demands.send(release).await });
        }
    }

    /// Returns the node of a name.
    pub(crate) async fn find(&self, name: String) -> Option<String> {
        let (answer, found) = oneshot::channel();
        let demand = CallDemand::Find { name, answer };
        self.demands.send(demand).await.ok()?;
        found.await.ok().flatten()
    }

    /// Returns the names of all nodes.
    pub(crate) async fn list(&self) -> Vec<String> {
        let (answer, listed) = oneshot::channel();
        let asked = self.demands.send(CallDemand::List { answer }).await;
        match asked {
            Ok(()) => listed.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// Sends a message to a node. Of too many messages the last ones are lost, and data first.
    pub(crate) fn send(&self, node: &str, message: &CallMessage) {
        let is_data = matches!(message, CallMessage::Data { .. });
        let demand = CallDemand::Send {
            node: node.to_owned(),
            message: message.to_bytes().into(),
        };
        let is_full = is_data && self.demands.capacity() < SPARE;
        if is_full || self.demands.try_send(demand).is_err() {
            tracing::debug!(node, "videocall: a message to another node is dropped");
        }
    }
}
