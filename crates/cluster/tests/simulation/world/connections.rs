//! The connections between nodes.

use std::collections::VecDeque;
use std::time::Duration;

use portunus_cluster::{ConnId, Epoch, LinkEvent};

use super::{Action, End, Input, Under, World};

impl World {
    pub(super) fn connect(&mut self, from: usize, epoch: Epoch, to: usize) {
        if self.hosts[from].epoch != epoch || self.hosts[from].node.is_none() {
            return;
        }
        let target = &self.hosts[to];
        let is_there = target.node.is_some() && target.stalled_until.is_none();
        if !is_there || !self.reaches(from, to) {
            let wait = match target.node.is_some() {
                true => Duration::from_secs(5),
                false => Duration::from_millis(1),
            };
            let input = Input::Link(LinkEvent::Failed {
                node: target.id.clone(),
            });
            return self.at(self.now + wait, Action::Give(from, epoch, None, input));
        }
        self.next += 2;
        let (near, far) = (ConnId(self.next - 1), ConnId(self.next));
        for (conn, other, node, beyond) in [(near, far, from, to), (far, near, to, from)] {
            let end = End {
                node,
                other,
                beyond,
                under_way: VecDeque::new(),
            };
            self.ends.insert(conn, end);
        }
        let (near_id, far_id) = (self.hosts[from].id.clone(), self.hosts[to].id.clone());
        for (conn, index, node, is_dialled) in
            [(near, from, far_id, true), (far, to, near_id, false)]
        {
            let event = LinkEvent::Opened {
                conn,
                node,
                is_dialled,
            };
            self.give(index, Input::Link(event));
        }
    }

    /// Closes one end: it gets nothing more, and the other one is told if the network lets it.
    pub(super) fn shut(&mut self, conn: ConnId) {
        if let Some(end) = self.ends.remove(&conn)
            && let Some(other) = self.ends.get_mut(&end.other)
        {
            other.under_way.push_back(Under::Closed);
            let at = self.soon();
            self.at(at, Action::Arrive(end.other));
        }
    }

    pub(super) fn arrive(&mut self, conn: ConnId) {
        let Some(end) = self.ends.get(&conn) else {
            return;
        };
        let node = end.node;
        if !self.reaches(end.beyond, node) {
            return self.at(self.now + Duration::from_millis(200), Action::Arrive(conn));
        }
        let under_way = std::mem::take(&mut self.ends.get_mut(&conn).unwrap().under_way);
        for under in under_way {
            let event = match under {
                Under::Frame(bytes) => LinkEvent::Frame { conn, bytes },
                Under::Closed => {
                    self.ends.remove(&conn);
                    LinkEvent::Closed { conn }
                }
            };
            self.give(node, Input::Link(event));
        }
    }
}
