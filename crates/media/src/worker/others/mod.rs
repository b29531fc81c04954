//! The other workers: commands and packets for them, and packets of theirs.

mod ring;

use std::sync::Arc;

use rtrb::Consumer;
use smallvec::SmallVec;

use super::counters::Counters;
use crate::SourceRef;
use crate::command::Command;
use crate::graph::Packet;
use crate::inbox::Inbox;

pub(crate) use ring::Rings;

/// A worker's ways to all others, and to itself. Whoever was passed packets is woken once, at the end of the turn.
pub(super) struct OtherWorkers {
    /// The number of this one.
    index: u16,
    inboxes: Vec<Arc<Inbox>>,
    rings: Rings,
    /// Those that were passed packets in this turn, each once.
    to_wake: Vec<u16>,
}

impl OtherWorkers {
    /// Those of the worker with the number `index`.
    pub(super) fn new(index: u16, inboxes: Vec<Arc<Inbox>>, rings: Rings) -> Self {
        Self {
            index,
            inboxes,
            rings,
            to_wake: Vec::new(),
        }
    }

    /// The number of this worker.
    pub(super) fn index(&self) -> u16 {
        self.index
    }

    /// What this worker itself is asked for.
    pub(super) fn own_inbox(&self) -> Option<&Arc<Inbox>> {
        self.inboxes.get(usize::from(self.index))
    }

    /// This worker is about to sleep. False: it must not, for something is asked of it.
    pub(super) fn leave(&self) -> bool {
        self.own_inbox().is_none_or(|inbox| inbox.leave())
    }

    /// This worker is at work until it says otherwise.
    pub(super) fn attend(&self) {
        if let Some(inbox) = self.own_inbox() {
            inbox.attend();
        }
    }

    /// Asks something of a worker.
    pub(super) fn send(&self, worker: u16, command: Command) {
        if let Some(inbox) = self.inboxes.get(usize::from(worker)) {
            inbox.send(command);
        }
    }

    /// Hands packets of a source to a worker. What finds its ring full is dropped and counted.
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

    /// Lets a worker have a turn for what is no command and is there already.
    pub(super) fn need(&self, worker: u16) {
        if let Some(inbox) = self.inboxes.get(usize::from(worker)) {
            inbox.need();
        }
    }

    /// How much each of the others has passed on so far.
    pub(super) fn count_passed(&self) -> SmallVec<[usize; 8]> {
        let rings = self.rings.from.iter();
        let rings = rings.map(|ring| ring.as_ref().map_or(0, Consumer::slots));
        rings.collect()
    }

    /// Takes what others passed on, `counts` from each; says whether there is more.
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

    /// Wakes those that were passed packets.
    pub(super) fn wake(&mut self) {
        while let Some(worker) = self.to_wake.pop() {
            self.need(worker);
        }
    }
}
