//! Messages of doors to other nodes, until these have them: those that were on their way when a
//! connection was replaced are sent again.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use portunus_cluster::{HomeKey, NodeId};
use serde::{Deserialize, Serialize};

use super::Spanning;
use super::message::RoomMessage;

/// The most messages that are kept for a node, and their bytes. Older ones are not sent again. A link
/// with 1,000 messages that wait is reset.
const MOST: usize = 512;
const MOST_BYTES: usize = 8 << 20;
/// After this number of messages the sender is told that they have come.
const CONFIRMED: u64 = 64;
/// A message that was not confirmed for so long is sent again.
const PATIENCE: Duration = Duration::from_secs(2);

/// The place of a message among those of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbered {
    /// The sender's run.
    pub(crate) run: u64,
    pub(crate) number: u64,
    /// The first message that may come again.
    pub(crate) first: u64,
}

/// The messages to all nodes, and from them.
#[derive(Debug)]
pub(crate) struct DoorMessages {
    run: u64,
    sent: HashMap<NodeId, Sent>,
    taken: HashMap<NodeId, Taken>,
}

/// What a node has not confirmed.
#[derive(Debug, Default)]
struct Sent {
    last: u64,
    kept: VecDeque<Kept>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    at: Instant,
    key: HomeKey,
    content: Bytes,
}

/// What has come from a node.
#[derive(Debug, Default)]
struct Taken {
    run: u64,
    last: u64,
    confirmed: u64,
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) key: HomeKey,
    pub(crate) content: Bytes,
    pub(crate) numbered: Numbered,
}

impl Default for DoorMessages {
    fn default() -> Self {
        DoorMessages {
            run: rand::random(),
            sent: HashMap::new(),
            taken: HashMap::new(),
        }
    }
}

impl DoorMessages {
    /// Keeps a message for a node. Returns its number.
    pub(crate) fn send(&mut self, to: &NodeId, key: &HomeKey, content: Bytes) -> Numbered {
        let sent = self.sent.entry(to.clone()).or_default();
        sent.last = sent.last.saturating_add(1);
        sent.bytes = sent.bytes.saturating_add(content.len());
        sent.kept.push_back(Kept {
            number: sent.last,
            at: Instant::now(),
            key: key.clone(),
            content,
        });
        while sent.kept.len() > MOST || sent.bytes > MOST_BYTES {
            sent.drop_first();
        }
        sent.numbered(self.run, sent.last)
    }

    /// A node has all messages up to this one.
    pub(crate) fn confirmed(&mut self, by: &NodeId, run: u64, number: u64) {
        if run != self.run {
            return;
        }
        if let Some(sent) = self.sent.get_mut(by) {
            while sent.kept.front().is_some_and(|it| it.number <= number) {
                sent.drop_first();
            }
        }
    }

    /// Returns the messages that a node may have missed, in order.
    pub(crate) fn again(&mut self, to: &NodeId) -> Vec<Outgoing> {
        let (run, now) = (self.run, Instant::now());
        let Some(sent) = self.sent.get_mut(to) else {
            return Vec::new();
        };
        for kept in &mut sent.kept {
            kept.at = now;
        }
        let outgoing = sent.kept.iter().map(|kept| Outgoing {
            key: kept.key.clone(),
            content: kept.content.clone(),
            numbered: sent.numbered(run, kept.number),
        });
        outgoing.collect()
    }

    /// Returns the nodes that have not confirmed messages for a while.
    pub(crate) fn silent(&self, now: Instant) -> Vec<NodeId> {
        let late = self.sent.iter().filter(|(_, sent)| {
            let first = sent.kept.front();
            first.is_some_and(|it| now.saturating_duration_since(it.at) >= PATIENCE)
        });
        late.map(|(node, _)| node.clone()).collect()
    }

    /// Forgets the messages to a node that is lost.
    pub(crate) fn lost(&mut self, node: &NodeId) {
        if let Some(sent) = self.sent.get_mut(node) {
            sent.kept.clear();
            sent.bytes = 0;
        }
    }

    /// Takes the number of a message. Returns whether the message is the next one: it is new, and
    /// none before it is missing that may still come.
    pub(crate) fn take(&mut self, from: &NodeId, numbered: Numbered) -> bool {
        let taken = self.taken.entry(from.clone()).or_default();
        if taken.run != numbered.run {
            *taken = Taken {
                run: numbered.run,
                ..Taken::default()
            };
        }
        // Those before it will not come any more.
        taken.last = taken.last.max(numbered.first.saturating_sub(1));
        let is_next = numbered.number == taken.last.saturating_add(1);
        if is_next {
            taken.last = numbered.number;
        }
        is_next
    }

    /// Returns the run and the number to confirm to a node: after many messages, or (`at_once`) when
    /// there is anything new.
    pub(crate) fn unconfirmed(&mut self, to: &NodeId, at_once: bool) -> Option<(u64, u64)> {
        let taken = self.taken.get_mut(to)?;
        let new = taken.last.saturating_sub(taken.confirmed);
        if new == 0 || new < CONFIRMED && !at_once {
            return None;
        }
        taken.confirmed = taken.last;
        Some((taken.run, taken.last))
    }

    /// Returns the nodes from which messages have come.
    pub(crate) fn senders(&self) -> Vec<NodeId> {
        self.taken.keys().cloned().collect()
    }
}

impl Spanning {
    /// Sends a message of a door to a node, or to all nodes where participants of a room are.
    pub(super) async fn tell_doors(
        &mut self,
        name: &str,
        to: Option<String>,
        (message, may_be_lost): (&[u8], bool),
    ) {
        let Ok(key) = self.port.key(name) else { return };
        let nodes: Vec<NodeId> = match to {
            Some(to) => NodeId::new(&to).into_iter().collect(),
            None => {
                let nodes = self.open.get(&key).map(|spanned| spanned.theirs.nodes());
                nodes.into_iter().flatten().cloned().collect()
            }
        };
        let bytes = STANDARD.encode(message);
        for node in nodes {
            // Earlier versions confirm nothing.
            let is_kept = !may_be_lost && self.listing.answers(&node);
            let content = || Bytes::copy_from_slice(message);
            let numbered = is_kept.then(|| self.door_messages.send(&node, &key, content()));
            let bytes = bytes.clone();
            self.send(&node, &key, &RoomMessage::Door { bytes, numbered })
                .await;
        }
    }

    /// Takes a message of a door of another node.
    pub(super) async fn take_door(
        &mut self,
        key: &HomeKey,
        from: &NodeId,
        (bytes, numbered): (&str, Option<Numbered>),
    ) {
        if numbered.is_some_and(|numbered| !self.door_messages.take(from, numbered)) {
            return;
        }
        if let (Some(door), Ok(bytes)) = (self.doors.door(), STANDARD.decode(bytes)) {
            door.take(&key.name(), from.as_str(), &bytes);
        }
        if let Some((run, number)) = self.door_messages.unconfirmed(from, false) {
            let confirmed = RoomMessage::Confirmed { run, number };
            self.send(from, key, &confirmed).await;
        }
    }

    /// Sends what a node may have missed again.
    pub(super) async fn tell_doors_again(&mut self, node: &NodeId) {
        for outgoing in self.door_messages.again(node) {
            let bytes = STANDARD.encode(&outgoing.content);
            let numbered = Some(outgoing.numbered);
            self.send(node, &outgoing.key, &RoomMessage::Door { bytes, numbered })
                .await;
        }
    }

    /// Confirms what has come, and sends again what was not confirmed.
    pub(super) async fn confirm_doors(&mut self) {
        // The messages are about no room.
        let Ok(key) = self.port.key("doors") else {
            return;
        };
        for node in self.door_messages.senders() {
            if let Some((run, number)) = self.door_messages.unconfirmed(&node, true) {
                let confirmed = RoomMessage::Confirmed { run, number };
                self.send(&node, &key, &confirmed).await;
            }
        }
        for node in self.door_messages.silent(Instant::now()) {
            self.tell_doors_again(&node).await;
        }
    }
}

impl Sent {
    fn drop_first(&mut self) {
        if let Some(first) = self.kept.pop_front() {
            self.bytes = self.bytes.saturating_sub(first.content.len());
        }
    }

    fn numbered(&self, run: u64, number: u64) -> Numbered {
        let first = self.kept.front().map_or(number, |it| it.number);
        Numbered { run, number, first }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use portunus_cluster::HomeKey;

    use super::*;

    fn nodes() -> [NodeId; 2] {
        ["a", "b"].map(|name| NodeId::new(name).unwrap())
    }

    #[test]
    fn what_was_lost_comes_again_in_order_and_once() {
        let [a, b] = nodes();
        let key = HomeKey::new(super::super::KIND, "hall").unwrap();
        let (mut from, mut to) = (DoorMessages::default(), DoorMessages::default());
        let sent: Vec<_> = (0..5_u8)
            .map(|byte| from.send(&b, &key, vec![byte].into()))
            .collect();
        // The second one is lost with its connection, and those behind it wait for it.
        let came: Vec<_> = [0, 2, 3].map(|at| to.take(&a, sent[at])).to_vec();
        assert_eq!(came, [true, false, false]);
        let again = from.again(&b);
        let came = again.iter().filter(|it| to.take(&a, it.numbered));
        let came: Vec<u8> = came.map(|it| it.content[0]).collect();
        assert_eq!(came, [1, 2, 3, 4]);
        assert_eq!(to.unconfirmed(&a, false), None);
        let (run, number) = to.unconfirmed(&a, true).unwrap();
        assert_eq!(to.unconfirmed(&a, true), None);
        from.confirmed(&b, run, number);
        assert!(from.again(&b).is_empty());
        assert!(from.silent(Instant::now() + PATIENCE).is_empty());
        // A sender that starts anew counts from 1 again.
        let mut from = DoorMessages::default();
        let first = from.send(&b, &key, Bytes::new());
        assert!(to.take(&a, first) && !to.take(&a, first));
        assert_eq!(from.silent(Instant::now() + PATIENCE), [b]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_a_gap_stops_nothing() {
        let [a, b] = nodes();
        let key = HomeKey::new(super::super::KIND, "hall").unwrap();
        let (mut from, mut to) = (DoorMessages::default(), DoorMessages::default());
        let first = from.send(&b, &key, Bytes::new());
        assert!(to.take(&a, first));
        for _ in 0..MOST + 10 {
            from.send(&b, &key, Bytes::new());
        }
        let again = from.again(&b);
        assert_eq!(again.len(), MOST);
        assert!(again.iter().all(|it| to.take(&a, it.numbered)));
        from.lost(&b);
        assert!(from.again(&b).is_empty());
        let next = from.send(&b, &key, Bytes::new());
        assert!(to.take(&a, next));
    }
}
