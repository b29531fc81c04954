//! Machines with too much to do, which act late and then on everything at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The load of a machine that stands still again and again.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The least and the most duration of a standstill, in ms.
    pub stalls: (u64, u64),
    /// The mean time between standstills, in ms.
    pub every: f64,
    /// Packets that it reads or sends per ms once it runs again.
    pub speed: usize,
}

impl Load {
    /// A machine with two cores on which a browser encodes three layers and shows one video.
    pub const BROWSER: Load = Load {
        stalls: (5, 60),
        every: 120.0,
        speed: 10,
    };
    /// The same machine with another program that takes all remaining time.
    pub const HOG: Load = Load {
        stalls: (20, 150),
        every: 200.0,
        speed: 8,
    };
}

/// A thread of such a machine. Its input comes out when it runs.
#[derive(Debug)]
pub struct Thread<T> {
    load: Option<Load>,
    rng: StdRng,
    stalled_until: Instant,
    runs_until: Instant,
    held: VecDeque<T>,
}

impl<T> Thread<T> {
    pub fn new(seed: u64, now: Instant) -> Self {
        Self {
            load: None,
            rng: StdRng::seed_from_u64(seed),
            stalled_until: now,
            runs_until: now,
            held: VecDeque::new(),
        }
    }

    pub fn set_load(&mut self, load: Option<Load>) {
        self.load = load;
    }

    pub fn is_busy(&self) -> bool {
        self.load.is_some()
    }

    pub fn give(&mut self, item: T) {
        self.held.push_back(item);
    }

    /// Returns whether it currently runs.
    pub fn runs(&mut self, now: Instant) -> bool {
        let Some(load) = self.load else { return true };
        if now < self.stalled_until {
            return false;
        }
        if now < self.runs_until {
            return true;
        }
        let (least, most) = load.stalls;
        let stall = Duration::from_millis(self.rng.random_range(least..=most));
        let uniform: f64 = self.rng.random_range(f64::EPSILON..1.0);
        let runs = Duration::from_secs_f64(-uniform.ln() * load.every / 1_000.0);
        self.stalled_until = now + stall;
        self.runs_until = self.stalled_until + runs;
        false
    }

    /// Returns its output in the ms that starts now.
    pub fn take(&mut self, now: Instant) -> Vec<T> {
        if !self.runs(now) {
            return Vec::new();
        }
        let speed = self.load.map_or(usize::MAX, |load| load.speed);
        let count = self.held.len().min(speed);
        self.held.drain(..count).collect()
    }
}
