//! A simulated network, and its datagrams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Bottleneck, BottleneckLink};

/// How a network treats datagrams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The delay of every datagram.
    pub delay: Duration,
    /// Further delay, evenly distributed from zero up to this. Datagrams overtake each other.
    pub jitter: Duration,
    /// The share of lost datagrams, 0.0 to 1.0.
    pub loss: f64,
    /// The share of datagrams that arrive twice, 0.0 to 1.0.
    pub duplication: f64,
    /// The share of datagrams of which a damaged copy arrives too, 0.0 to 1.0.
    pub corruption: f64,
}

impl Link {
    /// A network without loss or jitter, and with a delay of 10 ms.
    pub const GOOD: Link = Link {
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        loss: 0.0,
        duplication: 0.0,
        corruption: 0.0,
    };

    /// Makes a network with this loss, a tenth of it as duplication, and up to 20 ms of jitter.
    pub const fn lossy(loss: f64) -> Link {
        Link {
            jitter: Duration::from_millis(20),
            loss,
            duplication: loss / 10.0,
            ..Link::GOOD
        }
    }
}

/// A datagram in flight.
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
    /// The treatment of datagrams from now on.
    pub link: Link,
    /// Replaces each datagram by none, one or several.
    pub rewrite: fn(&[u8]) -> Vec<Vec<u8>>,
    /// 1:1 NAT: unreachable inner addresses, and those that the network sees instead.
    pub nat: Vec<(SocketAddr, SocketAddr)>,
    rng: StdRng,
    serial: u64,
    in_flight: BinaryHeap<Reverse<InFlight>>,
    /// The bottleneck before an address.
    bottleneck: Option<(SocketAddr, Bottleneck<Datagram>)>,
}

/// A datagram between two addresses.
#[derive(Debug)]
pub struct Datagram {
    /// The sender's address.
    pub source: SocketAddr,
    /// The receiver's address.
    pub destination: SocketAddr,
    /// The payload.
    pub bytes: Vec<u8>,
}

impl Network {
    /// Makes a network. The same `seed` treats the same datagrams alike.
    pub fn new(seed: u64, link: Link) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self {
            link,
            rewrite: |bytes| vec![bytes.to_vec()],
            nat: Vec::new(),
            rng,
            serial: 0,
            in_flight: BinaryHeap::new(),
            bottleneck: None,
        }
    }

    /// Puts a bottleneck before `destination`.
    pub fn limit(&mut self, destination: SocketAddr, link: BottleneckLink, now: Instant) {
        match &mut self.bottleneck {
            Some((limited, bottleneck)) if *limited == destination => {
                bottleneck.set_link(link, now)
            }
            bottleneck => *bottleneck = Some((destination, Bottleneck::new(1, link, now))),
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
        for bytes in (self.rewrite)(bytes) {
            let copies = 1 + usize::from(self.rng.random_bool(self.link.duplication));
            for _ in 0..copies {
                if !self.rng.random_bool(self.link.loss) {
                    self.launch(now, source, destination, bytes.clone());
                }
            }
            if self.rng.random_bool(self.link.corruption) {
                let damaged = self.damage(bytes);
                self.launch(now, source, destination, damaged);
            }
        }
    }

    fn launch(
        &mut self,
        now: Instant,
        source: SocketAddr,
        destination: SocketAddr,
        bytes: Vec<u8>,
    ) {
        if self.nat.iter().any(|nat| nat.0 == destination) {
            return;
        }
        let inner = |at| {
            self.nat
                .iter()
                .find(|nat| nat.1 == at)
                .map_or(at, |nat| nat.0)
        };
        let outer = |at| {
            self.nat
                .iter()
                .find(|nat| nat.0 == at)
                .map_or(at, |nat| nat.1)
        };
        let (source, destination) = (outer(source), inner(destination));
        if let Some((limited, bottleneck)) = &mut self.bottleneck
            && *limited == destination
        {
            let len = bytes.len();
            let datagram = Datagram {
                source,
                destination,
                bytes,
            };
            bottleneck.send(now, len, datagram);
            return;
        }
        let jitter = self.link.jitter.mul_f64(self.rng.random_range(0.0..=1.0));
        self.serial += 1;
        self.in_flight.push(Reverse(InFlight {
            arrival: now + self.link.delay + jitter,
            serial: self.serial,
            source,
            destination,
            bytes,
        }));
    }

    /// Flips bits, truncates or extends.
    fn damage(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..self.rng.random_range(1..8) {
            let at = self.rng.random_range(0..bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << self.rng.random_range(0..8);
            }
        }
        match self.rng.random_range(0..4) {
            0 => bytes.truncate(self.rng.random_range(0..=bytes.len())),
            1 => bytes.extend(std::iter::repeat_n(self.rng.random::<u8>(), 20)),
            _ => {}
        }
        bytes
    }

    /// Returns when the next datagram arrives.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.in_flight.peek().map(|Reverse(next)| next.arrival);
        let limited = self
            .bottleneck
            .as_ref()
            .and_then(|(_, limited)| limited.poll_timeout());
        next.into_iter().chain(limited).min()
    }

    /// Takes a datagram that has arrived.
    pub fn receive(&mut self, now: Instant) -> Option<Datagram> {
        if let Some((_, bottleneck)) = &mut self.bottleneck
            && let Some(datagram) = bottleneck.receive(now)
        {
            return Some(datagram);
        }
        let next = self.in_flight.peek().map(|Reverse(next)| next.arrival);
        next.filter(|arrival| *arrival <= now)?;
        let Reverse(InFlight {
            source,
            destination,
            bytes,
            ..
        }) = self.in_flight.pop()?;
        Some(Datagram {
            source,
            destination,
            bytes,
        })
    }
}
