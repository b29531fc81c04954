//! Viewers behind one link, and the time.

use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::{Bottleneck, BottleneckLink, Publisher};

use crate::viewer::{Datagram, Viewer};

const TICK: Duration = Duration::from_millis(1);
/// The rates of usual publishers, in kbit/s.
pub const USUAL: [u64; 3] = [150, 500, 1_700];

/// The flow of other traffic.
const CROSS: usize = usize::MAX;

pub struct World {
    pub start: Instant,
    pub now: Instant,
    pub viewers: Vec<Viewer>,
    pub link: BottleneckLink,
    /// The rate of constant other traffic.
    pub cross: DataRate,
    bottleneck: Bottleneck<Datagram>,
    cross_sent: f64,
    /// The waiting time of packets at each tick.
    queue: Vec<(Instant, Duration)>,
    seed: u64,
}

impl World {
    pub fn new(seed: u64, link: BottleneckLink) -> Self {
        let now = Instant::now();
        Self {
            start: now,
            now,
            viewers: Vec::new(),
            link,
            cross: DataRate::ZERO,
            bottleneck: Bottleneck::new(seed, link, now),
            cross_sent: 0.0,
            queue: Vec::new(),
            seed,
        }
    }

    /// Makes one viewer of a usual simulcast publisher.
    pub fn one(seed: u64, link: BottleneckLink) -> Self {
        let mut world = Self::new(seed, link);
        world.add(Layering::Encodings, &USUAL);
        world
    }

    pub fn add(&mut self, layering: Layering, kbps: &[u64]) -> &mut Viewer {
        let flow = self.viewers.len();
        let publisher = Publisher::new(self.seed * 100 + flow as u64, layering, kbps, self.now);
        let seed = self.seed * 100 + flow as u64;
        self.viewers
            .push(Viewer::new(seed, flow, publisher, self.now));
        self.viewers.last_mut().unwrap()
    }

    /// Decides at once after a request.
    pub fn look_again(&mut self) {
        for viewer in &mut self.viewers {
            viewer.look_again(self.now);
        }
    }

    pub fn set_rate(&mut self, kbps: u64) {
        self.link.rate = DataRate::kbps(kbps);
        self.set_link(self.link);
    }

    pub fn set_link(&mut self, link: BottleneckLink) {
        self.link = link;
        self.bottleneck.set_link(link, self.now);
    }

    pub fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.now += TICK;
            while let Some(at) = self.bottleneck.poll_timeout().filter(|at| *at <= self.now) {
                while let Some(datagram) = self.bottleneck.receive(at) {
                    if datagram.flow != CROSS {
                        self.viewers[datagram.flow].arrive(datagram, at);
                    }
                }
            }
            for viewer in &mut self.viewers {
                viewer.report(self.now);
                for datagram in viewer.serve(self.now) {
                    self.bottleneck.send(self.now, datagram.bytes, datagram);
                }
            }
            self.cross();
            let delay = self.bottleneck.queue_delay(self.now);
            self.queue.push((self.now, delay));
        }
    }

    fn cross(&mut self) {
        self.cross_sent += self.cross.as_bps() as f64 / 8.0 * TICK.as_secs_f64();
        while self.cross_sent >= 1_200.0 {
            self.cross_sent -= 1_200.0;
            let datagram = Datagram {
                flow: CROSS,
                seq: 0,
                bytes: 1_200,
                picture: None,
            };
            self.bottleneck.send(self.now, 1_200, datagram);
        }
    }

    /// Returns the seconds since the start.
    pub fn seconds(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.start).as_secs_f64()
    }

    /// Returns the longest wait between two times, in seconds since the start.
    pub fn longest_queue(&self, from: f64, to: f64) -> Duration {
        let within = self.queue.iter().filter(|(at, _)| {
            let at = self.seconds(*at);
            (from..to).contains(&at)
        });
        within.map(|(_, delay)| *delay).max().unwrap_or_default()
    }

    /// Returns the seconds after `from` until the queue stays shorter than `limit`.
    pub fn queue_below(&self, limit: Duration, from: f64) -> f64 {
        let above = self.queue.iter().rev().find(|(_, delay)| *delay > limit);
        above.map_or(0.0, |(at, _)| self.seconds(*at) - from)
    }

    /// Returns the rate that a viewer received between two times.
    pub fn received(&self, viewer: usize, from: f64, to: f64) -> DataRate {
        let within = self.viewers[viewer].received.iter().filter(|(at, _)| {
            let at = self.seconds(*at);
            (from..to).contains(&at)
        });
        let bytes: usize = within.map(|(_, bytes)| *bytes).sum();
        DataRate::of(bytes as u64, Duration::from_secs_f64(to - from)).unwrap()
    }

    /// Returns the pictures completed between two times.
    pub fn pictures(&self, viewer: usize, from: f64, to: f64) -> usize {
        let within = self.viewers[viewer].pictures.iter().filter(|at| {
            let at = self.seconds(**at);
            (from..to).contains(&at)
        });
        within.count()
    }

    /// Returns the longest time without a picture between two times.
    pub fn longest_freeze(&self, viewer: usize, from: f64, to: f64) -> f64 {
        let mut last = from;
        let mut longest = 0.0_f64;
        for at in &self.viewers[viewer].pictures {
            let at = self.seconds(*at);
            if (from..to).contains(&at) {
                longest = longest.max(at - last);
                last = at;
            }
        }
        longest.max(to - last)
    }

    /// Returns when which layer was first relayed, between two times.
    pub fn switches(&self, viewer: usize, from: f64, to: f64) -> Vec<(f64, u8)> {
        let switched = self.viewers[viewer].switched.iter();
        let switched = switched.map(|(at, layer)| (self.seconds(*at), *layer));
        switched.filter(|(at, _)| (from..to).contains(at)).collect()
    }

    /// Returns the least time between two switches.
    pub fn least_stay(&self, viewer: usize, from: f64, to: f64) -> f64 {
        let switches = self.switches(viewer, from, to);
        let stays = switches.windows(2).map(|pair| pair[1].0 - pair[0].0);
        stays.fold(f64::INFINITY, f64::min)
    }

    /// Returns the seconds for which a layer was relayed.
    pub fn seconds_at(&self, viewer: usize, layer: u8, from: f64, to: f64) -> f64 {
        let mut switches = self.switches(viewer, 0.0, to);
        switches.push((to, layer));
        let at = |pair: &[(f64, u8)]| pair[0].1 == layer;
        let spans = switches.windows(2).filter(|pair| at(pair));
        spans
            .map(|pair| (pair[1].0 - pair[0].0.max(from)).max(0.0))
            .sum()
    }

    /// Returns the datagrams that the link lost.
    pub fn dropped(&self) -> u64 {
        self.bottleneck.dropped()
    }

    /// Returns the last relayed layer.
    pub fn layer(&self, viewer: usize) -> Option<u8> {
        self.viewers[viewer]
            .switched
            .last()
            .map(|(_, layer)| *layer)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os("ADAPTATION_TRACE").is_some() {
            self.tell();
        }
    }
}

impl World {
    /// Prints what happened, for people who debug a failed test.
    fn tell(&self) {
        eprintln!("seed {}", self.seed);
        let end = self.seconds(self.now);
        for (index, viewer) in self.viewers.iter().enumerate() {
            for (at, decision) in &viewer.decided {
                eprintln!(
                    "{:8.3} viewer {index}: {:?} {:?} {:?}",
                    self.seconds(*at),
                    decision.target,
                    decision.reason,
                    decision.rate
                );
            }
            eprintln!(
                "viewer {index} switched: {:.2?}",
                self.switches(index, 0.0, end)
            );
            eprintln!(
                "viewer {index}: {:?} padding {}",
                viewer.estimate(),
                viewer.padding()
            );
            let rates: Vec<u64> = (0..end as u64)
                .map(|second| {
                    self.received(index, second as f64, second as f64 + 1.0)
                        .as_bps()
                        / 1_000
                })
                .collect();
            eprintln!("viewer {index} received, kbit/s: {rates:?}");
        }
        let queue: Vec<u128> = (0..end as u64)
            .map(|second| {
                self.longest_queue(second as f64, second as f64 + 1.0)
                    .as_millis()
            })
            .collect();
        eprintln!("queue, ms: {queue:?}");
    }
}
