//! Packets from worker to worker: a bounded ring for each pair, each way.

use std::sync::Arc;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::SourceRef;
use crate::graph::Packet;
use crate::worker::datagrams::DATAGRAMS_PER_TURN;

/// Packets on their way between two workers: as many as one takes in a turn, 80 ms of 1 Gbit/s.
const RING: usize = DATAGRAMS_PER_TURN;

/// A packet and the source that it is of.
pub(crate) type Passed = (SourceRef, Arc<Packet>);

/// One worker's ends of the rings, indexed by the other worker.
pub(crate) struct Rings {
    pub(super) to: Vec<Option<Producer<Passed>>>,
    pub(super) from: Vec<Option<Consumer<Passed>>>,
}

impl Rings {
    /// The ends of all workers.
    pub(crate) fn connect(workers: usize) -> Vec<Rings> {
        let empty = || Rings {
            to: Vec::new(),
            from: Vec::new(),
        };
        let mut all: Vec<Rings> = (0..workers).map(|_| empty()).collect();
        for from in 0..workers {
            for to in 0..workers {
                let (producer, consumer) = if from == to {
                    (None, None)
                } else {
                    let (producer, consumer) = RingBuffer::new(RING);
                    (Some(producer), Some(consumer))
                };
                if let Some(rings) = all.get_mut(from) {
                    rings.to.push(producer);
                }
                if let Some(rings) = all.get_mut(to) {
                    rings.from.push(consumer);
                }
            }
        }
        all
    }
}
