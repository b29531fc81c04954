//! Keeps a link to each node.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Node;
use crate::event::{Event, Output};
use crate::id::{Epoch, NodeId};
use crate::links::{CloseReason, ConnId, LinkEvent, Wire};
use crate::wire::{Frame, VersionRange};

/// Between two signs of life.
const PING: Duration = Duration::from_millis(500);

/// After this silence a node is suspect.
const SUSPECT: Duration = Duration::from_secs(1);

/// After this silence it is lost.
pub(super) const LOST: Duration = Duration::from_secs(3);

/// The waits before a node is dialled again.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The longest time of an attempt, and of the first frame.
const GREETING: Duration = Duration::from_secs(5);

/// The most messages in the queue of a link.
const QUEUE: usize = 1_000;

/// The most frames of a node in a second.
const FLOOD: u32 = 20_000;

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
        let hello = Frame::Hello {
            node: self.settings.id.clone(),
            epoch: self.settings.epoch,
            cluster: self.settings.cluster.clone(),
            versions: self.settings.versions,
        };
        self.links.bind(conn, node.clone());
        let link = self.links.entry(&node, now);
        link.clear();
        link.wire = Wire::Greeting(conn);
        link.pinged = now;
        link.outbox.push_back(hello);
        if link.is_lost {
            link.heard = now;
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
        link.round_trip = None;
        link.clear();
        self.unlink(node, now);
        self.lose_if_gone(node, now);
    }

    /// Closes a connection from this side.
    fn close(&mut self, conn: ConnId, reason: CloseReason, now: Instant) {
        self.outputs.push_back(Output::Close { conn, reason });
        if let Some(node) = self.links.node_of(conn) {
            self.links.unbind(conn);
            self.down(&node, conn, now);
        }
    }

    pub(super) fn close_all_links(&mut self, now: Instant) {
        for node in self.links.nodes() {
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
            ) => {
                if named != node || cluster != self.settings.cluster {
                    return self.close(conn, CloseReason::Stranger, now);
                }
                self.greeted(conn, &node, epoch, versions, now);
            }
            (Wire::Up(..), Some(Frame::Hello { .. })) | (Wire::Greeting(_), Some(_)) => {
                self.counters.bad_frames += 1;
                self.close(conn, CloseReason::Malformed, now);
            }
            (Wire::Up(..), frame) => {
                link.heard = now;
                link.is_suspect = false;
                if let Some(frame) = frame {
                    self.up_frame(&node, frame, now);
                }
            }
            (Wire::Greeting(_) | Wire::Down(_) | Wire::Dialling, _) => {}
        }
    }

    /// The other side has named itself.
    fn greeted(
        &mut self,
        conn: ConnId,
        node: &NodeId,
        epoch: Epoch,
        versions: VersionRange,
        now: Instant,
    ) {
        let Some(version) = self.settings.versions.common(versions) else {
            self.counters.version_refusals += 1;
            self.outputs.push_back(Output::Event(Event::VersionRefused {
                node: node.clone(),
                theirs: versions,
            }));
            return self.close(conn, CloseReason::Version, now);
        };
        let was = self.links.get(node).and_then(|link| link.epoch);
        if was.is_some_and(|was| was != epoch) {
            self.lose(node, now);
        }
        let Some(link) = self.links.get_mut(node) else {
            return;
        };
        link.wire = Wire::Up(conn, version);
        link.epoch = Some(epoch);
        link.heard = now;
        link.up_since = Some(now);
        link.is_suspect = false;
        let was_lost = std::mem::replace(&mut link.is_lost, false);
        let node_id = node.clone();
        let heard = Event::Heard {
            node: node_id.clone(),
            through: None,
        };
        self.outputs.push_back(Output::Event(heard));
        let event = match was_lost {
            true => Event::NodeUp {
                node: node_id,
                epoch,
                record: self.members.get(node).map(|it| Box::new(it.record.clone())),
            },
            false => Event::NodeResumed { node: node_id },
        };
        self.outputs.push_back(Output::Event(event));
        self.relink(node, now);
    }

    fn up_frame(&mut self, node: &NodeId, frame: Frame, now: Instant) {
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
        let clock = now.saturating_duration_since(self.started).as_micros();
        let clock = u64::try_from(clock).unwrap_or(u64::MAX);
        for node in self.links.nodes() {
            let Some(link) = self.links.get_mut(&node) else {
                continue;
            };
            let silent = now.saturating_duration_since(link.heard);
            match link.wire {
                Wire::Up(conn, _) => {
                    if link.outbox.len() > QUEUE {
                        self.counters.overflows += 1;
                        self.close(conn, CloseReason::Overflow, now);
                    } else if silent >= LOST {
                        self.close(conn, CloseReason::Silent, now);
                    } else {
                        if now.saturating_duration_since(link.pinged) >= PING {
                            link.pinged = now;
                            link.outbox.push_front(Frame::Ping { clock });
                        }
                        if silent >= SUSPECT && !std::mem::replace(&mut link.is_suspect, true) {
                            let node = node.clone();
                            let event = Event::NodeSuspect { node };
                            self.outputs.push_back(Output::Event(event));
                        }
                    }
                }
                Wire::Greeting(conn) => {
                    if now.saturating_duration_since(link.pinged) >= GREETING {
                        self.close(conn, CloseReason::Silent, now);
                    }
                }
                Wire::Down(_) | Wire::Dialling => {}
            }
            self.lose_if_gone(&node, now);
        }
        self.dial_members(now);
    }

    /// Dials the nodes to which there is no link, and forgets those that are gone.
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
                link.is_lost && matches!(link.wire, Wire::Down(from) if now > from + LAST_WAIT)
            });
            if is_gone && self.members.get(&node).is_none() {
                self.links.remove(&node);
            }
        }
    }

    /// Counts a node as lost if nothing was heard of it for too long.
    fn lose_if_gone(&mut self, node: &NodeId, now: Instant) {
        let is_gone = self.links.get(node).is_some_and(|link| {
            let silent = now.saturating_duration_since(link.heard);
            !link.is_lost && !link.is_up() && silent >= LOST
        });
        if is_gone {
            self.lose(node, now);
        }
    }

    /// Counts a node as lost whose entry is gone, if there is no link either.
    pub(super) fn lose_if_down(&mut self, node: &NodeId, now: Instant) {
        let is_down = self
            .links
            .get(node)
            .is_some_and(|link| !link.is_lost && link.conn().is_none());
        if is_down {
            self.lose(node, now);
        }
    }

    fn lose(&mut self, node: &NodeId, now: Instant) {
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

    /// After this node itself was stopped, the others get time anew to be heard.
    pub(super) fn forgive_silence(&mut self, now: Instant) {
        for (_, link) in self.links.iter_mut() {
            if !link.is_lost {
                link.heard = now;
            }
        }
    }
}

/// Returns the wait after this number of failures in a row.
fn wait_after(tries: u32) -> Duration {
    let factor = 2_u32.saturating_pow(tries);
    FIRST_WAIT.saturating_mul(factor).min(LAST_WAIT)
}
