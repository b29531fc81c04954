//! Checks of what decrypting participants receive: order, loss, repetition and delay.

use std::time::Duration;

use portunus_rtp::Ssrc;
use smallvec::SmallVec;

use crate::source::{Delayed, STREAMS, Stamp};

/// Packets behind the newest one that can still be told from repetitions.
const MEMORY: u64 = 64;

/// The findings of decrypting participants in a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// Packets that were decrypted and had a stamp.
    pub packets: u64,
    /// Numbers that are missing and have not arrived late.
    pub lost: i64,
    /// Packets that arrived after a later one.
    pub reordered: u64,
    /// Packets that arrived before.
    pub repeated: u64,
    /// Packets that were not authentic or had no stamp.
    pub strange: u64,
    /// The delay of each packet.
    pub delays: Vec<Delayed>,
}

impl Findings {
    /// Adds the findings of others.
    pub fn merge(&mut self, other: Findings) {
        self.packets += other.packets;
        self.lost += other.lost;
        self.reordered += other.reordered;
        self.repeated += other.repeated;
        self.strange += other.strange;
        self.delays.extend(other.delays);
    }
}

/// One participant's view of the source's streams.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    streams: SmallVec<[Received; 2]>,
}

/// An SSRC from the server.
#[derive(Debug)]
struct Received {
    ssrc: Ssrc,
    /// The source's stream that it carries now. The server may switch the simulcast layer.
    stream: u8,
    order: Order,
}

/// The numbers that arrived.
#[derive(Debug)]
pub(super) struct Order {
    newest: u64,
    /// Bit n: the packet `newest - n` has arrived.
    seen: u64,
}

impl Checker {
    /// Takes the payload of a packet of `ssrc` that arrived at `arrived`.
    pub(crate) fn take(
        &mut self,
        ssrc: Ssrc,
        payload: &[u8],
        arrived: Duration,
        findings: &mut Findings,
    ) {
        let stamp = Stamp::read(payload).filter(|stamp| usize::from(stamp.stream) < STREAMS);
        let Some(stamp) = stamp else {
            findings.strange += 1;
            return;
        };
        findings.packets += 1;
        // Negative only if the clock was set in between.
        let delay_ns = arrived.as_nanos() as i128 - stamp.sent.as_nanos() as i128;
        findings.delays.push(Delayed {
            sent: stamp.sent,
            us: delay_ns as f64 / 1e3,
        });
        let first = Order::starting(stamp.number);
        match self.streams.iter_mut().find(|stream| stream.ssrc == ssrc) {
            Some(received) if received.stream == stamp.stream => {
                received.order.take(stamp.number, findings);
            }
            Some(received) => {
                received.stream = stamp.stream;
                received.order = first;
            }
            None => self.streams.push(Received {
                ssrc,
                stream: stamp.stream,
                order: first,
            }),
        }
    }
}

impl Order {
    /// Starts with this number. Earlier packets do not count as missing.
    pub(super) fn starting(number: u64) -> Self {
        Self {
            newest: number,
            seen: u64::MAX,
        }
    }

    pub(super) fn take(&mut self, number: u64, findings: &mut Findings) {
        if number > self.newest {
            let ahead = number - self.newest;
            findings.lost += i64::try_from(ahead - 1).unwrap_or(0);
            self.seen = if ahead < MEMORY {
                self.seen << ahead
            } else {
                0
            } | 1;
            self.newest = number;
            return;
        }
        let behind = self.newest - number;
        let bit = if behind < MEMORY { 1 << behind } else { 0 };
        if bit != 0 && self.seen & bit == 0 {
            self.seen |= bit;
            findings.lost -= 1;
            findings.reordered += 1;
        } else {
            findings.repeated += 1;
        }
    }
}

/// The checks of a participant, and the time of its last packet.
#[derive(Debug, Default)]
pub(super) struct Check {
    checker: Checker,
    pub(super) last: Option<Duration>,
    /// The numbers that this participant misses.
    pub(super) lost: i64,
    /// The longest wait for a packet that had been sent, since it was taken.
    longest_wait: Duration,
}

impl Check {
    /// Returns the time since the last packet.
    pub(super) fn take(
        &mut self,
        ssrc: Ssrc,
        payload: &[u8],
        arrived: Duration,
        findings: &mut Findings,
    ) -> Option<Duration> {
        let lost = findings.lost;
        self.checker.take(ssrc, payload, arrived, findings);
        let newly_lost = findings.lost - lost;
        self.lost += newly_lost;
        let last = self.last.replace(arrived)?;
        let gap = arrived.saturating_sub(last);
        // Without a loss, nothing was on its way before this packet was sent.
        let wait = match Stamp::read(payload).filter(|_| newly_lost <= 0) {
            Some(stamp) => gap.min(arrived.saturating_sub(stamp.sent)),
            None => gap,
        };
        self.longest_wait = self.longest_wait.max(wait);
        Some(gap)
    }

    /// Returns the longest wait for a packet that had been sent, since the last call. A source that
    /// pauses does not make its viewers wait.
    pub(super) fn take_longest_wait(&mut self) -> Duration {
        std::mem::take(&mut self.longest_wait)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn check(numbers: &[u64]) -> Findings {
        let (mut checker, mut findings) = (Checker::default(), Findings::default());
        for number in numbers {
            let mut payload = [0; 20];
            let sent = Duration::from_secs(1_000);
            let stamp = Stamp {
                stream: 0,
                number: *number,
                sent,
            };
            assert!(stamp.write(&mut payload));
            let arrived = sent + Duration::from_micros(150);
            checker.take(Ssrc(7), &payload, arrived, &mut findings);
        }
        findings
    }

    #[test]
    fn loss_order_and_repetition_are_told_apart() {
        let findings = check(&[5, 6, 9, 8, 10, 10, 4, 200]);
        assert_eq!(findings.packets, 8);
        assert_eq!(findings.lost, 1 + 189);
        assert_eq!((findings.reordered, findings.repeated), (1, 2));
        let delay = findings.delays.first().unwrap().us;
        assert!((delay - 150.0).abs() < 1.0, "{delay}");
    }

    /// Takes packets by their numbers, the times when they were sent, and their arrivals, in ms.
    /// Returns the longest wait.
    fn longest_wait(check: &mut Check, packets: &[(u64, u64, u64)]) -> Duration {
        let clock = |ms| Duration::from_secs(1_000) + Duration::from_millis(ms);
        for (number, sent, arrived) in packets {
            let mut payload = [0; 20];
            let stamp = Stamp {
                stream: 0,
                number: *number,
                sent: clock(*sent),
            };
            assert!(stamp.write(&mut payload));
            let mut findings = Findings::default();
            check.take(Ssrc(7), &payload, clock(*arrived), &mut findings);
        }
        check.take_longest_wait()
    }

    #[test]
    fn a_wait_is_for_packets_that_were_sent() {
        let (mut check, ms) = (Check::default(), Duration::from_millis);
        // The source pauses for a second.
        let paused = [(1, 0, 1), (2, 20, 22), (3, 1_020, 1_025), (4, 1_040, 1_043)];
        assert_eq!(longest_wait(&mut check, &paused), ms(5));
        // Packets are held up.
        assert_eq!(longest_wait(&mut check, &[(5, 1_060, 1_960)]), ms(900));
        // Packets are lost.
        assert_eq!(longest_wait(&mut check, &[(50, 2_960, 2_961)]), ms(1_001));
        assert_eq!(check.take_longest_wait(), Duration::ZERO);
    }

    #[test]
    fn what_has_no_stamp_is_strange() {
        let (mut checker, mut findings) = (Checker::default(), Findings::default());
        checker.take(Ssrc(7), &[1, 2, 3], Duration::ZERO, &mut findings);
        let mut payload = [0; 20];
        let sent = Duration::ZERO;
        assert!(
            Stamp {
                stream: 9,
                number: 0,
                sent
            }
            .write(&mut payload)
        );
        checker.take(Ssrc(7), &payload, Duration::ZERO, &mut findings);
        assert_eq!((findings.strange, findings.packets), (2, 0));
    }
}
