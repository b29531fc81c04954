//! The nodes as the bus has them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::id::{Epoch, NodeId};
use crate::key::HomeKey;
use crate::record::NodeRecord;

/// The most nodes of a cluster.
const MOST: usize = 1_000;

/// After this time without a new entry a node is lost, even if no expiry was seen.
pub(crate) const EXPIRY: Duration = Duration::from_secs(16);

/// A node as the bus has it.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) record: NodeRecord,
    /// When it was written last.
    pub(crate) seen: Instant,
    /// Whether it is among the entries since the last connection.
    is_current: bool,
}

/// Whether a run of a node exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    /// That is decided at this moment, or not before the bus is back.
    Unknown(Option<Instant>),
    Dead,
}

/// All nodes but this one.
#[derive(Debug, Default)]
pub(crate) struct Members {
    by_id: BTreeMap<NodeId, Member>,
    /// Since when all entries are known. `None` while the bus is away.
    current: Option<Instant>,
}

impl Members {
    pub(crate) fn get(&self, node: &NodeId) -> Option<&Member> {
        self.by_id.get(node)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NodeId, &Member)> {
        self.by_id.iter()
    }

    /// Takes a record. Returns false if there are too many.
    pub(crate) fn set(&mut self, node: NodeId, record: NodeRecord, now: Instant) -> bool {
        if self.by_id.len() >= MOST && !self.by_id.contains_key(&node) {
            return false;
        }
        let member = Member {
            record,
            seen: now,
            is_current: true,
        };
        self.by_id.insert(node, member);
        true
    }

    pub(crate) fn remove(&mut self, node: &NodeId) {
        self.by_id.remove(node);
    }

    /// Begins to read all entries anew.
    pub(crate) fn reread(&mut self) {
        self.current = None;
        for member in self.by_id.values_mut() {
            member.is_current = false;
        }
    }

    /// Ends that. What was not among the entries is gone.
    pub(crate) fn reread_ends(&mut self, now: Instant) {
        self.current = Some(now);
        self.by_id.retain(|_, member| member.is_current);
    }

    pub(crate) fn bus_lost(&mut self) {
        self.current = None;
    }

    pub(crate) fn is_current(&self) -> bool {
        self.current.is_some()
    }

    /// Removes and returns nodes whose entry was not written for too long, while the bus was there.
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<NodeId> {
        let Some(since) = self.current else {
            return Vec::new();
        };
        let is_over =
            |member: &Member| now.saturating_duration_since(member.seen.max(since)) >= EXPIRY;
        let over: Vec<_> = self
            .by_id
            .iter()
            .filter(|(_, it)| is_over(it))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &over {
            self.by_id.remove(id);
        }
        over
    }

    /// Judges a run of a node to which there is no link.
    ///
    /// After the bus was away, entries of living nodes may have expired, so nobody is judged by a
    /// missing entry before all had the time to write theirs.
    pub(crate) fn life(&self, node: &NodeId, epoch: Epoch, now: Instant) -> Life {
        let Some(since) = self.current else {
            return Life::Unknown(None);
        };
        match self.by_id.get(node) {
            Some(member) if member.record.epoch == epoch => Life::Alive,
            Some(_) => Life::Dead,
            None if now.saturating_duration_since(since) >= EXPIRY => Life::Dead,
            None => Life::Unknown(Some(since + EXPIRY)),
        }
    }
}

/// Returns the place of `node` among `all`, by the hashes of the key with their names: 0 for the
/// lowest one. So each key has an order of its own, which all nodes know.
pub(crate) fn rank<'a>(key: &HomeKey, node: &NodeId, all: impl Iterator<Item = &'a NodeId>) -> u32 {
    let own = hash(key, node);
    let before = all.filter(|other| *other != node && hash(key, other) < own);
    u32::try_from(before.count()).unwrap_or(u32::MAX)
}

/// Returns the hash of a key with a node's name.
pub(crate) fn hash(key: &HomeKey, node: &NodeId) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key.as_str());
    hash.update([0]);
    hash.update(node.as_str());
    hash.finalize().into()
}
