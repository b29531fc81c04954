//! What waits to be sent to the other nodes.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::NodeName;
use super::message::RoomMessage;

/// Bytes that wait for one node at most. With more of them, all are dropped, and the node is told.
const MOST: usize = 16 << 20;
/// Bytes of the longest message that the way to other nodes takes.
const LONGEST: usize = 8 << 20;

/// The messages for the other nodes, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<(NodeName, Bytes)>,
    /// Bytes that wait for each node.
    waiting: HashMap<NodeName, usize>,
    /// The nodes whose messages were dropped.
    dropped: BTreeSet<NodeName>,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, node: &NodeName, message: &RoomMessage) {
        let message = Bytes::from(message.to_bytes());
        let mut queue = self.queue();
        let waiting = queue.waiting.get(node).copied().unwrap_or_default();
        let waiting = waiting.saturating_add(message.len());
        if message.len() > LONGEST || waiting > MOST {
            tracing::warn!(%node, "textroom: messages to another node are dropped");
            queue.messages.retain(|(to, _)| to != node);
            queue.waiting.remove(node);
            queue.dropped.insert(node.clone());
        } else {
            queue.waiting.insert(node.clone(), waiting);
            queue.messages.push_back((node.clone(), message));
        }
        drop(queue);
        self.filled.notify_one();
    }

    /// Forgets what waits for a node that is lost.
    pub(crate) fn forget(&self, node: &str) {
        let mut queue = self.queue();
        queue.messages.retain(|(to, _)| **to != *node);
        queue.waiting.remove(node);
        queue.dropped.remove(node);
    }

    /// Waits for the next message.
    pub(crate) async fn next(&self) -> (NodeName, Bytes) {
        loop {
            if let Some(message) = self.queue().pop() {
                return message;
            }
            self.filled.notified().await;
        }
    }
}

impl Queue {
    fn pop(&mut self) -> Option<(NodeName, Bytes)> {
        if let Some(node) = self.dropped.pop_first() {
            return Some((node, RoomMessage::Reset.to_bytes().into()));
        }
        let (node, message) = self.messages.pop_front()?;
        if let Some(waiting) = self.waiting.get_mut(&node) {
            *waiting = waiting.saturating_sub(message.len());
            if *waiting == 0 {
                self.waiting.remove(&node);
            }
        }
        Some((node, message))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn said(size: usize) -> RoomMessage {
        RoomMessage::Whispered {
            guest: 1,
            texts: vec!["x".repeat(size)],
        }
    }

    #[tokio::test]
    async fn a_node_that_takes_nothing_loses_its_messages_and_is_told() {
        let [a, b] = ["a", "b"].map(NodeName::from);
        let outbox = Outbox::default();
        outbox.push(&b, &said(1));
        for _ in 0..MOST / (1 << 20) {
            outbox.push(&a, &said(1 << 20));
        }
        let (to, message) = outbox.next().await;
        assert_eq!(to, a);
        assert_eq!(RoomMessage::parse(&message), Some(RoomMessage::Reset));
        // The other node loses nothing.
        assert_eq!(outbox.next().await.0, b);
        assert!(outbox.queue().pop().is_none() && outbox.queue().waiting.is_empty());
    }
}
