//! Datagrams in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How a network treats datagrams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Delay of every datagram.
    pub delay: Duration,
    /// Further delay, evenly distributed from zero up to this: datagrams overtake each other.
    pub jitter: Duration,
    /// Share of datagrams that are lost, 0.0 to 1.0.
    pub loss: f64,
    /// Share of datagrams that arrive twice, 0.0 to 1.0.
    pub duplication: f64,
}

impl Link {
    /// A network that loses nothing: 10 ms, no jitter.
    pub const GOOD: Link = Link {
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        loss: 0.0,
        duplication: 0.0,
    };

    /// A network of some quality: `loss` lost, a tenth of it twice, up to 20 ms of jitter.
    pub const fn lossy(loss: f64) -> Link {
        Link {
            jitter: Duration::from_millis(20),
            loss,
            duplication: loss / 10.0,
            ..Link::GOOD
        }
    }
}

/// A datagram on its way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    arrival: Instant,
    serial: u64,
    source: SocketAddr,
    destination: SocketAddr,
    bytes: Vec<u8>,
}

/// A network between any addresses.
#[derive(Debug)]
pub struct Network {
    /// How datagrams sent from now on are treated.
    pub link: Link,
    rng: StdRng,
    serial: u64,
    in_flight: BinaryHeap<Reverse<InFlight>>,
}

impl Network {
    /// The same `seed` treats the same datagrams alike.
    pub fn new(seed: u64, link: Link) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self {
            link,
            rng,
            serial: 0,
            in_flight: BinaryHeap::new(),
        }
    }

    /// Sends a datagram.
    pub fn send(
        &mut self,
        now: Instant,
        source: SocketAddr,
        destination: SocketAddr,
        bytes: &[u8],
    ) {
        let copies = 1 + usize::from(self.rng.random_bool(self.link.duplication));
        for _ in 0..copies {
            if self.rng.random_bool(self.link.loss) {
                continue;
            }
            let jitter = self.link.jitter.mul_f64(self.rng.random_range(0.0..=1.0));
            let arrival = now + self.link.delay + jitter;
            self.serial += 1;
            self.in_flight.push(Reverse(InFlight {
                arrival,
                serial: self.serial,
                source,
                destination,
                bytes: bytes.to_vec(),
            }));
        }
    }

    /// When the next datagram arrives.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.in_flight.peek().map(|Reverse(next)| next.arrival)
    }

    /// Takes a datagram that has arrived: source, destination, bytes.
    pub fn receive(&mut self, now: Instant) -> Option<(SocketAddr, SocketAddr, Vec<u8>)> {
        self.poll_timeout().filter(|arrival| *arrival <= now)?;
        let Reverse(InFlight {
            source,
            destination,
            bytes,
            ..
        }) = self.in_flight.pop()?;
        Some((source, destination, bytes))
    }
}
