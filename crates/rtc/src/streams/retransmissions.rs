//! Recent retransmissions of an outgoing stream.

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

/// The retransmissions remembered, by the low bits of their numbers: half a second of a stream of
/// 2.5 Mbit/s. Forgotten packets may be retransmitted once more.
const PLACES: usize = 128;
/// The longest wait between two retransmissions of a packet, in round trips and in time. Reports
/// may be wrong, and receivers repeat requests for a second or less.
const ROUND_TRIPS: u8 = 3;
const MAX_WAIT: Duration = Duration::from_millis(500);
/// After this time, a request is for another packet with this number, or a new request.
const FORGOTTEN: Duration = Duration::from_secs(1);

/// Packets sent for each one that may be retransmitted repeatedly without a longer wait, and the
/// most of these at once. Random loss causes no more.
const EARNED_BY: u64 = 16;
const MAX_EARNED: u64 = 16;

/// When packets were retransmitted, and how often. A request within a round trip is ignored, since
/// the packet is still on its way. If many packets are requested repeatedly, the round trip is
/// longer than assumed because of a full queue, which answers to all requests would keep full. Then
/// packets wait two round trips the second time, and three from then on.
#[derive(Debug)]
pub(super) struct Retransmissions {
    start: Instant,
    places: [Place; PLACES],
    /// Sent packets up to which retransmissions without a longer wait have been used.
    earned_until: u64,
    earned: u64,
}

/// The number of a packet as sent, the time of its last retransmission in ms, and their count.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    wire: u16,
    times: u8,
    at: u32,
}

impl Retransmissions {
    /// Starts without retransmissions.
    pub fn new(now: Instant) -> Self {
        Self {
            start: now,
            places: [Place::default(); PLACES],
            earned_until: 0,
            earned: 0,
        }
    }

    /// Returns whether a requested packet may be retransmitted, and records it. `sent` is the
    /// number of packets so far.
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
        let mut retransmissions = Retransmissions::new(start);
        let mut left = |seq, round_trip, period: std::ops::Range<u64>| -> Vec<u64> {
            let round_trip = Duration::from_millis(round_trip);
            let leaves = |at: &u64| {
                retransmissions.leaves(
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
        let mut retransmissions = Retransmissions::new(start);
        let mut left = |sent| {
            let at = |n: &u32| start + round_trip * *n;
            let leaves = |n: &u32| retransmissions.leaves(SeqNo(7), sent, round_trip, at(n));
            (0..12).filter(leaves).collect::<Vec<_>>()
        };
        assert_eq!(left(2 * EARNED_BY), [0, 1, 2, 3, 6, 9]);
    }

    #[test]
    fn a_burst_that_was_lost_leaves_again_once() {
        let start = Instant::now();
        let mut retransmissions = Retransmissions::new(start);
        let mut left = |numbers: std::ops::Range<u64>| {
            let round_trip = Duration::from_millis(40);
            let leave =
                numbers.filter(|seq| retransmissions.leaves(SeqNo(*seq), 0, round_trip, start));
            leave.count()
        };
        assert_eq!(left(65_500..65_600), 100);
        assert_eq!(left(65_500..65_600), 0);
        let next = 65_600 + PLACES as u64;
        assert_eq!(left(65_600..next), PLACES, "they take the places");
        assert_eq!(left(65_500..65_600), 100);
    }
}
