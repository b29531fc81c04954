//! Long messages between two nodes, in parts: a frame of the control connection is short.

use std::collections::HashMap;

use bytes::Bytes;
use portunus_cluster::{HomeKey, NodeId};

use crate::envelope::{Envelope, Part};

/// Bytes of the longest part.
const SIZE: usize = 56 << 10;
/// Bytes of the longest message.
pub(crate) const LONGEST: usize = 8 << 20;
/// The most messages of a node of which some parts are there.
const MOST_BEGUN: usize = 8;

/// Returns the envelopes of a message, in order.
pub(crate) fn split(key: &HomeKey, body: &Bytes, message: u64) -> Vec<Envelope> {
    let envelope = |body, part| Envelope {
        key: key.clone(),
        body,
        part,
    };
    if body.len() <= SIZE {
        return vec![envelope(body.clone(), None)];
    }
    let pieces: Vec<&[u8]> = body.chunks(SIZE).collect();
    let count = pieces.len();
    let parts = pieces.into_iter().zip(0_u32..).enumerate();
    let envelopes = parts.map(|(number, (piece, index))| {
        let part = Part {
            message,
            index,
            is_last: number.saturating_add(1) == count,
        };
        envelope(body.slice_ref(piece), Some(part))
    });
    envelopes.collect()
}

/// The messages of all nodes of which some parts are there.
#[derive(Debug, Default)]
pub(crate) struct Fragments(HashMap<NodeId, HashMap<u64, Begun>>);

#[derive(Debug)]
struct Begun {
    /// The number of the next part.
    next: u32,
    body: Vec<u8>,
}

/// A part is one too many, so its message is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FragmentError {
    /// The message has more than 8 MiB.
    #[error("a message of another node has more than 8 MiB")]
    Long,
    /// Too many messages have begun.
    #[error("a node has begun too many messages")]
    Many,
}

impl Fragments {
    /// Takes an envelope. Returns the content of the message that is complete by it.
    pub(crate) fn take(
        &mut self,
        node: &NodeId,
        envelope: Envelope,
    ) -> Result<Option<Bytes>, FragmentError> {
        let Envelope { body, part, .. } = envelope;
        let Some(part) = part else {
            return Ok(Some(body));
        };
        let begun = self.0.entry(node.clone()).or_default();
        let known = begun.remove(&part.message);
        let known = match part.index {
            0 => Some(Begun {
                next: 0,
                body: Vec::new(),
            }),
            _ => known,
        };
        // Without the parts before it is a part of a message that was lost.
        let Some(mut known) = known.filter(|known| known.next == part.index) else {
            return Ok(None);
        };
        if known.body.len().saturating_add(body.len()) > LONGEST {
            return Err(FragmentError::Long);
        }
        known.body.extend_from_slice(&body);
        known.next = known.next.saturating_add(1);
        if part.is_last {
            return Ok(Some(known.body.into()));
        }
        if begun.len() >= MOST_BEGUN {
            return Err(FragmentError::Many);
        }
        begun.insert(part.message, known);
        Ok(None)
    }

    /// Forgets the messages that a node has begun: the rest of them is lost.
    pub(crate) fn forget(&mut self, node: &NodeId) {
        self.0.remove(node);
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    fn key() -> HomeKey {
        HomeKey::new("directory.textroom", "rooms").unwrap()
    }

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn message(size: usize, seed: usize) -> Bytes {
        (0..size).map(|n| ((n + seed) % 251) as u8).collect()
    }

    #[test]
    fn messages_of_any_length_are_put_together_again() {
        let mut fragments = Fragments::default();
        for size in [0, 1, SIZE, SIZE + 1, 3 * SIZE] {
            let bodies = [message(size, 0), message(size, 1)];
            let parts = [split(&key(), &bodies[0], 1), split(&key(), &bodies[1], 2)];
            let mut whole = Vec::new();
            // Two messages at once.
            for (one, other) in parts[0].iter().zip(&parts[1]) {
                assert!(one.body.len() <= SIZE);
                for part in [one, other] {
                    whole.extend(fragments.take(&node("a"), part.clone()).unwrap());
                }
            }
            assert_eq!(whole, bodies);
        }
        assert!(fragments.0[&node("a")].is_empty());
    }

    #[test]
    fn the_rest_of_a_lost_message_is_dropped() {
        let mut fragments = Fragments::default();
        let parts = split(&key(), &message(3 * SIZE, 0), 1);
        let take = |fragments: &mut Fragments, part: &Envelope| {
            fragments.take(&node("a"), part.clone()).unwrap()
        };
        assert_eq!(take(&mut fragments, &parts[0]), None);
        fragments.forget(&node("a"));
        assert_eq!(take(&mut fragments, &parts[1]), None);
        assert_eq!(take(&mut fragments, &parts[2]), None);
        // One is missing between.
        assert_eq!(take(&mut fragments, &parts[0]), None);
        assert_eq!(take(&mut fragments, &parts[2]), None);
        assert_eq!(take(&mut fragments, &parts[1]), None);
    }

    #[test]
    fn a_node_cannot_fill_the_memory() {
        let mut fragments = Fragments::default();
        let part = |message, index, size| Envelope {
            part: Some(Part {
                message,
                index,
                is_last: false,
            }),
            ..split(&key(), &Bytes::from(vec![0; size]), 0)[0].clone()
        };
        let many = (0..=MOST_BEGUN as u64).map(|it| fragments.take(&node("a"), part(it, 0, 1)));
        let refused = many.filter(|it| *it == Err(FragmentError::Many)).count();
        assert_eq!(refused, 1);
        let parts = u32::try_from(LONGEST / SIZE).unwrap();
        let mut long = (1..=parts + 1).map(|it| fragments.take(&node("a"), part(0, it, SIZE)));
        assert!(long.any(|it| it == Err(FragmentError::Long)));
    }
}
