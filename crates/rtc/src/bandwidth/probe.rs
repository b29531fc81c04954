//! Probes: clusters of packets sent faster than the estimate, to find out whether more would pass.
//!
//! Of a cluster is known when it began and how fast it is to be; what media does not fill is filled
//! with padding. All packets that leave meanwhile belong to it.

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

use super::{DataRate, PacketResult, SentLog};

/// A cluster has so many packets, at least.
const PACKETS: u64 = 6;
/// A cluster that could not be sent so long after its time is given up.
const GIVE_UP: Duration = Duration::from_millis(400);
/// Feedback that has not come after this time will not come.
const AWAITED: Duration = Duration::from_secs(1);
/// Between two bursts of padding.
const BURST: Duration = Duration::from_millis(5);
/// Share of the packets, and of the bytes, that have to be reported.
const REPORTED: f64 = 0.8;
/// What arrives faster than this times the sending speed was held up on the way.
const MAX_SPEEDUP: f64 = 2.0;
/// A packet that waited no longer found no queue. It tells of the whole cluster if it left after this share
/// of it.
const NO_QUEUE: Duration = Duration::from_millis(2);
const LATE: f64 = 0.8;
/// Below this share of the sending speed the link was full; a little less is then safe.
const FULL: f64 = 0.9;
const SAFE: f64 = 0.95;

/// Padding that is to leave now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// How many bytes, headers included; a little more does not matter.
    pub bytes: usize,
}

/// What a cluster found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeResult {
    /// How fast it was to be.
    pub target: DataRate,
    /// How much passed; none if too little was reported.
    pub passed: Option<DataRate>,
}

/// The cluster that is being sent or awaited.
#[derive(Debug)]
pub(super) struct Cluster {
    target: DataRate,
    duration: Duration,
    state: State,
    began: Instant,
    /// Bytes and packets that had been sent before.
    bytes_before: u64,
    packets_before: u64,
    first: SeqNo,
    seen: Seen,
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

/// What was reported of a cluster.
#[derive(Debug, Default)]
struct Seen {
    packets: u64,
    bytes: u64,
    /// Time of the first and last packet sent, with the size of the last.
    sent: Option<(Duration, Duration, u32)>,
    /// Time of the first and last arrival, with the size of the first.
    arrived: Option<(Duration, Duration, u32)>,
    highest: Option<SeqNo>,
    /// When the last packet left that did not wait on the way.
    clear: Option<Duration>,
}

impl Cluster {
    /// A cluster of `target` that begins now and lasts for `duration` at least.
    pub fn begin(target: DataRate, duration: Duration, log: &SentLog, now: Instant) -> Self {
        Self {
            target,
            duration,
            state: State::Sending { next: now },
            began: now,
            bytes_before: log.bytes(),
            packets_before: log.packets(),
            first: log.last().map_or(SeqNo(0), |last| SeqNo(last.0 + 1)),
            seen: Seen::default(),
        }
    }

    /// When [`Cluster::padding`] or [`Cluster::result`] has something to say.
    pub fn poll_timeout(&self) -> Instant {
        match self.state {
            State::Sending { next } => next,
            State::Awaited { until, .. } => until,
        }
    }

    /// The padding that is due.
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

    /// Takes a packet that was reported, and how long it waited on the way if it arrived.
    pub fn reported(&mut self, packet: &PacketResult, waited: Option<Duration>) {
        let last = match self.state {
            State::Sending { .. } => SeqNo(u64::MAX),
            State::Awaited { last, .. } => last,
        };
        if packet.seq < self.first || packet.seq > last {
            return;
        }
        self.seen.highest = self.seen.highest.max(Some(packet.seq));
        if let Some(arrival) = packet.arrival {
            self.seen.arrived(packet, arrival);
            if waited.is_some_and(|waited| waited <= NO_QUEUE) {
                self.seen.clear = self.seen.clear.max(Some(packet.sent));
            }
        }
    }

    /// The outcome, once it is known or will not be.
    pub fn result(&self, now: Instant) -> Option<ProbeResult> {
        let State::Awaited {
            last,
            bytes,
            packets,
            until,
        } = self.state
        else {
            return None;
        };
        let complete = self.seen.highest.is_some_and(|highest| highest >= last);
        if !complete && now < until {
            return None;
        }
        let enough = packets >= PACKETS
            && self.seen.packets as f64 >= packets as f64 * REPORTED
            && self.seen.bytes as f64 >= bytes as f64 * REPORTED;
        let passed = enough.then(|| self.seen.rate()).flatten();
        let target = self.target;
        Some(ProbeResult { target, passed })
    }
}

impl Seen {
    fn arrived(&mut self, packet: &PacketResult, arrival: Duration) {
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
        let (sent, bytes) = (packet.sent, packet.bytes);
        let span = self.sent.get_or_insert((sent, sent, bytes));
        span.0 = span.0.min(sent);
        if sent >= span.1 {
            (span.1, span.2) = (sent, bytes);
        }
        let span = self.arrived.get_or_insert((arrival, arrival, bytes));
        span.1 = span.1.max(arrival);
        if arrival < span.0 {
            (span.0, span.2) = (arrival, bytes);
        }
    }

    /// A packet that does not wait finds the queue empty: all that left before it had passed. What took
    /// longer meanwhile was a burst of others.
    fn ends_clear(&self) -> bool {
        let late = self
            .sent
            .map(|(first, last, _)| first + (last.saturating_sub(first)).mul_f64(LATE));
        late.is_some_and(|late| self.clear >= Some(late))
    }

    fn rate(&self) -> Option<DataRate> {
        let (from, to, last) = self.sent?;
        let sent = DataRate::of(
            self.bytes.saturating_sub(last.into()),
            to.checked_sub(from)?,
        )?;
        let (from, to, first) = self.arrived?;
        let arrived = DataRate::of(
            self.bytes.saturating_sub(first.into()),
            to.checked_sub(from)?,
        )?;
        if arrived > sent.times(MAX_SPEEDUP) {
            return None;
        }
        if self.ends_clear() {
            // That may have been a pause of the others, though.
            return Some((sent + arrived.min(sent)).times(0.5));
        }
        Some(if arrived < sent.times(FULL) {
            arrived.times(SAFE)
        } else {
            sent.min(arrived)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const DURATION: Duration = Duration::from_millis(40);

    /// Sends a cluster of 1 Mbit/s in packets of 300 bytes, of which each takes `each` to arrive.
    fn probe(each: Duration, lost: impl Fn(u64) -> bool) -> ProbeResult {
        let start = Instant::now();
        let mut log = SentLog::new(start);
        let mut cluster = Cluster::begin(DataRate::kbps(1_000), DURATION, &log, start);
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
            let arrival = (!lost(seq.into())).then_some(arrival);
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
        assert!((360_000..400_000).contains(&passed), "{passed}");
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
}
