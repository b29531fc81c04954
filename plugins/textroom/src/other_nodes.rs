//! The other nodes of a cluster, for the rooms of this one.

use std::fmt;

use portunus_core::{Handle, Later, Object};
use portunus_resources::{Asker, Id};
use serde_json::{Map, Value};

use crate::contact::NodeName;

/// The other nodes, which may have the homes of rooms. No method may be called under the lock of a
/// room.
pub(crate) trait OtherNodes: fmt::Debug + Send + Sync {
    /// Returns the home of a room, if it is another node.
    fn home(&self, id: &Id) -> Option<NodeName>;

    /// Returns the entries in `list` of rooms with homes at other nodes.
    fn listed(&self, with_private: bool) -> Vec<Value>;

    /// Sends a request of a data channel to the home of its room, which answers there.
    fn say(&self, home: &NodeName, guest: &Handle, request: &str, asker: &Asker);

    /// Has the home of a room answer a request by the API. `guest` is `None` for administrators.
    fn ask(
        &self,
        home: &NodeName,
        guest: Option<&Handle>,
        request: Map<String, Value>,
        asker: &Asker,
    ) -> Later;

    /// A client of this node is gone.
    fn gone(&self, guest: &Handle);

    /// Returns the rooms of a client that it has not joined by requests to this node.
    fn memberships(&self, guest: &Handle) -> Vec<Object>;

    /// A room of this node was destroyed by a request, so rooms of the same id end at all nodes.
    /// `permanently`: also in their files.
    fn destroyed(&self, id: &Id, permanently: bool);

    /// A room of this node was changed permanently by this request. Nodes that have it in their files
    /// change it there.
    fn edited_permanently(&self, id: &Id, request: &Map<String, Value>);
}
