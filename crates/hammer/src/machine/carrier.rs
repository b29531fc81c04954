//! Links whose packets pass through this program, which delays and loses them.
//!
//! Each end of a link is a TUN device in its namespace. One thread reads the packets of all devices,
//! and writes them to the device at the other end when they are due. A kernel without netem can
//! delay packets that way, too.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rand::Rng;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::namespace::{Namespace, NamespaceError};

/// The largest packet of a link in bytes, as on Ethernet.
const MTU: u16 = 1_500;
/// Packets that wait in the kernel until the thread reads them.
const QUEUE: u32 = 10_000;
/// The most packets that wait on a link in one direction. More are dropped.
const WAITING: usize = 100_000;
/// Packets that are read from one device before the next one's turn.
const BATCH: usize = 256;
/// The token of the waker.
const WAKE: Token = Token(usize::MAX);

/// What a link does to packets in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quality {
    /// The delay of each packet.
    pub delay: Duration,
    /// The most by which the delay of a packet differs from `delay`. Packets keep their order.
    pub jitter: Duration,
    /// The share of packets that are lost at random.
    pub loss: PartsPerMillion,
    /// All packets are lost.
    pub is_cut: bool,
    /// All packets of UDP are lost.
    pub is_cut_for_udp: bool,
}

/// A share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartsPerMillion(u32);

impl PartsPerMillion {
    /// Returns this number of percent, at most 100.
    pub fn of_percent(percent: f64) -> Self {
        Self((percent.clamp(0.0, 100.0) * 1e4).round() as u32)
    }

    /// Returns whether a packet is among those, at random.
    fn strikes(self) -> bool {
        self.0 > 0 && rand::rng().random_ratio(self.0.min(1_000_000), 1_000_000)
    }
}

impl fmt::Display for PartsPerMillion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 1e4)
    }
}

/// A direction of a link, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way(usize);

/// Makes links, until their thread starts.
#[derive(Default)]
pub(super) struct Links(Vec<SyncDevice>);

/// The thread that carries the packets of all links. It ends with this value.
#[derive(Debug)]
pub(super) struct Carrier {
    qualities: Arc<Mutex<Vec<Quality>>>,
    ends: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Links {
    /// Links two namespaces by interfaces with these names. Returns the way from the first to the
    /// second one, and the way back.
    pub(super) fn join(
        &mut self,
        a: (&Namespace, &str),
        b: (&Namespace, &str),
    ) -> Result<[Way; 2], NamespaceError> {
        let first = self.0.len();
        for (namespace, interface) in [a, b] {
            let made = namespace.within(|| device(interface));
            let device = made.and_then(|made| made).map_err(NamespaceError::NoTun)?;
            self.0.push(device);
        }
        Ok([Way(first), Way(first.saturating_add(1))])
    }

    /// Starts to carry packets.
    pub(super) fn start(self) -> Result<Carrier, NamespaceError> {
        let step = |source| NamespaceError::Step {
            step: "carrying the packets of links",
            source,
        };
        let poll = Poll::new().map_err(step)?;
        let waker = Waker::new(poll.registry(), WAKE).map_err(step)?;
        for (index, device) in self.0.iter().enumerate() {
            let descriptor = device.as_raw_fd();
            let registry = poll.registry();
            registry
                .register(&mut SourceFd(&descriptor), Token(index), Interest::READABLE)
                .map_err(step)?;
        }
        let qualities = Arc::new(Mutex::new(vec![Quality::default(); self.0.len()]));
        let ends = Arc::<AtomicBool>::default();
        let belt = Belt {
            queues: self.0.iter().map(|_| VecDeque::new()).collect(),
            readable: vec![false; self.0.len()],
            devices: self.0,
            qualities: qualities.clone(),
        };
        let ended = ends.clone();
        let thread = thread::Builder::new().name("links".to_owned());
        let thread = thread.spawn(move || belt.run(poll, &ended)).map_err(step)?;
        Ok(Carrier {
            qualities,
            ends,
            waker,
            thread: Some(thread),
        })
    }
}

fn device(interface: &str) -> io::Result<SyncDevice> {
    let builder = DeviceBuilder::new().name(interface).mtu(MTU);
    let device = builder.tx_queue_len(QUEUE).build_sync()?;
    device.set_nonblocking(true)?;
    Ok(device)
}

impl Carrier {
    /// Changes what a way does to packets from now on.
    pub(super) fn change(&self, way: Way, change: impl FnOnce(&mut Quality)) {
        let mut qualities = self
            .qualities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(quality) = qualities.get_mut(way.0) {
            change(quality);
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // Without it the thread would end with the next packet.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The packets under way. The ends of a link have neighbouring numbers.
struct Belt {
    devices: Vec<SyncDevice>,
    qualities: Arc<Mutex<Vec<Quality>>>,
    /// By the device that they came from, with the time at which each is due.
    queues: Vec<VecDeque<(Instant, Box<[u8]>)>>,
    /// Devices that may have packets.
    readable: Vec<bool>,
}

impl Belt {
    fn run(mut self, mut poll: Poll, ends: &AtomicBool) {
        let mut events = Events::with_capacity(256);
        while !ends.load(Ordering::Relaxed) {
            let wait = match self.readable.contains(&true) {
                true => Some(Duration::ZERO),
                false => {
                    let due = self.queues.iter().filter_map(|queue| queue.front());
                    let due = due.map(|(due, _)| *due).min();
                    due.map(|due| due.saturating_duration_since(Instant::now()))
                }
            };
            match poll.poll(&mut events, wait) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            }
            for event in &events {
                if let Some(readable) = self.readable.get_mut(event.token().0) {
                    *readable = true;
                }
            }
            self.read();
            self.write();
        }
    }

    /// Reads some packets of each device.
    fn read(&mut self) {
        let qualities = self
            .qualities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let qualities = qualities.clone();
        let mut buffer = [0; 65_536];
        let devices = self.devices.iter().zip(&mut self.queues);
        let devices = devices.zip(&mut self.readable).zip(&qualities);
        for (((device, queue), readable), quality) in devices.filter(|((_, it), _)| **it) {
            for _ in 0..BATCH {
                match device.recv(&mut buffer) {
                    Ok(len) => take(queue, quality, buffer.get(..len).unwrap_or_default()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // Mostly because there is none left.
                    Err(_) => {
                        *readable = false;
                        break;
                    }
                }
            }
        }
    }

    /// Writes what is due to the other ends.
    fn write(&mut self) {
        let now = Instant::now();
        for (index, queue) in self.queues.iter_mut().enumerate() {
            let Some(other) = self.devices.get(index ^ 1) else {
                continue;
            };
            while queue.front().is_some_and(|(due, _)| *due <= now) {
                if let Some((_, packet)) = queue.pop_front() {
                    // A full queue loses it, as on other links.
                    let _ = other.send(&packet);
                }
            }
        }
    }
}

/// Returns whether an IPv4 packet is one of UDP (RFC 791 section 3.1).
fn is_udp(packet: &[u8]) -> bool {
    packet.get(9) == Some(&17)
}

/// Puts a packet into the queue of its way, or loses it.
fn take(queue: &mut VecDeque<(Instant, Box<[u8]>)>, quality: &Quality, packet: &[u8]) {
    let is_cut = quality.is_cut || (quality.is_cut_for_udp && is_udp(packet));
    if is_cut || quality.loss.strikes() || queue.len() >= WAITING {
        return;
    }
    let mut delay = quality.delay;
    if !quality.jitter.is_zero() {
        let within = quality.jitter.saturating_mul(2);
        let added = rand::rng().random_range(Duration::ZERO..=within);
        delay = (delay + added).saturating_sub(quality.jitter);
    }
    let due = Instant::now() + delay;
    let last = queue.back().map_or(due, |(last, _)| *last);
    queue.push_back((due.max(last), packet.into()));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn sent(quality: &Quality, count: u16) -> VecDeque<(Instant, Box<[u8]>)> {
        let mut queue = VecDeque::new();
        for number in 0..count {
            take(&mut queue, quality, &number.to_be_bytes());
        }
        queue
    }

    #[test]
    fn packets_are_lost_by_share_and_keep_their_order() {
        let quality = Quality {
            delay: Duration::from_millis(20),
            jitter: Duration::from_millis(10),
            loss: PartsPerMillion::of_percent(10.0),
            ..Quality::default()
        };
        let begin = Instant::now();
        let queue = sent(&quality, 10_000);
        let end = Instant::now();
        assert!((8_500..9_500).contains(&queue.len()), "{}", queue.len());
        let all: Vec<_> = queue.into_iter().collect();
        assert!(all.is_sorted_by_key(|(due, packet)| (*due, packet.clone())));
        let within = begin + Duration::from_millis(10)..=end + Duration::from_millis(30);
        assert!(all.iter().all(|(due, _)| within.contains(due)));
        let cut = Quality {
            is_cut: true,
            ..quality
        };
        assert!(sent(&cut, 100).is_empty());
        assert_eq!(sent(&Quality::default(), 100).len(), 100);
    }

    #[test]
    fn shares_are_shown_in_percent() {
        assert_eq!(PartsPerMillion::of_percent(5.0).to_string(), "5%");
        assert_eq!(PartsPerMillion::of_percent(0.25).to_string(), "0.25%");
        assert_eq!(PartsPerMillion::of_percent(200.0).to_string(), "100%");
    }
}
