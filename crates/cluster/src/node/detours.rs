//! Keeps a path through a third node to each node that cannot be reached directly.
//!
//! The node with the lower name opens a path, as it dials. A path is reliable: its frames have
//! numbers, and it is closed when one is missing. The node in the middle keeps no state of it.

use std::time::{Duration, Instant};

use super::Node;
use super::hearing::SUSPECT;
use super::linking::{DETOUR, Greeting, Way, wait_after};
use crate::id::NodeId;
use crate::links::{CloseReason, Link, Wire};
use crate::path::{self, Path};
use crate::wire::{Frame, MAX_FRAME, VersionRange, Via};

/// How long a direct connection is waited for before a path is opened.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest time until the other side has named itself.
const GREETING: Duration = Duration::from_secs(1);

/// The most frames of others that wait for a node.
const CARRIED: usize = 512;

/// The most frames of others that are carried to a node in a second, and the most that one node has
/// another one carry. The limit of a link is above both.
const CARRIES: u32 = 10_000;
const CARRIES_OURS: u32 = 5_000;

/// Room for the names and numbers around a frame that is carried.
const WRAPPING: usize = 256;

impl Node {
    /// Opens paths to the nodes that are not reached otherwise.
    pub(super) fn open_paths(&mut self, now: Instant) {
        if self.is_outside {
            return;
        }
        let is_due = |(node, link): &(&NodeId, &Link)| {
            let waited = now.saturating_duration_since(link.heard);
            // After another path it is known that there is no direct connection.
            let is_over = waited >= PATIENCE || link.last_middle.is_some();
            let is_unreached = !link.is_up() && link.path.is_none() && is_over;
            self.settings.id < **node && is_unreached && now >= link.detour_from
        };
        let due = self.links.iter().filter(is_due);
        let due: Vec<NodeId> = due.map(|(node, _)| node.clone()).collect();
        for node in due {
            if let Some(middle) = self.pick_middle(&node, now) {
                self.next_path = self.next_path.wrapping_add(1);
                self.begin_path(&node, &middle, self.next_path, now);
            }
        }
    }

    /// Returns the node through which another one is reached best.
    fn pick_middle(&self, node: &NodeId, now: Instant) -> Option<NodeId> {
        let link = self.links.get(node)?;
        let member = self.members.get(node);
        let theirs = member.map(|it| it.record.versions).or(link.versions)?;
        if self.settings.versions.common(theirs)? < VersionRange::CARRIES {
            return None;
        }
        let between = self.links.iter().filter(|(id, middle)| {
            let is_fresh = now.saturating_duration_since(middle.came) < SUSPECT;
            *id != node && middle.may_carry() && is_fresh && middle.hears.contains_key(node)
        });
        // One that has just failed comes last.
        let best = between.min_by_key(|(id, middle)| {
            let has_failed = link.last_middle.as_ref() == Some(*id);
            (has_failed, middle.round_trip, *id)
        });
        best.map(|(id, _)| id.clone())
    }

    fn begin_path(&mut self, node: &NodeId, middle: &NodeId, number: u64, now: Instant) {
        let path = Path::new(middle.clone(), number, self.hello());
        self.links.set_path(node, path);
        if let Some(link) = self.links.get_mut(node) {
            link.detoured = now;
        }
    }

    /// Looks at the path to a node.
    pub(super) fn tick_path(&mut self, node: &NodeId, now: Instant) {
        let Some(link) = self.links.get(node) else {
            return;
        };
        let Some(path) = &link.path else { return };
        let middle = self.links.get(&path.middle);
        let Some(middle) = middle.filter(|middle| middle.may_carry()) else {
            return self.path_down(node, now);
        };
        let silent = now.saturating_duration_since(link.heard);
        let is_over = match path.is_up() {
            // The node in the middle may be the one that is silent.
            true => {
                let is_deaf = middle.is_suspect || !middle.hears.contains_key(node);
                silent >= DETOUR || (silent >= SUSPECT && is_deaf)
            }
            false => now.saturating_duration_since(link.detoured) >= GREETING,
        };
        if is_over {
            self.close_path(node, now);
        }
    }

    /// Notes that a path is gone.
    pub(super) fn path_down(&mut self, node: &NodeId, now: Instant) {
        let Some(path) = self.links.take_path(node) else {
            return;
        };
        if let Some(link) = self.links.get_mut(node) {
            link.detours = if path.is_up() { 0 } else { link.detours };
            link.detour_from = now + wait_after(link.detours);
            link.detours = link.detours.saturating_add(1);
            link.last_middle = Some(path.middle.clone());
        }
        if path.is_up() {
            self.cut_off(node, now);
        }
    }

    /// Closes a path from this side.
    pub(super) fn close_path(&mut self, node: &NodeId, now: Instant) {
        let path = self.links.get(node).and_then(|link| link.path.as_ref());
        if let Some((middle, number)) = path.map(|path| (path.middle.clone(), path.number)) {
            self.say_closed(&middle, node, number);
            self.path_down(node, now);
        }
    }

    pub(super) fn close_paths_through(&mut self, middle: &NodeId, now: Instant) {
        for node in self.links.through(middle) {
            self.path_down(&node, now);
        }
    }

    /// Tells a node by another one that there is no such path.
    fn say_closed(&mut self, middle: &NodeId, node: &NodeId, number: u64) {
        let frame = path::closed(&self.settings.id, node, number);
        self.queue_carried(middle, frame);
    }

    /// Queues a frame between two nodes. Returns whether there was room.
    fn queue_carried(&mut self, to: &NodeId, frame: Frame) -> bool {
        let link = self.links.get_mut(to).filter(|link| link.may_carry());
        match link {
            Some(link) if link.carried.len() < CARRIED => {
                link.carried.push_back(frame);
                true
            }
            _ => false,
        }
    }

    /// Takes a frame between two nodes, which has come by the direct connection with `by`.
    pub(super) fn take_via(&mut self, by: &NodeId, via: Via, now: Instant) {
        let (own, from, to) = (&self.settings.id, &via.from, &via.to);
        let is_ours = to == own && from != own && from != by;
        let is_theirs = from == by && to != own && to != by;
        match (is_ours, is_theirs) {
            (true, _) => self.take_carried(by, via, now),
            (_, true) => self.carry(via, now),
            // Nobody speaks for another node, and one hop is enough.
            (false, false) => self.counters.refused_carried += 1,
        }
    }

    /// Carries a frame to the node that it is for.
    fn carry(&mut self, via: Via, now: Instant) {
        let (from, to, number, is_closed) =
            (via.from.clone(), via.to.clone(), via.path, via.is_closed);
        let link = self.links.get_mut(&to);
        let has_pace = link.is_some_and(|link| link.carries.take(now, CARRIES));
        if has_pace && self.queue_carried(&to, Frame::Via(via)) {
            self.counters.carried_frames += 1;
            return;
        }
        self.counters.uncarried_frames += 1;
        if !is_closed {
            let answer = path::closed(&to, &from, number);
            self.queue_carried(&from, answer);
        }
    }

    /// Takes a frame that `by` has carried here.
    fn take_carried(&mut self, by: &NodeId, via: Via, now: Instant) {
        let node = via.from.clone();
        let path = self.links.get(&node).and_then(|link| link.path.as_ref());
        let is_known = path.is_some_and(|it| it.number == via.path && it.middle == *by);
        if via.is_closed {
            if is_known {
                self.path_down(&node, now);
            }
            return;
        }
        if !is_known && !self.accept_path(by, &via, now) {
            // Who goes on with a path after this side has a direct connection gets that, too.
            let is_direct = self.links.get(&node).is_some_and(Link::is_direct);
            if via.number == 1 || !is_direct {
                self.say_closed(by, &node, via.path);
            }
            return;
        }
        let Some(path) = self.links.get_mut(&node).and_then(|it| it.path.as_mut()) else {
            return;
        };
        let is_up = path.is_up();
        if path.receive(&via).is_err() {
            return self.close_path(&node, now);
        }
        if via.number == 0 {
            return;
        }
        match (is_up, Frame::decode(via.frame)) {
            (
                false,
                Ok(Some(Frame::Hello {
                    node: named,
                    epoch,
                    cluster,
                    versions,
                })),
            ) if named == node => {
                let greeting = Greeting {
                    epoch,
                    cluster,
                    versions,
                };
                if self.greeted(&node, Way::Path, greeting, now).is_err() {
                    self.close_path(&node, now);
                }
            }
            (true, Ok(None)) => self.heard_by_path(&node, now),
            (true, Ok(Some(frame))) if may_be_carried(&frame) => {
                self.heard_by_path(&node, now);
                self.up_frame(&node, frame, now);
            }
            _ => {
                self.counters.refused_carried += 1;
                self.close_path(&node, now);
            }
        }
    }

    fn heard_by_path(&mut self, node: &NodeId, now: Instant) {
        if let Some(link) = self.links.get_mut(node) {
            link.hear(now);
        }
    }

    /// Takes a path that another node opens, in place of an older one, or of a connection that is
    /// silent.
    fn accept_path(&mut self, by: &NodeId, via: &Via, now: Instant) -> bool {
        let node = &via.from;
        let is_first = *node < self.settings.id && via.number == 1;
        if !is_first || self.is_outside {
            return false;
        }
        let Some(link) = self.links.get(node) else {
            // Its node has to be known otherwise.
            if self.members.get(node).is_some() {
                self.links.entry(node, now);
                self.begin_path(node, by, via.path, now);
                return true;
            }
            return false;
        };
        let is_fresh = now.saturating_duration_since(link.heard) < SUSPECT;
        let has_other = link.middle().is_some_and(|middle| middle != by);
        if is_fresh && (link.is_direct() || has_other) {
            return false;
        }
        if let Wire::Up(conn, _) = link.wire {
            self.close(conn, CloseReason::Silent, now);
        }
        self.path_down(node, now);
        self.begin_path(node, by, via.path, now);
        true
    }

    /// Returns the next frame of this node that `middle` has to carry.
    pub(super) fn next_through(&mut self, middle: &NodeId, now: Instant) -> Option<Frame> {
        for node in self.links.through(middle) {
            if let Some(via) = self.next_via(&node, now) {
                return Some(Frame::Via(via));
            }
        }
        None
    }

    fn next_via(&mut self, node: &NodeId, now: Instant) -> Option<Via> {
        let path = self.links.get_mut(node)?.path.as_mut()?;
        let (is_open, is_up) = (path.is_open(), path.is_up());
        let (middle, mut frame) = (path.middle.clone(), None);
        let pace = &self.links.get(&middle)?.carries_ours;
        if is_open && pace.has_room(now, CARRIES_OURS) {
            frame = self.links.get_mut(node)?.path.as_mut()?.take_hello();
            if frame.is_none() && is_up {
                frame = self.next_frame(node, now);
            }
        }
        if frame.is_some() {
            self.links
                .get_mut(&middle)?
                .carries_ours
                .take(now, CARRIES_OURS);
        }
        let bytes = frame.map(Frame::encode);
        let fits = |bytes: &bytes::Bytes| bytes.len() <= MAX_FRAME.saturating_sub(WRAPPING);
        if bytes.as_ref().is_some_and(|bytes| !fits(bytes)) {
            self.counters.dropped_items += 1;
        }
        let own = self.settings.id.clone();
        let path = self.links.get_mut(node)?.path.as_mut()?;
        match bytes.filter(fits) {
            Some(bytes) => Some(path.wrap(&own, node, bytes)),
            None => path.confirmation(&own, node),
        }
    }
}

/// Returns whether a frame may come by a path once that is up.
fn may_be_carried(frame: &Frame) -> bool {
    !matches!(
        frame,
        Frame::Hello { .. } | Frame::Hears { .. } | Frame::Via(_)
    )
}
