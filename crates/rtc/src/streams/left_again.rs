//! Which packets of an outgoing stream left again lately.

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

/// Packets that are remembered, by the low bits of their numbers: what a stream of 2.5 Mbit/s sends in half a second. Of
/// others a repetition may leave once more.
const PLACES: usize = 128;
/// Between two repetitions of a packet at most: so many round trips, and so long. Reports may be wrong, and receivers ask for a
/// second or less.
const ROUND_TRIPS: u8 = 3;
const MAX_WAIT: Duration = Duration::from_millis(500);
/// What is asked for so long after it left again is another packet, or is asked for anew.
const FORGOTTEN: Duration = Duration::from_secs(1);

/// Packets that were sent for each that may leave several times without waiting for longer, and how many of these may at
/// once: where packets are lost at random, there are no more.
const EARNED_BY: u64 = 16;
const MAX_EARNED: u64 = 16;

/// When packets left again, and how often. What is asked for within a round trip of that is still on its way. If many are asked
/// for again and again, the round trip is longer than it was taken for, as a queue is full, or what leaves finds no room in
/// that: the answers to all requests would keep it so. Hence packets wait for two round trips the second time then, and for
/// three from then on.
#[derive(Debug)]
pub(super) struct LeftAgain {
    start: Instant,
    places: [Place; PLACES],
    /// Packets sent that count for those that need not wait for longer.
    earned_until: u64,
    earned: u64,
}

/// The number of a packet as sent, when it left again last, in milliseconds, and how often it did so far.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    wire: u16,
    times: u8,
    at: u32,
}

impl LeftAgain {
    /// None left again.
    pub fn new(now: Instant) -> Self {
        Self {
            start: now,
            places: [Place::default(); PLACES],
            earned_until: 0,
            earned: 0,
        }
    }

    /// Whether a packet that is asked for may leave again; if so, it does. `sent`: packets so far.
    pub fn leaves(&mut self, seq: SeqNo, sent: u64, round_trip: Duration, now: Instant) -> bool {
        let earned = sent.saturating_sub(self.earned_until);
        self.earned_until = sent;
        self.earned = self
            .earned
            .saturating_add(earned)
            .min(MAX_EARNED * EARNED_BY);
        let wire = seq.wire();
        let at = now.saturating_duration_since(self.start).as_millis() as u32;
        let Some(place) = self.places.get_mut(usize::from(wire) % PLACES) else {
            return false;
        };
        let age = Duration::from_millis(at.wrapping_sub(place.at).into());
        let left_lately = place.wire == wire && place.times > 0 && age < FORGOTTEN;
        let times = if left_lately { place.times } else { 0 };
        let round_trip = round_trip.min(MAX_WAIT);
        let has_waited = |wait: Duration| age.as_millis() >= wait.min(MAX_WAIT).as_millis();
        if !has_waited(round_trip * u32::from(times)) {
            let left = self.earned.checked_sub(EARNED_BY);
            let Some(left) = left.filter(|_| has_waited(round_trip)) else {
                return false;
            };
            self.earned = left;
        }
        *place = Place {
            wire,
            times: (times + 1).min(ROUND_TRIPS),
            at,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_leaves_again_after_one_two_and_then_three_round_trips() {
        let start = Instant::now();
        let mut left_again = LeftAgain::new(start);
        let mut left = |seq, round_trip, period: std::ops::Range<u64>| -> Vec<u64> {
            let round_trip = Duration::from_millis(round_trip);
            let leaves = |at: &u64| {
                left_again.leaves(
                    SeqNo(seq),
                    0,
                    round_trip,
                    start + Duration::from_millis(*at),
                )
            };
            period.filter(leaves).collect()
        };
        assert_eq!(left(70_000, 40, 0..500), [0, 40, 120, 240, 360, 480]);
        assert_eq!(left(70_001, 40, 500..560), [500, 540], "another");
        assert_eq!(left(70_001, 0, 560..563), [560, 561, 562]);
        assert_eq!(
            left(70_002, 9_000, 600..2_000),
            [600, 1_100, 1_600],
            "it is not believed"
        );
        assert_eq!(left(70_002, 40, 2_600..2_700), [2_600, 2_640], "forgotten");
    }

    #[test]
    fn a_few_packets_wait_for_one_round_trip_only() {
        let start = Instant::now();
        let round_trip = Duration::from_millis(40);
        let mut left_again = LeftAgain::new(start);
        let mut left = |sent| {
            let at = |n: &u32| start + round_trip * *n;
            let leaves = |n: &u32| left_again.leaves(SeqNo(7), sent, round_trip, at(n));
            (0..12).filter(leaves).collect::<Vec<_>>()
        };
        assert_eq!(left(2 * EARNED_BY), [0, 1, 2, 3, 6, 9]);
    }

    #[test]
    fn a_burst_that_was_lost_leaves_again_once() {
        let start = Instant::now();
        let mut left_again = LeftAgain::new(start);
        let mut left = |numbers: std::ops::Range<u64>| {
            let round_trip = Duration::from_millis(40);
            let leave = numbers.filter(|seq| left_again.leaves(SeqNo(*seq), 0, round_trip, start));
            leave.count()
        };
        assert_eq!(left(65_500..65_600), 100);
        assert_eq!(left(65_500..65_600), 0);
        let next = 65_600 + PLACES as u64;
        assert_eq!(left(65_600..next), PLACES, "they take the places");
        assert_eq!(left(65_500..65_600), 100);
    }
}
