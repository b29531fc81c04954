//! Probes: clusters of packets sent faster than the estimate, to find out whether more passes.
//!
//! A cluster has a start and a target rate. Padding fills what media does not. All packets sent
//! meanwhile belong to it.

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

use super::{DataRate, PacketResult, SentLog};

/// The least packets of a cluster.
const PACKETS: u64 = 6;
/// A cluster that is not complete this long after its time is abandoned.
const GIVE_UP: Duration = Duration::from_millis(400);
/// The longest wait for feedback.
const AWAITED: Duration = Duration::from_secs(1);
/// The time between two bursts of padding.
const BURST: Duration = Duration::from_millis(5);
/// The share of packets, and of bytes, that has to be reported.
const REPORTED: f64 = 0.8;
/// Arrivals faster than sending by this factor were held up at first.
const NOT_HELD_UP: f64 = 1.2;
/// The last packet waits longest in a queue that a cluster fills. If it waited this much less than
/// another, something else filled the queue.
const CLEARER: Duration = Duration::from_millis(5);
/// The most packets that are examined.
const MOST_SEEN: usize = 1_024;
/// A packet represents the whole cluster if it left after this share of it, ...
const LATE: f64 = 0.6;
/// ... or within this time after it.
const AFTER: Duration = Duration::from_millis(30);
/// Below this share of the sending rate, the link was full. A little less is then safe.
const FULL: f64 = 0.9;
const SAFE: f64 = 0.95;

/// Padding to send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// Its bytes, headers included. A little more does no harm.
    pub bytes: usize,
}

/// The result of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeResult {
    /// The target rate.
    pub target: DataRate,
    /// The rate that passed. `None` if too little was reported.
    pub passed: Option<DataRate>,
    /// The rate may have been much higher: the receiver stood still.
    pub is_unclear: bool,
    /// The link was full and would not have passed more.
    pub is_full: bool,
}

/// The cluster that is being sent or awaited.
#[derive(Debug)]
pub(super) struct Cluster {
    target: DataRate,
    duration: Duration,
    state: State,
    began: Instant,
    /// Bytes and packets sent before it.
    bytes_before: u64,
    packets_before: u64,
    first: SeqNo,
    seen: Vec<Seen>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Sending {
        next: Instant,
    },
    Awaited {
        last: SeqNo,
        bytes: u64,
        packets: u64,
        until: Instant,
    },
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    seq: SeqNo,
    sent: Duration,
    waited: Duration,
    bytes: u32,
}

impl Cluster {
    /// Starts a cluster of `target` that lasts at least `duration`. `room` is the memory of an
    /// earlier one.
    pub fn begin(
        (target, duration): (DataRate, Duration),
        log: &SentLog,
        mut room: Vec<Seen>,
        now: Instant,
    ) -> Self {
        room.clear();
        Self {
            target,
            duration,
            state: State::Sending { next: now },
            began: now,
            bytes_before: log.bytes(),
            packets_before: log.packets(),
            first: log.last().map_or(SeqNo(0), |last| SeqNo(last.0 + 1)),
            seen: room,
        }
    }

    /// Returns when [`Cluster::padding`] or [`Cluster::result`] is due.
    pub fn poll_timeout(&self) -> Instant {
        match self.state {
            State::Sending { next } => next,
            State::Awaited { until, .. } => until,
        }
    }

    /// Returns the padding that is due.
    pub fn padding(&mut self, log: &SentLog, now: Instant) -> Option<Padding> {
        let State::Sending { next } = &mut self.state else {
            return None;
        };
        if *next > now {
            return None;
        }
        *next = now + BURST;
        let elapsed = now.saturating_duration_since(self.began);
        let bytes = log.bytes().saturating_sub(self.bytes_before);
        let packets = log.packets().saturating_sub(self.packets_before);
        if (elapsed >= self.duration && packets >= PACKETS) || elapsed >= self.duration + GIVE_UP {
            let last = log.last().unwrap_or(self.first);
            let until = now + AWAITED;
            self.state = State::Awaited {
                last,
                bytes,
                packets,
                until,
            };
            return None;
        }
        let due = self.target.bytes_in(elapsed + BURST);
        let bytes = usize::try_from(due.saturating_sub(bytes)).unwrap_or(0);
        (bytes > 0).then_some(Padding { bytes })
    }

    /// Takes a reported packet, and its waiting time if it arrived.
    pub fn reported(&mut self, packet: &PacketResult, waited: Option<Duration>) {
        let Some(waited) = waited else { return };
        if packet.seq >= self.first && self.seen.len() < MOST_SEEN {
            self.seen.push(Seen {
                seq: packet.seq,
                sent: packet.sent,
                waited,
                bytes: packet.bytes,
            });
        }
    }

    /// Returns the result once it is known or can no longer become known.
    pub fn result(&mut self, now: Instant) -> Option<ProbeResult> {
        let State::Awaited {
            last,
            bytes,
            packets,
            until,
        } = self.state
        else {
            return None;
        };
        let highest = self.seen.iter().map(|seen| seen.seq).max();
        if highest.is_none_or(|highest| highest < last) && now < until {
            return None;
        }
        self.seen.sort_unstable_by_key(|seen| seen.seq);
        let (target, outcome) = (self.target, self.outcome(last, packets, bytes));
        let is_full =
            |(passed, is_unclear): (DataRate, bool)| !is_unclear && passed < target.times(FULL);
        Some(ProbeResult {
            target,
            passed: outcome.map(|(passed, _)| passed),
            is_unclear: outcome.is_some_and(|(_, is_unclear)| is_unclear),
            is_full: outcome.is_some_and(is_full),
        })
    }

    /// Returns the memory for the next cluster.
    pub fn into_room(self) -> Vec<Seen> {
        self.seen
    }

    /// Returns the rate that passed at least, and whether it says little because the receiver stood
    /// still.
    ///
    /// Packets do not overtake each other, so a packet's arrival means that all before it have left
    /// the queue. Each of the last packets thus gives a rate, and the highest one counts. Other
    /// delays were not caused by the link.
    fn outcome(&self, last: SeqNo, packets: u64, bytes: u64) -> Option<(DataRate, bool)> {
        let end = self.seen.partition_point(|seen| seen.seq <= last);
        let cluster = self.seen.get(..end)?;
        let seen_bytes: u64 = cluster.iter().map(|seen| u64::from(seen.bytes)).sum();
        let enough = packets >= PACKETS
            && cluster.len() as f64 >= packets as f64 * REPORTED
            && seen_bytes as f64 >= bytes as f64 * REPORTED;
        let (first, latest) = (cluster.first()?, cluster.last()?);
        if !enough {
            return None;
        }
        let time = latest.sent.saturating_sub(first.sent);
        let sent = DataRate::of(seen_bytes.saturating_sub(latest.bytes.into()), time)?;
        let (late, too_late) = (first.sent + time.mul_f64(LATE), latest.sent + AFTER);
        let mut passed = DataRate::ZERO;
        let mut before = 0_u64;
        for seen in &self.seen {
            if seen.seq <= last {
                before += u64::from(seen.bytes);
            }
            if seen.sent >= late && seen.sent <= too_late {
                let took = seen.sent.saturating_sub(first.sent) + seen.waited;
                let before = before.saturating_sub(first.bytes.into());
                passed = passed.max(DataRate::of(before, took).unwrap_or_default());
            }
        }
        // If there was a queue before, the time from the first arrival to the last says more,
        // unless the first packets were held up.
        let arrival = |seen: &Seen| seen.sent + seen.waited;
        let took = arrival(latest).saturating_sub(arrival(first));
        let arrived = DataRate::of(seen_bytes.saturating_sub(first.bytes.into()), took);
        let arrived = arrived.filter(|arrived| *arrived <= sent.times(NOT_HELD_UP));
        let passed = passed.max(arrived.unwrap_or_default());
        if passed >= sent.times(FULL) {
            return Some((passed.min(sent), false));
        }
        let longest = cluster.iter().map(|seen| seen.waited).max()?;
        let is_unclear = latest.waited + CLEARER < longest;
        Some((passed.times(SAFE), is_unclear))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const DURATION: Duration = Duration::from_millis(40);

    /// Sends a cluster of 1 Mbit/s in packets of 300 bytes, each of which takes `each` to arrive.
    fn probe(each: Duration, lost: impl Fn(u64) -> bool) -> ProbeResult {
        probe_busy(each, lost, |arrival| arrival)
    }

    /// Does the same with a receiver that reads later than packets arrive.
    fn probe_busy(
        each: Duration,
        lost: impl Fn(u64) -> bool,
        read: impl Fn(Duration) -> Duration,
    ) -> ProbeResult {
        let start = Instant::now();
        let mut log = SentLog::new(start);
        let mut cluster =
            Cluster::begin((DataRate::kbps(1_000), DURATION), &log, Vec::new(), start);
        let (mut now, mut seq, mut arrival) = (start, 0_u16, Duration::ZERO);
        let mut sent = Vec::new();
        while let State::Sending { next } = cluster.state {
            now = next.max(now);
            let Some(padding) = cluster.padding(&log, now) else {
                continue;
            };
            for _ in 0..padding.bytes.div_ceil(300) {
                log.record(seq, 300, now);
                arrival = arrival.max(now - start) + each;
                sent.push((seq, arrival));
                seq += 1;
            }
        }
        assert!(now - start <= DURATION + BURST, "{:?}", now - start);
        assert_eq!(cluster.result(now), None);
        for (seq, arrival) in sent {
            let arrival = (!lost(seq.into())).then(|| read(arrival));
            let reported = log.report(seq, arrival.is_some(), now).unwrap();
            let packet = PacketResult::new(reported, arrival);
            cluster.reported(&packet, arrival.map(|at| at.saturating_sub(packet.sent)));
        }
        cluster.result(now + AWAITED).unwrap()
    }

    #[test]
    fn a_link_with_room_passes_the_target() {
        let result = probe(Duration::from_micros(100), |_| false);
        let passed = result.passed.unwrap().as_bps();
        assert!((900_000..1_200_000).contains(&passed), "{passed}");
    }

    #[test]
    fn a_link_without_room_shows_what_it_carries() {
        let result = probe(DataRate::kbps(400).time_for(300), |_| false);
        let passed = result.passed.unwrap().as_bps();
        assert!((350_000..400_000).contains(&passed), "{passed}");
    }

    #[test]
    fn a_cluster_of_which_much_is_lost_says_nothing() {
        let result = probe(Duration::from_micros(100), |seq| seq % 3 == 0);
        assert_eq!(result.passed, None);
        assert!(
            probe(Duration::from_micros(100), |seq| seq == 3)
                .passed
                .is_some()
        );
    }

    #[test]
    fn a_receiver_that_stands_still_meanwhile_hides_nothing() {
        let ms = Duration::from_millis;
        let stall = |from: u64, to: u64| {
            move |arrival: Duration| {
                if (ms(from)..ms(to)).contains(&arrival) {
                    ms(to)
                } else {
                    arrival
                }
            }
        };
        let each = Duration::from_micros(100);
        for (from, to) in [(0, 15), (10, 30), (5, 38)] {
            let result = probe_busy(each, |_| false, stall(from, to));
            let passed = result.passed.unwrap().as_bps();
            assert!((900_000..1_200_000).contains(&passed), "{from} {passed}");
        }
        let result = probe_busy(each, |_| false, stall(10, 90));
        assert!(result.is_unclear);
        let full = DataRate::kbps(400).time_for(300);
        assert!(!probe_busy(full, |_| false, |arrival| arrival).is_unclear);
    }
}
