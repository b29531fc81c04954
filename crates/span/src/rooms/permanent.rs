//! Rooms that are ended or changed permanently, in the files of all nodes that have them.

use std::time::Duration;

use portunus_cluster::{HomeKey, NodeId};

use super::Spanning;
use super::message::RoomMessage;

impl Spanning {
    /// Tells a node that has a room if the room was ended permanently: it may have been away.
    pub(super) async fn tell_ended(&self, node: &NodeId, name: &str) {
        let ago = self.directory.is_listed_elsewhere(name);
        if let (Some(ago), Ok(key)) = (ago, self.port.key(name)) {
            let permanently = Some(ago.as_secs());
            self.send(node, &key, &RoomMessage::Destroy { permanently })
                .await;
        }
    }

    /// A room was ended permanently at another node, so many seconds ago.
    pub(super) async fn destroy_permanently(&mut self, key: &HomeKey, from: &NodeId, ago: u64) {
        let ago = Duration::from_secs(ago);
        if self.directory.destroy_permanently(&key.name(), ago) {
            self.release_ended(key, from).await;
        }
    }

    /// A room was changed permanently at another node.
    pub(super) fn keep(&self, name: &str, definition: &str) {
        if let Err(error) = self.directory.change_permanently(name, definition) {
            tracing::warn!(name, %error, "cluster: a room is not changed as at another node");
        }
    }

    /// A client has changed a room permanently: nodes that have it in their files note it, too.
    pub(super) async fn keep_elsewhere(&mut self, name: &str) {
        let Ok(key) = self.port.key(name) else { return };
        let Some(definition) = self.directory.definition(name) else {
            return;
        };
        for node in self.listing.nodes() {
            let definition = definition.clone();
            self.send(&node, &key, &RoomMessage::Keep { definition })
                .await;
        }
    }
}
