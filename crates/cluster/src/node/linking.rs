//! Keeps a link to each node.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Node;
use super::hearing::{LOST, SUSPECT};
use crate::event::{Event, Output};
use crate::id::{Epoch, NodeId};
use crate::links::{CloseReason, ConnId, LinkEvent, Wire};
use crate::wire::{Frame, VersionRange};

/// Between two signs of life.
const PING: Duration = Duration::from_millis(500);

/// After this silence a way is given up if another node hears the one at its end.
pub(super) const DETOUR: Duration = Duration::from_millis(1_500);

/// The waits before a node is dialled again.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The longest time of an attempt, and of the first frame.
const GREETING: Duration = Duration::from_secs(5);

/// The most messages in the queue of a link.
const QUEUE: usize = 1_000;

/// The most frames of a node in a second.
const FLOOD: u32 = 20_000;

/// What a node says of itself in its first frame.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) epoch: Epoch,
    pub(super) cluster: String,
    pub(super) versions: VersionRange,
}

/// The way of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Direct(ConnId),
    Path,
}

impl Node {
    /// Takes what comes from the links.
    pub fn link_event(&mut self, event: LinkEvent, now: Instant) {
        self.enter(now);
        match event {
            LinkEvent::Opened {
                conn,
                node,
                is_dialled,
            } => self.opened(conn, node, is_dialled, now),
            LinkEvent::Failed { node } => self.failed(&node, now),
            LinkEvent::Closed { conn } => {
                if let Some(node) = self.links.node_of(conn) {
                    self.links.unbind(conn);
                    self.down(&node, conn, now);
                }
            }
            LinkEvent::Frame { conn, bytes } => self.received(conn, bytes, now),
        }
    }

    /// Returns whether a node may show this certificate: the bus has no other one of it. So a
    /// certificate that was replaced is of no use to who has stolen it.
    pub fn trusts(&self, node: &NodeId, fingerprint: &str) -> bool {
        let known = self.members.get(node).filter(|_| self.members.is_current());
        let known = known.map_or("", |member| &member.record.fingerprint);
        known.is_empty() || known == fingerprint
    }

    fn opened(&mut self, conn: ConnId, node: NodeId, is_dialled: bool, now: Instant) {
        // Each pair has one connection, which the lower name dials.
        let is_expected = is_dialled == (self.settings.id < node);
        if self.is_outside || node == self.settings.id || !is_expected {
            let reason = match self.is_outside {
                true => CloseReason::Left,
                false => CloseReason::Stranger,
            };
            self.outputs.push_back(Output::Close { conn, reason });
            return;
        }
        if let Some(older) = self.links.get(&node).and_then(|link| link.conn()) {
            self.close(older, CloseReason::Replaced, now);
        }
        let hello = self.hello();
        self.links.bind(conn, node.clone());
        // A path goes on until the other side has named itself.
        let link = self.links.entry(&node, now);
        link.wire = Wire::Greeting(conn);
        link.opened = now;
        link.hello = Some(hello);
        if link.is_lost {
            link.heard = now;
        }
    }

    /// Returns the first frame of this node.
    pub(super) fn hello(&self) -> Frame {
        Frame::Hello {
            node: self.settings.id.clone(),
            epoch: self.settings.epoch,
            cluster: self.settings.cluster.clone(),
            versions: self.settings.versions,
        }
    }

    fn failed(&mut self, node: &NodeId, now: Instant) {
        let Some(link) = self.links.get_mut(node) else {
            return;
        };
        if link.wire == Wire::Dialling {
            link.wire = Wire::Down(now + wait_after(link.tries));
            link.tries = link.tries.saturating_add(1);
        }
    }

    /// Notes that a connection is gone.
    fn down(&mut self, node: &NodeId, conn: ConnId, now: Instant) {
        let Some(link) = self.links.get_mut(node) else {
            return;
        };
        if link.conn() != Some(conn) {
            return;
        }
        let lasted = link
            .up_since
            .take()
            .map(|since| now.saturating_duration_since(since));
        if lasted.is_some_and(|lasted| lasted >= LAST_WAIT) {
            link.tries = 0;
        }
        link.wire = Wire::Down(now + wait_after(link.tries));
        link.tries = link.tries.saturating_add(1);
        link.hello = None;
        link.hears.clear();
        link.carried.clear();
        if !link.is_up() {
            self.cut_off(node, now);
        }
        self.close_paths_through(node, now);
    }

    /// There is no way to a node any more.
    pub(super) fn cut_off(&mut self, node: &NodeId, now: Instant) {
        if let Some(link) = self.links.get_mut(node) {
            link.round_trip = None;
            link.clear();
        }
        self.unlink(node, now);
        self.lose_if_gone(node, now);
    }

    /// Closes a connection from this side.
    pub(super) fn close(&mut self, conn: ConnId, reason: CloseReason, now: Instant) {
        self.outputs.push_back(Output::Close { conn, reason });
        if let Some(node) = self.links.node_of(conn) {
            self.links.unbind(conn);
            self.down(&node, conn, now);
        }
    }

    pub(super) fn close_all_links(&mut self, now: Instant) {
        for node in self.links.nodes() {
            self.path_down(&node, now);
            if let Some(conn) = self.links.get(&node).and_then(|link| link.conn()) {
                self.close(conn, CloseReason::Left, now);
            }
        }
    }

    fn received(&mut self, conn: ConnId, bytes: Bytes, now: Instant) {
        let Some(node) = self.links.node_of(conn) else {
            return;
        };
        let Some(link) = self.links.get_mut(&node) else {
            return;
        };
        if !link.received.take(now, FLOOD) {
            self.counters.floods += 1;
            return self.close(conn, CloseReason::Flood, now);
        }
        let wire = link.wire;
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(_) => {
                self.counters.bad_frames += 1;
                return self.close(conn, CloseReason::Malformed, now);
            }
        };
        match (wire, frame) {
            (
                Wire::Greeting(_),
                Some(Frame::Hello {
                    node: named,
                    epoch,
                    cluster,
                    versions,
                }),
            ) if named == node => {
                let greeting = Greeting {
                    epoch,
                    cluster,
                    versions,
                };
                if let Err(reason) = self.greeted(&node, Way::Direct(conn), greeting, now) {
                    self.close(conn, reason, now);
                }
            }
            (Wire::Greeting(_), Some(Frame::Hello { .. })) => {
                self.close(conn, CloseReason::Stranger, now);
            }
            (Wire::Up(..), Some(Frame::Hello { .. })) | (Wire::Greeting(_), Some(_)) => {
                self.counters.bad_frames += 1;
                self.close(conn, CloseReason::Malformed, now);
            }
            (Wire::Up(..), frame) => {
                link.hear(now);
                match frame {
                    Some(Frame::Via(via)) => self.take_via(&node, via, now),
                    Some(Frame::Hears { is_all, nodes }) => {
                        self.take_hears(&node, is_all, nodes, now);
                    }
                    Some(frame) => self.up_frame(&node, frame, now),
                    None => {}
                }
            }
            (Wire::Greeting(_) | Wire::Down(_) | Wire::Dialling, _) => {}
        }
    }

    /// The other side has named itself. Returns why the way is refused, if it is.
    pub(super) fn greeted(
        &mut self,
        node: &NodeId,
        way: Way,
        greeting: Greeting,
        now: Instant,
    ) -> Result<(), CloseReason> {
        let Greeting {
            epoch,
            cluster,
            versions,
        } = greeting;
        if cluster != self.settings.cluster {
            return Err(CloseReason::Stranger);
        }
        let common = self.settings.versions.common(versions);
        let fits = |version: &u32| way != Way::Path || *version >= VersionRange::CARRIES;
        let Some(version) = common.filter(fits) else {
            self.counters.version_refusals += 1;
            self.outputs.push_back(Output::Event(Event::VersionRefused {
                node: node.clone(),
                theirs: versions,
            }));
            return Err(CloseReason::Version);
        };
        let was = self.links.get(node).and_then(|link| link.epoch);
        if was.is_some_and(|was| was != epoch) {
            self.lose(node, now);
        }
        if let Way::Direct(_) = way {
            // What was under way on the path is sent again.
            self.links.take_path(node);
        }
        let Some(link) = self.links.get_mut(node) else {
            return Ok(());
        };
        link.clear();
        link.round_trip = None;
        link.epoch = Some(epoch);
        link.versions = Some(versions);
        link.hear(now);
        let through = match way {
            Way::Direct(conn) => {
                link.wire = Wire::Up(conn, version);
                link.up_since = Some(now);
                link.detours = 0;
                link.last_middle = None;
                None
            }
            Way::Path => link.path.as_mut().map(|path| {
                path.version = Some(version);
                path.middle.clone()
            }),
        };
        let was_lost = std::mem::replace(&mut link.is_lost, false);
        self.tell_way(node, through, was_lost.then_some(epoch));
        if let Way::Direct(_) = way {
            self.tell_heard(node);
        }
        self.unlink(node, now);
        self.relink(node, now);
        Ok(())
    }

    /// Tells the server by which way a node is heard. `run` is that of a node that was lost.
    fn tell_way(&mut self, node: &NodeId, through: Option<NodeId>, run: Option<Epoch>) {
        let node = node.clone();
        let heard = Event::Heard {
            node: node.clone(),
            through,
        };
        let event = match run {
            Some(epoch) => Event::NodeUp {
                record: self
                    .members
                    .get(&node)
                    .map(|it| Box::new(it.record.clone())),
                node,
                epoch,
            },
            None => Event::NodeResumed { node },
        };
        let events = [heard, event].map(Output::Event);
        self.outputs.extend(events);
    }

    /// Takes a frame that is for this node, by whichever way.
    pub(super) fn up_frame(&mut self, node: &NodeId, frame: Frame, now: Instant) {
        match frame {
            Frame::Ping { clock } => self.send(node, Frame::Pong { clock }),
            Frame::Pong { clock } => {
                let sent = self.started + Duration::from_micros(clock.min(u64::MAX / 2_000));
                if let Some(link) = self.links.get_mut(node) {
                    // A clock that this node has not sent yet counts as no time.
                    link.round_trip = now.checked_duration_since(sent);
                }
            }
            Frame::Direct { channel, payload } => {
                self.outputs.push_back(Output::Event(Event::Direct {
                    from: node.clone(),
                    channel,
                    payload,
                }));
            }
            frame => self.room_frame(node, frame, now),
        }
    }

    /// Queues a frame for a node to which there is a link.
    pub(super) fn send(&mut self, node: &NodeId, frame: Frame) {
        let Some(link) = self.links.up_mut(node) else {
            return;
        };
        // One more marks the overflow, which the next tick handles.
        if link.outbox.len() <= QUEUE {
            link.outbox.push_back(frame);
        }
    }

    /// Looks at all links.
    pub(super) fn tick_links(&mut self, now: Instant) {
        for node in self.links.nodes() {
            self.tick_connection(&node, now);
            self.tick_path(&node, now);
            self.tick_signs(&node, now);
            self.lose_if_gone(&node, now);
        }
        self.open_paths(now);
        self.tell_changes_heard(now);
        self.dial_members(now);
    }

    /// Closes a direct connection that is silent or too slow.
    fn tick_connection(&mut self, node: &NodeId, now: Instant) {
        let Some(link) = self.links.get(node) else {
            return;
        };
        let silent = now.saturating_duration_since(link.heard);
        match link.wire {
            Wire::Up(conn, _) => {
                let is_heard = || {
                    link.epoch
                        .is_some_and(|epoch| self.is_heard(node, epoch, now))
                };
                if link.outbox.len() > QUEUE {
                    self.counters.overflows += 1;
                    self.close(conn, CloseReason::Overflow, now);
                } else if silent >= LOST || (silent >= DETOUR && is_heard()) {
                    self.close(conn, CloseReason::Silent, now);
                }
            }
            Wire::Greeting(conn) => {
                if now.saturating_duration_since(link.opened) >= GREETING {
                    self.close(conn, CloseReason::Silent, now);
                }
            }
            Wire::Down(_) | Wire::Dialling => {}
        }
        let Some(link) = self.links.get(node) else {
            return;
        };
        if link.outbox.len() > QUEUE {
            self.counters.overflows += 1;
            self.close_path(node, now);
        }
    }

    /// Sends a sign of life, and notes that none has come.
    fn tick_signs(&mut self, node: &NodeId, now: Instant) {
        let clock = now.saturating_duration_since(self.started).as_micros();
        let clock = u64::try_from(clock).unwrap_or(u64::MAX);
        let Some(link) = self.links.up_mut(node) else {
            return;
        };
        if now.saturating_duration_since(link.pinged) >= PING {
            link.pinged = now;
            link.outbox.push_front(Frame::Ping { clock });
        }
        let silent = now.saturating_duration_since(link.heard);
        if silent >= SUSPECT && !std::mem::replace(&mut link.is_suspect, true) {
            let node = node.clone();
            let event = Event::NodeSuspect { node };
            self.outputs.push_back(Output::Event(event));
        }
    }

    /// Dials the nodes to which there is no direct connection, and forgets those that are gone.
    pub(super) fn dial_members(&mut self, now: Instant) {
        if self.is_outside {
            return;
        }
        let members = self.members.iter();
        let due: Vec<_> = members
            .filter(|(id, _)| self.settings.id < **id)
            .filter(|(id, _)| {
                self.links.get(id).is_none_or(|link| match link.wire {
                    Wire::Down(from) => now >= from,
                    Wire::Dialling | Wire::Greeting(_) | Wire::Up(..) => false,
                })
            })
            .map(|(id, member)| (id.clone(), member.record.control.clone()))
            .collect();
        for (node, addresses) in due {
            self.links.entry(&node, now).wire = Wire::Dialling;
            self.outputs.push_back(Output::Dial { node, addresses });
        }
        for node in self.links.nodes() {
            let is_gone = self.links.get(&node).is_some_and(|link| {
                let is_down = matches!(link.wire, Wire::Down(from) if now > from + LAST_WAIT);
                link.is_lost && is_down && link.path.is_none()
            });
            if is_gone && self.members.get(&node).is_none() {
                self.links.remove(&node);
            }
        }
    }
}

/// Returns the wait after this number of failures in a row.
pub(super) fn wait_after(tries: u32) -> Duration {
    let factor = 2_u32.saturating_pow(tries);
    FIRST_WAIT.saturating_mul(factor).min(LAST_WAIT)
}
