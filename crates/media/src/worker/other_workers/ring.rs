//! Packets between workers: a bounded ring for each pair and direction.

use std::sync::Arc;

use portunus_graph::Packet;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::SourceRef;
use crate::worker::budget::DATAGRAMS_PER_TURN;

/// The maximum number of packets in a ring: as many as a turn takes, 80 ms of 1 Gbit/s.
const RING: usize = DATAGRAMS_PER_TURN;

/// A packet and its source.
pub(crate) type Passed = (SourceRef, Arc<Packet>);

/// A worker's ends of the rings, by the index of the other worker.
pub(crate) struct Rings {
    pub(super) to: Vec<Option<Producer<Passed>>>,
    pub(super) from: Vec<Option<Consumer<Passed>>>,
}

impl Rings {
    /// Returns the ends of all workers.
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
