//! What a node has open, or is the home of.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::Bytes;

use crate::event::Place as Told;
use crate::id::{Epoch, NodeId, Revision};
use crate::key::HomeKey;
use crate::record::HomeRecord;

/// Why a home is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Claim,
    Takeover,
    Handover,
    End,
}

/// The part that this node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is not known where it is.
    Seeking,
    /// This node is the home.
    Here(Revision),
    /// Another node is.
    There(There),
}

/// A home on another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct There {
    pub(crate) node: NodeId,
    pub(crate) epoch: Epoch,
    pub(crate) revision: Revision,
    pub(crate) is_registered: bool,
    /// Whether that was asked for, and is not answered yet.
    pub(crate) is_asked: bool,
}

/// Items of another node.
#[derive(Debug, Default)]
pub(crate) struct Items(pub(crate) BTreeMap<String, Item>);

/// An item of another node.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) value: Bytes,
    /// Whether it is from before the last registration, and has not come again.
    pub(crate) is_stale: bool,
}

/// A room or a stream that is open here, or at home here.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Whether the server has it open.
    pub(crate) is_open: bool,
    /// Whether no other node can have it.
    pub(crate) is_pinned: bool,
    pub(crate) role: Role,
    /// The write in flight.
    pub(crate) write: Option<Purpose>,
    /// No write before this moment, after one that failed.
    pub(crate) retry: Option<Instant>,
    /// The items of this node.
    pub(crate) own: BTreeMap<String, Bytes>,
    /// The items of others.
    pub(crate) others: BTreeMap<NodeId, Items>,
    /// At the home: who has registered.
    pub(crate) registered: BTreeSet<NodeId>,
    /// At the home: who was registered until its link broke, and may register again.
    pub(crate) absent: BTreeSet<NodeId>,
    /// At the home: until when it stays without anybody, since others may still register.
    pub(crate) keep_until: Instant,
    /// At the home: whether the server has ended it.
    pub(crate) is_ended: bool,
    /// Elsewhere: until when a deleted home has time to say that it has ended.
    pub(crate) end_until: Option<Instant>,
    /// Whether this node has claimed the home, and the bus has not answered.
    pub(crate) is_claimed: bool,
    /// When the death of the home was noticed.
    pub(crate) home_dead: Option<Instant>,
    /// What the server was told last.
    pub(crate) told: Option<Told>,
}

impl Entry {
    /// Notes that another node is the home now. Nobody is registered there yet.
    pub(crate) fn move_to(&mut self, home: &HomeRecord, revision: Revision) {
        self.role = Role::There(There {
            node: home.node.clone(),
            epoch: home.epoch,
            revision,
            is_registered: false,
            is_asked: false,
        });
        self.end_until = None;
        self.is_claimed = false;
        self.registered.clear();
        self.absent.clear();
        self.outdate(None);
    }

    pub(crate) fn new(now: Instant) -> Self {
        Entry {
            is_open: false,
            is_pinned: false,
            role: Role::Seeking,
            write: None,
            retry: None,
            own: BTreeMap::new(),
            others: BTreeMap::new(),
            registered: BTreeSet::new(),
            absent: BTreeSet::new(),
            keep_until: now,
            is_ended: false,
            end_until: None,
            is_claimed: false,
            home_dead: None,
            told: None,
        }
    }

    /// Returns whether it is wanted here: by the server, by registered nodes, or by some that may
    /// still register.
    pub(crate) fn is_used(&self, now: Instant) -> bool {
        let may_come = matches!(self.role, Role::Here(_)) && now < self.keep_until;
        !self.is_ended && (self.is_open || !self.registered.is_empty() || may_come)
    }

    /// Marks items of others as old, until they come again.
    pub(crate) fn outdate(&mut self, of: Option<&NodeId>) {
        for (node, items) in &mut self.others {
            if of.is_none_or(|of| of == node) {
                for item in items.0.values_mut() {
                    item.is_stale = true;
                }
            }
        }
    }

    /// Removes and returns old items.
    pub(crate) fn take_stale(&mut self, of: Option<&NodeId>) -> Vec<(NodeId, String)> {
        let mut gone = Vec::new();
        for (node, items) in &mut self.others {
            if of.is_none_or(|of| of == node) {
                items.0.retain(|name, item| {
                    if item.is_stale {
                        gone.push((node.clone(), name.clone()));
                    }
                    !item.is_stale
                });
            }
        }
        self.others.retain(|_, items| !items.0.is_empty());
        gone
    }

    /// Removes all items of a node, and returns their names.
    pub(crate) fn take_items(&mut self, node: &NodeId) -> Vec<String> {
        let items = self.others.remove(node).unwrap_or_default();
        items.0.into_keys().collect()
    }
}

/// All of them, and the moments at which some are to be looked at again.
#[derive(Debug, Default)]
pub(crate) struct Places {
    by_key: BTreeMap<HomeKey, Entry>,
    timers: BTreeSet<(Instant, HomeKey)>,
    /// The timer of each key: it has one at most, the earliest.
    wakes: BTreeMap<HomeKey, Instant>,
}

impl Places {
    pub(crate) fn get(&self, key: &HomeKey) -> Option<&Entry> {
        self.by_key.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &HomeKey) -> Option<&mut Entry> {
        self.by_key.get_mut(key)
    }

    pub(crate) fn entry(&mut self, key: &HomeKey, now: Instant) -> &mut Entry {
        let entry = self.by_key.entry(key.clone());
        entry.or_insert_with(|| Entry::new(now))
    }

    pub(crate) fn remove(&mut self, key: &HomeKey) {
        self.by_key.remove(key);
    }

    pub(crate) fn keys(&self) -> Vec<HomeKey> {
        self.by_key.keys().cloned().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HomeKey, &Entry)> {
        self.by_key.iter()
    }

    /// Has a key looked at again at a moment.
    pub(crate) fn wake(&mut self, key: &HomeKey, at: Instant) {
        if let Some(known) = self.wakes.get(key).copied() {
            if known <= at {
                return;
            }
            self.timers.remove(&(known, key.clone()));
        }
        self.wakes.insert(key.clone(), at);
        self.timers.insert((at, key.clone()));
    }

    /// Takes the keys whose moment has come.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<HomeKey> {
        let mut due = Vec::new();
        while let Some((at, _)) = self.timers.first() {
            if *at > now {
                break;
            }
            if let Some((_, key)) = self.timers.pop_first() {
                self.wakes.remove(&key);
                due.push(key);
            }
        }
        due
    }

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }
}
