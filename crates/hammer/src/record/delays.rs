//! The distribution of delays.

use serde::{Deserialize, Serialize};

/// The distribution of a set of delays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// The number of measured delays.
    pub count: u64,
    /// The smallest.
    pub min_us: f64,
    /// Half are below it.
    pub p50_us: f64,
    /// 90 % are below it.
    pub p90_us: f64,
    /// 99 % are below it.
    pub p99_us: f64,
    /// The largest.
    pub max_us: f64,
}

/// Packets that no stall of a watched core can have delayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Calm {
    /// Their share of all packets with a known delay.
    pub share: f64,
    /// The delay from the source's sending to a participant's receiving. `None` without such
    /// packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
}

impl Delays {
    /// Sorts `delays_us` and computes the percentiles. Returns `None` for an empty slice.
    pub fn of(delays_us: &mut [f64]) -> Option<Self> {
        delays_us.sort_unstable_by(f64::total_cmp);
        let last = delays_us.len().checked_sub(1)?;
        let at = |share: f64| {
            delays_us
                .get((share * last as f64).round() as usize)
                .copied()
        };
        Some(Self {
            count: delays_us.len() as u64,
            min_us: at(0.0)?,
            p50_us: at(0.5)?,
            p90_us: at(0.9)?,
            p99_us: at(0.99)?,
            max_us: at(1.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn percentiles_of_a_known_set() {
        let mut delays: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let delays = Delays::of(&mut delays).unwrap();
        assert_eq!(
            (delays.min_us, delays.max_us, delays.count),
            (0.0, 100.0, 101)
        );
        assert_eq!(
            (delays.p50_us, delays.p90_us, delays.p99_us),
            (50.0, 90.0, 99.0)
        );
        assert_eq!(Delays::of(&mut []), None);
    }
}
