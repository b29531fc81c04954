//! Connects workers that share a port: blocks of datagrams one way, emptied blocks and claims the
//! other.

use std::sync::Arc;

use crossbeam_queue::SegQueue;
use rtrb::{Consumer, Producer, RingBuffer};

use super::block::Block;
use crate::worker::peers::Claim;

/// The maximum number of blocks to a worker: some 12 MiB, 80 ms of 1 Gbit/s.
const RING: usize = 256;
/// The maximum number of emptied blocks on their way back. Further ones are freed.
const SPARE: usize = 4;

/// Claims for a worker. Their number is limited by what the clients of its peers send, see
/// [`Claim`].
pub(super) type Claims = Arc<SegQueue<Claim>>;

/// The connections between two workers.
#[derive(Debug)]
pub(super) struct Link {
    /// The block for the next datagrams.
    pub(super) filling: Block,
    pub(super) to: Producer<Block>,
    /// Blocks of this worker that the other has emptied.
    pub(super) emptied: Consumer<Block>,
    pub(super) from: Consumer<Block>,
    /// Returns blocks to the other worker.
    pub(super) back: Producer<Block>,
    /// The claims for the other worker.
    pub(super) claims: Claims,
}

/// The connections of a worker to all others that share its port, by their index.
#[derive(Debug)]
pub(crate) struct Links {
    pub(super) others: Vec<Option<Link>>,
    /// The claims for this worker.
    pub(super) claims: Claims,
}

impl Links {
    /// Returns the connections of all workers.
    pub(crate) fn connect(workers: usize) -> Vec<Option<Links>> {
        let claims: Vec<Claims> = (0..workers).map(|_| Claims::default()).collect();
        let mut all: Vec<Links> = claims
            .iter()
            .map(|own| Links {
                others: (0..workers).map(|_| None).collect(),
                claims: Arc::clone(own),
            })
            .collect();
        for one in 0..workers {
            for other in 0..one {
                let (to_other, from_one) = RingBuffer::new(RING);
                let (to_one, from_other) = RingBuffer::new(RING);
                let (back_to_one, emptied_by_other) = RingBuffer::new(SPARE);
                let (back_to_other, emptied_by_one) = RingBuffer::new(SPARE);
                let of_one = Link {
                    filling: Block::default(),
                    to: to_other,
                    emptied: emptied_by_other,
                    from: from_other,
                    back: back_to_other,
                    claims: claims.get(other).cloned().unwrap_or_default(),
                };
                let of_other = Link {
                    filling: Block::default(),
                    to: to_one,
                    emptied: emptied_by_one,
                    from: from_one,
                    back: back_to_one,
                    claims: claims.get(one).cloned().unwrap_or_default(),
                };
                for (at, with, link) in [(one, other, of_one), (other, one, of_other)] {
                    let links = all.get_mut(at).and_then(|it| it.others.get_mut(with));
                    if let Some(place) = links {
                        *place = Some(link);
                    }
                }
            }
        }
        all.into_iter().map(Some).collect()
    }
}
