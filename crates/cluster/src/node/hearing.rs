//! Who hears whom, and when a node counts as lost.
//!
//! Each node tells the others which nodes it hears by direct connections. As long as one of them
//! hears a run of a node, that run is no lost one: only the way to it is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Node;
use crate::event::{Event, Output};
use crate::id::{Epoch, NodeId};
use crate::wire::{Frame, Hearing, MAX_HEARD};

/// After this silence a node is suspect, and nobody counts on its word.
pub(super) const SUSPECT: Duration = Duration::from_secs(1);

/// After this silence it is lost, unless another node hears it.
pub(super) const LOST: Duration = Duration::from_secs(2);

/// After this silence it is lost, whoever hears it.
const UNREACHABLE: Duration = Duration::from_secs(15);

/// A node that was not run for this long does not count that time as silence of the others. After
/// the longer time they begin anew.
const HITCH: Duration = Duration::from_millis(500);
const STALL: Duration = Duration::from_millis(1_500);

/// The most nodes of which one node may say that it hears them.
const MOST: usize = 1_000;

impl Node {
    /// Returns whether another node says that it hears this run of a node.
    pub(super) fn is_heard(&self, node: &NodeId, epoch: Epoch, now: Instant) -> bool {
        self.links.iter().any(|(id, link)| {
            let is_fresh = now.saturating_duration_since(link.came) < SUSPECT;
            let hears = link.hears.get(node) == Some(&epoch);
            id != node && link.may_carry() && is_fresh && hears
        })
    }

    /// Counts a node as lost if nothing was heard of it for too long.
    pub(super) fn lose_if_gone(&mut self, node: &NodeId, now: Instant) {
        let is_gone = self.links.get(node).is_some_and(|link| {
            let silent = now.saturating_duration_since(link.heard);
            let is_cut_off = !link.is_lost && !link.is_up() && silent >= LOST;
            let is_heard = || {
                link.epoch
                    .is_some_and(|epoch| self.is_heard(node, epoch, now))
            };
            is_cut_off && (silent >= UNREACHABLE || !is_heard())
        });
        if is_gone {
            self.lose(node, now);
        }
    }

    /// Counts a node as lost whose entry is gone, if there is no link either, and nobody hears it.
    pub(super) fn lose_if_down(&mut self, node: &NodeId, now: Instant) {
        let is_down = self.links.get(node).is_some_and(|link| {
            let is_cut_off = !link.is_lost && link.conn().is_none() && !link.is_up();
            let is_heard = || {
                link.epoch
                    .is_some_and(|epoch| self.is_heard(node, epoch, now))
            };
            is_cut_off && !is_heard()
        });
        if is_down {
            self.lose(node, now);
        }
    }

    pub(super) fn lose(&mut self, node: &NodeId, now: Instant) {
        let Some(link) = self.links.get_mut(node) else {
            return;
        };
        if std::mem::replace(&mut link.is_lost, true) {
            return;
        }
        link.is_suspect = false;
        self.counters.lost_nodes += 1;
        let event = Event::NodeLost { node: node.clone() };
        self.outputs.push_back(Output::Event(event));
        self.forget_items(node, now);
        self.settle_homes_of(node, now);
    }

    /// After this node itself was not run for a while, the others get time to be heard.
    pub(super) fn forgive_silence(&mut self, idle: Duration, now: Instant) {
        if idle < HITCH {
            return;
        }
        for (_, link) in self.links.iter_mut().filter(|(_, link)| !link.is_lost) {
            let heard = link.heard + idle;
            link.heard = if idle < STALL { heard.min(now) } else { now };
        }
    }

    /// The driver takes no frames for now, so silence is not that of the others.
    pub fn deafened(&mut self, now: Instant) {
        self.forgive_silence(STALL, now);
    }

    /// Takes what a node says of those that it hears.
    pub(super) fn take_hears(
        &mut self,
        by: &NodeId,
        is_all: bool,
        nodes: Vec<Hearing>,
        now: Instant,
    ) {
        let Some(link) = self.links.get_mut(by) else {
            return;
        };
        if is_all {
            link.hears.clear();
        }
        let mut silent = Vec::new();
        for Hearing { node, epoch } in nodes {
            match epoch {
                Some(epoch) if link.hears.len() < MOST || link.hears.contains_key(&node) => {
                    link.hears.insert(node, epoch);
                }
                Some(_) => {}
                None => {
                    link.hears.remove(&node);
                    silent.push(node);
                }
            }
        }
        // A node that has left deletes its entry on the bus.
        for node in silent {
            if self.members.is_current() && self.members.get(&node).is_none() {
                let middle = self.links.get(&node).and_then(|link| link.path.as_ref());
                if middle.is_some_and(|path| path.middle == *by) {
                    self.path_down(&node, now);
                }
                self.lose_if_down(&node, now);
            }
        }
    }

    /// Tells a node of all that this one hears.
    pub(super) fn tell_heard(&mut self, to: &NodeId) {
        if !self.links.get(to).is_some_and(|link| link.may_carry()) {
            return;
        }
        let all: Vec<Hearing> = self.heard.iter().map(hearing).collect();
        let mut parts = all.chunks(MAX_HEARD);
        let first = Frame::Hears {
            is_all: true,
            nodes: parts.next().unwrap_or_default().to_vec(),
        };
        self.send(to, first);
        for part in parts {
            self.send(to, changes_heard(part));
        }
    }

    /// Tells all nodes what has changed since the last look.
    pub(super) fn tell_changes_heard(&mut self, now: Instant) {
        let links = self.links.iter().filter(|(_, link)| {
            let is_fresh = now.saturating_duration_since(link.came) < SUSPECT;
            link.may_carry() && is_fresh
        });
        let heard: BTreeMap<NodeId, Epoch> = links
            .filter_map(|(node, link)| Some((node.clone(), link.epoch?)))
            .collect();
        let before = std::mem::replace(&mut self.heard, heard);
        let gone = before.keys().filter(|node| !self.heard.contains_key(*node));
        let gone = gone.map(|node| Hearing {
            node: node.clone(),
            epoch: None,
        });
        let new = self
            .heard
            .iter()
            .filter(|(node, epoch)| before.get(*node) != Some(epoch));
        let changes: Vec<Hearing> = gone.chain(new.map(hearing)).collect();
        if changes.is_empty() {
            return;
        }
        let listeners = self.links.iter().filter(|(_, link)| link.may_carry());
        let listeners: Vec<NodeId> = listeners.map(|(node, _)| node.clone()).collect();
        for part in changes.chunks(MAX_HEARD) {
            for to in &listeners {
                self.send(to, changes_heard(part));
            }
        }
    }
}

fn changes_heard(part: &[Hearing]) -> Frame {
    Frame::Hears {
        is_all: false,
        nodes: part.to_vec(),
    }
}

fn hearing((node, epoch): (&NodeId, &Epoch)) -> Hearing {
    Hearing {
        node: node.clone(),
        epoch: Some(*epoch),
    }
}
