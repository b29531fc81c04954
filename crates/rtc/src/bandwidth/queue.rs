//! The waiting time of packets on the way: the delay above the lowest recent one.

use std::collections::VecDeque;
use std::time::Duration;

use super::PacketResult;

/// The periods over which the lowest delay counts, so that longer routes and clock drift are
/// forgotten after a while.
const PERIODS: usize = 6;
const PERIOD: Duration = Duration::from_secs(5);
/// The least wait of all packets within this time is a standing queue. Frames are bursts, after
/// which the queue is empty again.
const STAYS: Duration = Duration::from_millis(250);

/// The queue of the way, from the delays between sending and arrival. The two clocks differ by an
/// unknown constant, so only differences count.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The start and the lowest delay of each period, in microseconds.
    least: VecDeque<(Duration, i64)>,
    /// The same for the last reports.
    recent: VecDeque<(Duration, i64)>,
    delay: Duration,
    before: Duration,
}

impl Queue {
    /// Takes the packets of a feedback message. The wait of the last one counts.
    pub fn push(&mut self, packets: &[PacketResult]) {
        let Some((last, arrival)) = packets
            .iter()
            .filter_map(|packet| Some((packet, packet.arrival?)))
            .max_by_key(|(packet, _)| packet.seq)
        else {
            return;
        };
        let delays = packets
            .iter()
            .filter_map(|packet| Some(micros(packet.arrival?) - micros(packet.sent)));
        let Some(least) = delays.min() else { return };
        match self.least.back_mut() {
            Some((since, period)) if last.sent.saturating_sub(*since) < PERIOD => {
                *period = least.min(*period);
            }
            _ => {
                if self.least.len() == PERIODS {
                    self.least.pop_front();
                }
                if self.least.is_empty() {
                    // Packets are being relayed when it would grow.
                    self.least.reserve_exact(PERIODS);
                }
                self.least.push_back((last.sent, least));
            }
        }
        self.recent.push_back((last.sent, least));
        while let Some((at, _)) = self.recent.front()
            && last.sent.saturating_sub(*at) > STAYS
        {
            self.recent.pop_front();
        }
        self.before = self.delay;
        self.delay = self.waited(last.sent, arrival);
    }

    /// Returns the wait of a packet.
    pub fn waited(&self, sent: Duration, arrival: Duration) -> Duration {
        self.above_least(micros(arrival) - micros(sent))
    }

    /// Returns the least wait of recent packets. All flows that share the queue see the same,
    /// whatever they send.
    pub fn standing(&self) -> Duration {
        let least = self.recent.iter().map(|(_, delay)| *delay).min();
        least.map_or(Duration::ZERO, |least| self.above_least(least))
    }

    fn above_least(&self, delay: i64) -> Duration {
        let base = self.least.iter().map(|(_, delay)| *delay).min();
        let above = base.map_or(0, |base| delay - base);
        Duration::from_micros(u64::try_from(above).unwrap_or(0))
    }

    /// Returns whether the queue is at least as long as before.
    pub fn grows(&self) -> bool {
        self.delay >= self.before
    }

    /// Returns the wait of the last packets.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Takes the current delay as the lowest one, since the route may have changed.
    pub fn rebase(&mut self) {
        *self = Self::default();
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(seq: u64, sent: u64, arrival: u64) -> PacketResult {
        PacketResult {
            seq: portunus_rtp::SeqNo(seq),
            sent: Duration::from_millis(sent),
            arrival: Some(Duration::from_millis(arrival)),
            ..PacketResult::default()
        }
    }

    #[test]
    fn the_delay_above_the_least_counts_whatever_the_clocks_say() {
        let mut queue = Queue::default();
        queue.push(&[packet(0, 100_000, 7)]);
        assert_eq!(queue.delay(), Duration::ZERO);
        queue.push(&[packet(1, 100_100, 107), packet(2, 100_110, 417)]);
        assert_eq!(queue.delay(), Duration::from_millis(300));
        queue.push(&[packet(3, 100_200, 207)]);
        assert_eq!(queue.delay(), Duration::ZERO);
    }

    #[test]
    fn a_queue_stands_when_it_is_not_gone_between_frames() {
        let mut queue = Queue::default();
        // The waits of the packets of each 100 ms, and the standing queue after them.
        for (n, waits, stands) in [
            (0, [0, 0], 0),
            (1, [5, 60], 0),
            (2, [60, 30], 0),
            (3, [90, 40], 5),
            (4, [70, 50], 30),
        ] {
            let sent = [1_000 + n * 100, 1_050 + n * 100];
            queue.push(&[
                packet(n * 2, sent[0], sent[0] + waits[0]),
                packet(n * 2 + 1, sent[1], sent[1] + waits[1]),
            ]);
            assert_eq!(queue.standing(), Duration::from_millis(stands), "{n}");
        }
    }

    #[test]
    fn a_longer_route_is_the_new_least_after_a_while() {
        let mut queue = Queue::default();
        let mut longest = 0;
        for n in 0..600 {
            let more = if n < 100 { 0 } else { 80 };
            queue.push(&[packet(n, n * 100, n * 100 + 20 + more)]);
            if queue.delay() > Duration::ZERO {
                longest = n;
            }
        }
        assert!((340..450).contains(&longest), "{longest}");
    }
}
