//! The results of a simulation.

use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::DataRate;

use super::Simulation;

impl Simulation {
    /// Seconds since the start.
    pub fn seconds(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.start).as_secs_f64()
    }

    /// The seconds after `from` until the queue of a link stays shorter than `limit`.
    pub fn queue_below(&self, link: usize, limit: Duration, from: f64) -> f64 {
        let above = self.links[link].queue.iter().rev();
        let above = above.into_iter().find(|(_, delay)| *delay > limit);
        above.map_or(0.0, |(at, _)| self.seconds(*at) - from)
    }

    /// The longest delay on a link between two times, in seconds since the start.
    pub fn longest_queue(&self, link: usize, from: f64, to: f64) -> Duration {
        let within = self.links[link].queue.iter().filter(|(at, _)| {
            let at = self.seconds(*at);
            (from..to).contains(&at)
        });
        within.map(|(_, delay)| *delay).max().unwrap_or_default()
    }

    /// The number of datagrams lost on a link.
    pub fn lost(&self, link: usize) -> u64 {
        self.links[link].bottleneck.dropped()
    }

    /// The bitrate that a viewer received between two times.
    pub fn received(&self, watcher: usize, from: f64, to: f64) -> DataRate {
        let within = self.watchers[watcher].received.iter().filter(|(at, _)| {
            let at = self.seconds(*at);
            (from..to).contains(&at)
        });
        let bytes: usize = within.map(|(_, bytes)| *bytes).sum();
        DataRate::of(bytes as u64, Duration::from_secs_f64(to - from)).unwrap_or_default()
    }

    /// The number of complete frames between two times.
    pub fn pictures(&self, watcher: usize, from: f64, to: f64) -> usize {
        let within = self.watchers[watcher].pictures.iter().filter(|(at, _)| {
            let at = self.seconds(*at);
            (from..to).contains(&at)
        });
        within.count()
    }

    /// The longest time without a complete frame between two times.
    pub fn longest_freeze(&self, watcher: usize, from: f64, to: f64) -> f64 {
        let mut last = from;
        let mut longest = 0.0_f64;
        for (at, _) in &self.watchers[watcher].pictures {
            let at = self.seconds(*at);
            if (from..to).contains(&at) {
                longest = longest.max(at - last);
                last = at;
            }
        }
        longest.max(to - last)
    }

    /// The reported changes of the relayed encoding or spatial layer between two times.
    pub fn switches(&self, watcher: usize, from: f64, to: f64) -> Vec<(f64, u8)> {
        let mut switches: Vec<(f64, u8)> = Vec::new();
        let mut last = None;
        for (at, layer) in &self.watchers[watcher].told {
            let layer = layer.substream.or(layer.spatial);
            if layer != last
                && let Some(layer) = layer
            {
                switches.push((self.seconds(*at), layer));
            }
            last = layer;
        }
        switches.retain(|(at, _)| (from..to).contains(at));
        switches
    }

    /// The shortest time between two changes.
    pub fn least_stay(&self, watcher: usize, from: f64, to: f64) -> f64 {
        let switches = self.switches(watcher, from, to);
        let stays = switches.iter().zip(switches.iter().skip(1));
        stays
            .map(|((before, _), (after, _))| after - before)
            .fold(f64::INFINITY, f64::min)
    }

    /// The last reported encoding or spatial layer.
    pub fn layer(&self, watcher: usize) -> Option<u8> {
        let told = self.watchers[watcher].told.last();
        told.and_then(|(_, layer)| layer.substream.or(layer.spatial))
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os("ADAPTATION_TRACE").is_some() {
            self.print();
        }
    }
}

impl Simulation {
    /// Prints what happened, to investigate a failed test.
    fn print(&self) {
        eprintln!("seed {}", self.seed);
        let end = self.seconds(self.now);
        for index in 0..self.watchers.len() {
            eprintln!("watcher {index}: {:.2?}", self.switches(index, 0.0, end));
            let rates: Vec<u64> = (0..end as u64)
                .map(|second| {
                    let rate = self.received(index, second as f64, second as f64 + 1.0);
                    rate.as_bps() / 1_000
                })
                .collect();
            eprintln!("watcher {index} received, kbit/s: {rates:?}");
        }
        for (index, link) in self.links.iter().enumerate() {
            let mut longest = vec![0; end as usize + 1];
            for (at, delay) in &link.queue {
                if let Some(most) = longest.get_mut(self.seconds(*at) as usize) {
                    *most = delay.as_millis().max(*most);
                }
            }
            eprintln!("link {index}, ms: {longest:?}");
        }
    }
}
