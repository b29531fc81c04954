//! The other workers: sends them commands and packets, and receives theirs.

mod ring;

use std::sync::Arc;

use portunus_graph::Packet;
use rtrb::Consumer;
use smallvec::SmallVec;

use super::counters::Counters;
use crate::SourceRef;
use crate::command::Command;
use crate::inbox::Inbox;

pub(crate) use ring::Rings;

/// A worker's connections to all others, and to itself. A worker that was passed packets is woken
/// once, at the end of the turn.
pub(super) struct OtherWorkers {
    /// The index of this worker.
    index: u16,
    inboxes: Vec<Arc<Inbox>>,
    rings: Rings,
    /// The workers that were passed packets in this turn, once each.
    to_wake: Vec<u16>,
}

impl OtherWorkers {
    /// Returns the connections of worker `index`.
    pub(super) fn new(index: u16, inboxes: Vec<Arc<Inbox>>, rings: Rings) -> Self {
        Self {
            index,
            inboxes,
            rings,
            to_wake: Vec::new(),
        }
    }

    /// The index of this worker.
    pub(super) fn index(&self) -> u16 {
        self.index
    }

    /// The inbox of this worker.
    pub(super) fn own_inbox(&self) -> Option<&Arc<Inbox>> {
        self.inboxes.get(usize::from(self.index))
    }

    /// Notes that this worker is about to sleep. Returns false if it must not, because something
    /// waits for it.
    pub(super) fn sleep(&self) -> bool {
        self.own_inbox().is_none_or(|inbox| inbox.sleep())
    }

    /// Notes that this worker is awake.
    pub(super) fn stay_awake(&self) {
        if let Some(inbox) = self.own_inbox() {
            inbox.wakeup().stay_awake();
        }
    }

    /// Sends a command to a worker.
    pub(super) fn send(&self, worker: u16, command: Command) {
        if let Some(inbox) = self.inboxes.get(usize::from(worker)) {
            inbox.send(command);
        }
    }

    /// Passes packets of a source to a worker. Packets that find its ring full are dropped and
    /// counted.
    pub(super) fn pass<'a>(
        &mut self,
        worker: u16,
        source: SourceRef,
        packets: impl IntoIterator<Item = &'a Arc<Packet>>,
        counters: &mut Counters,
    ) {
        let Some(Some(ring)) = self.rings.to.get_mut(usize::from(worker)) else {
            return;
        };
        for packet in packets {
            if ring.push((source, Arc::clone(packet))).is_err() {
                counters.ring_full();
            }
        }
        if !self.to_wake.contains(&worker) {
            self.to_wake.push(worker);
        }
    }

    /// Makes a worker have a turn for something other than a command.
    pub(super) fn need(&self, worker: u16) {
        if let Some(inbox) = self.inboxes.get(usize::from(worker)) {
            inbox.wakeup().need();
        }
    }

    /// Returns how many packets each other worker has passed on.
    pub(super) fn count_passed(&self) -> SmallVec<[usize; 8]> {
        let rings = self.rings.from.iter();
        let rings = rings.map(|ring| ring.as_ref().map_or(0, Consumer::slots));
        rings.collect()
    }

    /// Takes `counts` packets from each other worker. Returns whether there are more.
    pub(super) fn take_passed(
        &mut self,
        counts: &[usize],
        mut take: impl FnMut(SourceRef, Arc<Packet>),
    ) -> bool {
        let mut more = false;
        let rings = self.rings.from.iter_mut().zip(counts);
        for (ring, count) in rings.filter_map(|(ring, count)| Some((ring.as_mut()?, *count))) {
            for _ in 0..count {
                let Ok((source, packet)) = ring.pop() else {
                    break;
                };
                take(source, packet);
            }
            more |= !ring.is_empty();
        }
        more
    }

    /// Wakes the workers that were passed packets.
    pub(super) fn wake(&mut self) {
        while let Some(worker) = self.to_wake.pop() {
            self.need(worker);
        }
    }
}
