//! Numbers, tags and tokens that nobody can guess.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use rand::distr::uniform::{SampleRange, SampleUniform};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::message::Request;

/// The random numbers of an agent, and its counter of ids.
#[derive(Debug)]
pub(in crate::agent) struct Random {
    rng: StdRng,
    hash: RandomState,
    last_number: u64,
}

impl Random {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self {
            rng: StdRng::from_seed(seed),
            hash: RandomState::new(),
            last_number: 0,
        }
    }

    /// Returns a number that no other id of the agent has.
    pub(in crate::agent) fn number(&mut self) -> u64 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }

    /// Draws a number from `range`.
    pub(in crate::agent) fn range<T: SampleUniform>(&mut self, range: impl SampleRange<T>) -> T {
        self.rng.random_range(range)
    }

    /// Draws letters and digits.
    pub(in crate::agent) fn token(&mut self, length: usize) -> String {
        (0..length)
            .map(|_| char::from(self.rng.sample(rand::distr::Alphanumeric)))
            .collect()
    }

    pub(in crate::agent) fn tag(&mut self) -> String {
        self.token(16)
    }

    pub(in crate::agent) fn call_id(&mut self) -> String {
        self.token(23)
    }

    /// Returns the tag of a response without a transaction: the same for the same request
    /// (RFC 3261 section 8.2.7).
    pub(super) fn stateless_tag(&self, request: &Request) -> String {
        let mut hasher = self.hash.build_hasher();
        for name in ["Via", "From", "Call-ID", "CSeq"] {
            request.headers.get(name).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}
