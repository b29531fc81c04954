//! Addresses of viewers without viewers: packets are read like a participant's, and only counted.
//!
//! A ceiling sends to them. What a core can send depends on how it is read: to addresses from which
//! nothing is read it is nearly twice as much.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use portunus_udp::{Received, enable_timestamps};

use super::count::Count;
use super::reader::{EVENTS, Extent, PASS, Reader};
use super::way::{Shared, own_socket};
use crate::machine::Addresses;

/// Reading ends after this time without a datagram.
const QUIET: Duration = Duration::from_millis(100);

/// What arrived so far.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    packets: AtomicU64,
    bytes: AtomicU64,
    ending: AtomicBool,
}

/// The amount that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) packets: u64,
    /// The UDP payload.
    pub(crate) bytes: u64,
}

impl Arrived {
    pub(crate) fn so_far(&self) -> Counted {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            packets: of(&self.packets),
            bytes: of(&self.bytes),
        }
    }

    /// Reads what is there, then reading ends.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }
}

/// As many addresses, or sockets, as there would be viewers.
pub(crate) struct BareViewers {
    to: Vec<SocketAddr>,
    counts: Vec<Count>,
    reader: Reader,
    sockets: Sockets,
}

enum Sockets {
    /// Shared sockets, with an address for each viewer.
    Shared(Shared),
    /// One socket per viewer. The flag says whether datagrams are read whole.
    Own(Poll, Vec<(UdpSocket, bool)>),
}

impl BareViewers {
    /// Opens them in the calling thread's namespace. With `addresses`, they share two sockets, else
    /// each has one at `local`. The share `check_share` of them reads datagrams whole.
    pub(crate) fn open(
        count: u32,
        addresses: Option<Addresses>,
        local: IpAddr,
        check_share: f64,
    ) -> io::Result<Self> {
        let reads_all = |n: u32| {
            (f64::from(n + 1) * check_share).floor() > (f64::from(n) * check_share).floor()
        };
        let mut to = Vec::new();
        let sockets = match addresses {
            Some(addresses) => {
                let mut shared = Shared::new(addresses)?;
                let ports = shared.ports();
                for n in 0..count {
                    let all = reads_all(n);
                    let address = addresses.nth_of(all, n.into()).into();
                    shared.assign(address, Some(n as usize));
                    let port = if all { ports.whole } else { ports.heads };
                    to.push(SocketAddr::new(address, port));
                }
                Sockets::Shared(shared)
            }
            None => {
                let poll = Poll::new()?;
                let mut own = Vec::new();
                for n in 0..count {
                    let (socket, all) = (own_socket(local)?, reads_all(n));
                    if all {
                        enable_timestamps(&socket);
                    }
                    let mut fd = SourceFd(&socket.as_raw_fd());
                    let token = Token(n as usize);
                    poll.registry()
                        .register(&mut fd, token, Interest::READABLE)?;
                    to.push(socket.local_addr()?);
                    own.push((socket, all));
                }
                Sockets::Own(poll, own)
            }
        };
        Ok(Self {
            counts: to.iter().map(|_| Count::default()).collect(),
            reader: Reader::new(addresses.is_some()),
            to,
            sockets,
        })
    }

    /// Returns their addresses.
    pub(crate) fn to(&self) -> &[SocketAddr] {
        &self.to
    }

    /// Reads and counts until [`Arrived::end`].
    pub(crate) fn read(&mut self, arrived: &Arrived) {
        let mut events = Events::with_capacity(EVENTS);
        let mut last = Instant::now();
        loop {
            let start = Instant::now();
            if !self.pass(&mut events, arrived) {
                last = start;
            } else if arrived.ending.load(Ordering::Relaxed) && last.elapsed() > QUIET {
                return;
            }
            std::thread::sleep(PASS.saturating_sub(start.elapsed()));
        }
    }

    /// Takes what waits. Returns whether there was nothing.
    fn pass(&mut self, events: &mut Events, arrived: &Arrived) -> bool {
        let (mut packets, mut bytes) = (0, 0);
        let counts = &mut self.counts;
        let mut take = |n: usize, arrival: Received<'_>| {
            let run = arrival.len.div_ceil(arrival.stride.max(1)) as u64;
            if let Some(count) = counts.get_mut(n) {
                count.take_run(arrival.data, run);
            }
            packets += run;
            bytes += arrival.len as u64;
        };
        let idle = match &mut self.sockets {
            Sockets::Shared(shared) => self.reader.shared(shared, false, take),
            Sockets::Own(poll, own) => {
                // An error here is a signal. The next pass polls again.
                let _ = poll.poll(events, Some(Duration::ZERO));
                for event in &*events {
                    let n = event.token().0;
                    let Some((socket, all)) = own.get(n) else {
                        continue;
                    };
                    let extent = if *all { Extent::Whole } else { Extent::Heads };
                    let batch = self.reader.batch(extent);
                    loop {
                        let received = batch.receive(socket).unwrap_or(0);
                        batch.iter(received).for_each(|arrival| take(n, arrival));
                        if !batch.was_full(received) {
                            break;
                        }
                    }
                }
                events.is_empty()
            }
        };
        arrived.packets.fetch_add(packets, Ordering::Relaxed);
        arrived.bytes.fetch_add(bytes, Ordering::Relaxed);
        idle
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    /// Sends a datagram to each of some viewers. Returns the counts.
    fn counted(addresses: Option<Addresses>) -> Counted {
        let local = [127, 0, 0, 1].into();
        let mut viewers = BareViewers::open(5, addresses, local, 0.5).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for to in viewers.to() {
            socket.send_to(&[0x80; 700], to).unwrap();
        }
        let arrived = Arrived::default();
        arrived.end();
        viewers.read(&arrived);
        arrived.so_far()
    }

    #[test]
    fn all_that_comes_is_counted_whether_it_is_read_whole_or_not() {
        let all = Counted {
            packets: 5,
            bytes: 3_500,
        };
        assert_eq!(counted(Some(Addresses::LOOPBACK)), all);
        assert_eq!(counted(None), all);
    }
}
