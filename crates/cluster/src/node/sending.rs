//! Chooses what is sent next to a node.

use std::time::Instant;

use bytes::Bytes;

use super::Node;
use super::sharing::revision_of;
use crate::id::NodeId;
use crate::key::HomeKey;
use crate::links::{ConnId, ItemName};
use crate::places::Role;
use crate::wire::{About, Frame};

/// The most registrations that this node asks for in a second.
const REGISTRATIONS: u32 = 1_000;

/// The most items that are sent to a node in a second.
const SHARED: u32 = 5_000;

impl Node {
    /// Returns the next frame for a connection, without its length. It is called while the
    /// connection takes more, and again after each call of the node.
    pub fn poll_frame(&mut self, conn: ConnId, now: Instant) -> Option<Bytes> {
        let node = self.links.node_of(conn)?;
        let link = self.links.get_mut(&node)?;
        if let Some(hello) = link.hello.take() {
            return Some(hello.encode());
        }
        if !link.is_direct() {
            return None;
        }
        // Frames of this node and of others take turns.
        if std::mem::take(&mut link.carries_next)
            && let Some(frame) = link.carried.pop_front()
        {
            return Some(frame.encode());
        }
        if let Some(frame) = self.next_frame(&node, now) {
            self.links.get_mut(&node)?.carries_next = true;
            return Some(frame.encode());
        }
        let carried = self.links.get_mut(&node)?.carried.pop_front();
        let frame = carried.or_else(|| self.next_through(&node, now))?;
        Some(frame.encode())
    }

    /// Returns the next frame for a node to which there is a link.
    pub(super) fn next_frame(&mut self, node: &NodeId, now: Instant) -> Option<Frame> {
        let link = self.links.get_mut(node)?;
        if let Some(frame) = link.outbox.pop_front() {
            return Some(frame);
        }
        while let Some(key) = self.links.get(node)?.registers.first().cloned() {
            if !self.registrations.take(now, REGISTRATIONS) {
                break;
            }
            self.links.get_mut(node)?.registers.pop_first();
            if let Some(frame) = self.registration(&key, node) {
                return Some(frame);
            }
        }
        loop {
            let link = self.links.get_mut(node)?;
            if link.unsent.is_empty() || !link.shared.take(now, SHARED) {
                return None;
            }
            let (key, item) = link.next_unsent()?;
            if let Some(frame) = self.item_frame(&key, item) {
                return Some(frame);
            }
        }
    }

    fn registration(&mut self, key: &HomeKey, node: &NodeId) -> Option<Frame> {
        let Role::There(there) = &mut self.places.get_mut(key)?.role else {
            return None;
        };
        if there.node != *node || there.is_registered {
            return None;
        }
        there.is_asked = true;
        Some(Frame::Register(About {
            key: key.clone(),
            revision: there.revision,
        }))
    }

    /// Returns the frame of an item, or of the mark after the last one.
    fn item_frame(&self, key: &HomeKey, item: Option<ItemName>) -> Option<Frame> {
        let entry = self.places.get(key)?;
        let about = About {
            key: key.clone(),
            revision: revision_of(entry)?,
        };
        let Some(ItemName { owner, name }) = item else {
            return Some(Frame::Synced(about));
        };
        let value = match owner == self.settings.id {
            true => entry.own.get(&name).cloned(),
            false => {
                let items = entry.others.get(&owner);
                items
                    .and_then(|it| it.0.get(&name))
                    .map(|it| it.value.clone())
            }
        };
        Some(Frame::Item {
            about,
            owner,
            name,
            value,
        })
    }
}
