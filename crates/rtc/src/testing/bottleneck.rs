//! A link with a constant rate and a queue in front of it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::bandwidth::DataRate;

/// How a bottleneck treats datagrams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BottleneckLink {
    /// The rate.
    pub rate: DataRate,
    /// The most bytes in the queue. More datagrams are dropped.
    pub queue: usize,
    /// The delay from the end of the queue to the arrival.
    pub delay: Duration,
    /// Further delay, evenly distributed from zero up to this. Datagrams do not overtake each
    /// other.
    pub jitter: Duration,
    /// The share of datagrams lost in addition, 0.0 to 1.0.
    pub loss: f64,
}

impl BottleneckLink {
    /// Makes a link with this rate, 25 ms, a queue of 64 KiB, no jitter and no loss.
    pub const fn of(rate: DataRate) -> Self {
        Self {
            rate,
            queue: 65_536,
            delay: Duration::from_millis(25),
            jitter: Duration::ZERO,
            loss: 0.0,
        }
    }
}

/// A bottleneck with its datagrams, from any flow.
#[derive(Debug)]
pub struct Bottleneck<T> {
    link: BottleneckLink,
    rng: StdRng,
    /// The time up to which the queue has been simulated.
    at: Instant,
    waiting: VecDeque<(usize, T)>,
    waiting_bytes: usize,
    /// The remaining time of the first one.
    first: Duration,
    in_flight: VecDeque<(Instant, T)>,
    dropped: u64,
}

impl<T> Bottleneck<T> {
    /// Makes an empty link. The same `seed` treats the same datagrams alike.
    pub fn new(seed: u64, link: BottleneckLink, now: Instant) -> Self {
        Self {
            link,
            rng: StdRng::seed_from_u64(seed),
            at: now,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            first: Duration::ZERO,
            in_flight: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Changes the link, also for the rest of the datagram that is being sent.
    pub fn set_link(&mut self, link: BottleneckLink, now: Instant) {
        self.advance(now);
        if let Some((bytes, _)) = self.waiting.front() {
            let whole = self.link.rate.time_for(*bytes as u64);
            let left = self.first.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE);
            self.first = link.rate.time_for(*bytes as u64).mul_f64(left.min(1.0));
        }
        self.link = link;
    }

    /// Sends a datagram of `bytes`.
    pub fn send(&mut self, now: Instant, bytes: usize, datagram: T) {
        self.advance(now);
        if self.waiting_bytes + bytes > self.link.queue || self.rng.random_bool(self.link.loss) {
            self.dropped += 1;
            return;
        }
        if self.waiting.is_empty() {
            self.at = now;
            self.first = self.link.rate.time_for(bytes as u64);
        }
        self.waiting_bytes += bytes;
        self.waiting.push_back((bytes, datagram));
    }

    /// Takes a datagram that has arrived.
    pub fn receive(&mut self, now: Instant) -> Option<T> {
        self.advance(now);
        self.in_flight.front().filter(|(at, _)| *at <= now)?;
        self.in_flight.pop_front().map(|(_, datagram)| datagram)
    }

    /// Returns when a datagram arrives or leaves the queue.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let arrival = self.in_flight.front().map(|(at, _)| *at);
        let leaves = (!self.waiting.is_empty()).then(|| self.at + self.first);
        [arrival, leaves].into_iter().flatten().min()
    }

    /// Returns the waiting time of a datagram sent now.
    pub fn queue_delay(&mut self, now: Instant) -> Duration {
        self.advance(now);
        self.link.rate.time_for(self.waiting_bytes as u64)
    }

    /// Returns the number of datagrams that were dropped or lost.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn advance(&mut self, now: Instant) {
        while !self.waiting.is_empty() {
            let done = self.at + self.first;
            if done > now {
                self.first = done.saturating_duration_since(now.max(self.at));
                self.at = self.at.max(now);
                return;
            }
            self.at = done;
            let Some((bytes, datagram)) = self.waiting.pop_front() else {
                return;
            };
            self.waiting_bytes -= bytes;
            let jitter = self.link.jitter.mul_f64(self.rng.random_range(0.0..=1.0));
            let before = self.in_flight.back().map_or(done, |(at, _)| *at);
            let arrival = (done + self.link.delay + jitter).max(before);
            self.in_flight.push_back((arrival, datagram));
            if let Some((bytes, _)) = self.waiting.front() {
                self.first = self.link.rate.time_for(*bytes as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn arrivals(link: &mut Bottleneck<u32>, start: Instant) -> Vec<(u32, u128)> {
        let mut arrivals = Vec::new();
        while let Some(at) = link.poll_timeout() {
            while let Some(n) = link.receive(at) {
                arrivals.push((n, (at - start).as_millis()));
            }
        }
        arrivals
    }

    #[test]
    fn datagrams_wait_for_those_before_them() {
        let start = Instant::now();
        let link = BottleneckLink::of(DataRate::kbps(800));
        let mut bottleneck = Bottleneck::new(1, link, start);
        for n in 0..3 {
            bottleneck.send(start, 1_000, n);
        }
        assert_eq!(bottleneck.queue_delay(start), 30 * MS);
        assert_eq!(
            bottleneck.queue_delay(start + 5 * MS),
            30 * MS,
            "one is leaving"
        );
        assert_eq!(
            arrivals(&mut bottleneck, start),
            [(0, 35), (1, 45), (2, 55)]
        );
    }

    #[test]
    fn another_rate_holds_for_what_waits() {
        let start = Instant::now();
        let mut bottleneck = Bottleneck::new(1, BottleneckLink::of(DataRate::kbps(800)), start);
        for n in 0..3 {
            bottleneck.send(start, 1_000, n);
        }
        bottleneck.set_link(BottleneckLink::of(DataRate::kbps(80)), start + 5 * MS);
        assert_eq!(
            arrivals(&mut bottleneck, start),
            [(0, 80), (1, 180), (2, 280)]
        );
    }

    #[test]
    fn a_full_queue_drops_what_comes() {
        let start = Instant::now();
        let link = BottleneckLink {
            queue: 2_500,
            ..BottleneckLink::of(DataRate::kbps(800))
        };
        let mut bottleneck = Bottleneck::new(1, link, start);
        for n in 0..5 {
            bottleneck.send(start, 1_000, n);
        }
        assert_eq!(bottleneck.dropped(), 3);
        assert_eq!(arrivals(&mut bottleneck, start).len(), 2);
    }
}
