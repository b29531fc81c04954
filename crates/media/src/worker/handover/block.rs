//! Datagrams on their way to the worker of their peers, in one piece of memory.

use std::net::{IpAddr, SocketAddr};

/// The size in bytes at which a block is full, so that it stays in a core's second-level cache. The
/// last datagram may exceed it.
const FULL: usize = 48 << 10;
/// The number of datagrams at which a block is full.
const MOST: usize = 512;

/// A datagram of a block.
#[derive(Debug, Clone, Copy)]
struct Entry {
    local: IpAddr,
    remote: SocketAddr,
    len: usize,
}

/// A datagram of a block, with the addresses that it was sent to and from.
#[derive(Debug)]
pub(in crate::worker) struct BlockDatagram<'a> {
    pub(in crate::worker) local: IpAddr,
    pub(in crate::worker) remote: SocketAddr,
    pub(in crate::worker) datagram: &'a mut [u8],
}

/// Datagrams in order of arrival.
#[derive(Debug, Default)]
pub(in crate::worker) struct Block {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Block {
    /// Adds a datagram from `remote` to `local`.
    pub(super) fn push(&mut self, local: IpAddr, remote: SocketAddr, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.entries.push(Entry {
            local,
            remote,
            len: datagram.len(),
        });
    }

    /// Whether the next datagram belongs into another block.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL || self.entries.len() >= MOST
    }

    /// The number of datagrams.
    pub(in crate::worker) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The datagrams, in order.
    pub(in crate::worker) fn datagrams(&mut self) -> impl Iterator<Item = BlockDatagram<'_>> {
        let mut rest = self.bytes.as_mut_slice();
        self.entries.iter().filter_map(move |entry| {
            let (datagram, left) = std::mem::take(&mut rest).split_at_mut_checked(entry.len)?;
            rest = left;
            Some(BlockDatagram {
                local: entry.local,
                remote: entry.remote,
                datagram,
            })
        })
    }

    /// Removes all datagrams, but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_out_as_they_went_in_and_the_memory_stays() {
        let address = |n: u8| SocketAddr::from(([192, 0, 2, n], n.into()));
        let mut block = Block::default();
        for round in 0..3 {
            for n in 0..5_u8 {
                let datagram = vec![n + round; 100 * usize::from(n)];
                block.push(address(99).ip(), address(n), &datagram);
            }
            assert_eq!(block.len(), 5);
            for (n, handed) in (0..).zip(block.datagrams()) {
                let BlockDatagram {
                    local,
                    remote,
                    datagram,
                } = handed;
                assert_eq!((local, remote), (address(99).ip(), address(n)));
                assert_eq!(datagram, vec![n + round; 100 * usize::from(n)]);
                datagram.fill(0);
            }
            let before = (block.bytes.as_ptr(), block.entries.as_ptr());
            block.clear();
            assert_eq!((block.len(), block.datagrams().count()), (0, 0));
            if round > 0 {
                assert_eq!((block.bytes.as_ptr(), block.entries.as_ptr()), before);
            }
        }
    }

    #[test]
    fn a_block_is_full_by_its_bytes_and_by_its_datagrams() {
        for (size, most) in [(1_200, FULL.div_ceil(1_200)), (10, MOST)] {
            let mut block = Block::default();
            let address = SocketAddr::from(([192, 0, 2, 1], 1));
            while !block.is_full() {
                block.push(address.ip(), address, &vec![0; size]);
            }
            assert_eq!(block.len(), most);
        }
    }
}
