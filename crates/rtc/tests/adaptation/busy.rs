//! Machines with more to do than they have time for: what they were to do at once they do late, and then all of it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How a machine is busy: it stands still for a while, again and again.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How long it stands still, at least and at most, in milliseconds.
    pub stalls: (u64, u64),
    /// How long it runs in between, on average, in milliseconds.
    pub every: f64,
    /// Packets that it reads or sends in a millisecond once it runs again.
    pub speed: usize,
}

impl Load {
    /// A machine of two cores on which a browser encodes three pictures and shows one.
    pub const BROWSER: Load = Load {
        stalls: (5, 60),
        every: 120.0,
        speed: 10,
    };
    /// The same with another program that takes all it can get.
    pub const HOG: Load = Load {
        stalls: (20, 150),
        every: 200.0,
        speed: 8,
    };
}

/// A thread of such a machine; what is given to it comes out when it runs.
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

    /// Whether it runs at present.
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

    /// What comes out in the millisecond that begins now.
    pub fn take(&mut self, now: Instant) -> Vec<T> {
        if !self.runs(now) {
            return Vec::new();
        }
        let speed = self.load.map_or(usize::MAX, |load| load.speed);
        let count = self.held.len().min(speed);
        self.held.drain(..count).collect()
    }
}
