//! One outgoing RTP stream: its numbering, the receiver's reports, and its sender reports.

use std::mem;
use std::time::{Duration, Instant};

use portunus_rtp::{SeqNo, Ssrc};

use super::report::{NtpClock, SenderClock};
use super::retransmissions::Retransmissions;

/// Sender reports remembered until they are answered.
const REPORTS: usize = 3;

/// The most packets that may be requested again at once: as many as are remembered, and later one
/// per packet sent. More are of no use, and a few bytes of requests must not cause megabytes of
/// answers.
const REPEATS: u32 = 1_024;

/// Totals of an outgoing stream. The fields that each packet changes come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SendCounters {
    /// Packets without retransmissions.
    pub packets: u64,
    /// The payload bytes of these.
    pub bytes: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Packets requested again.
    pub nacks: u64,
    /// Packets that the receiver reported lost.
    pub lost: u64,
    /// Keyframe requests of the receiver.
    pub keyframe_requests: u64,
}

/// An outgoing stream with its repair stream. The fields that each packet changes come first.
#[derive(Debug)]
#[repr(C)]
pub struct SendStream {
    rtx: Option<Ssrc>,
    highest: SeqNo,
    last_sent: Option<Instant>,
    last_timestamp: u32,
    /// Packets that may still be requested again.
    repeats: u32,
    counters: SendCounters,
    ssrc: Ssrc,
    next_rtx: SeqNo,
    /// The last sender reports: the middle 32 bits of their NTP time, and when they were sent. A
    /// receiver may answer one while the next is on its way.
    reports: [Option<(u32, Instant)>; REPORTS],
    sent_at_report: u64,
    round_trip: Option<Duration>,
    /// The sender report for the last round trip, and how long the receiver had it.
    answered: (u32, u32),
    jitter: u32,
    /// `None` before the first retransmission.
    retransmissions: Option<Box<Retransmissions>>,
}

/// Consecutive packets of a stream, without retransmissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Burst {
    packets: u64,
    bytes: u64,
    highest: SeqNo,
    timestamp: u32,
}

impl Burst {
    /// Adds a packet: its number and timestamp as sent, and the bytes of its payload.
    #[inline]
    pub fn add(&mut self, seq: SeqNo, timestamp: u32, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
        self.highest = self.highest.max(seq);
        self.timestamp = timestamp;
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the payload bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

/// The contents of a sender report (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderFigures {
    /// The SSRC of the stream.
    pub ssrc: Ssrc,
    /// The NTP time.
    pub ntp: u64,
    /// The timestamp at that time.
    pub timestamp: u32,
    /// Packets sent so far (32 bits on the wire).
    pub packets: u32,
    /// Payload bytes sent so far (32 bits on the wire).
    pub bytes: u32,
}

impl SendStream {
    /// The leading bytes that [`Self::sent`] changes.
    pub(crate) const HEAD: usize =
        mem::offset_of!(Self, counters) + mem::offset_of!(SendCounters, retransmissions);

    /// Makes a stream of `ssrc` that is repaired by `rtx`.
    pub fn new(ssrc: Ssrc, rtx: Option<Ssrc>) -> Self {
        Self {
            ssrc,
            rtx,
            next_rtx: SeqNo(1),
            highest: SeqNo(0),
            last_timestamp: 0,
            last_sent: None,
            reports: [None; REPORTS],
            sent_at_report: 0,
            repeats: REPEATS,
            round_trip: None,
            answered: (0, 0),
            jitter: 0,
            retransmissions: None,
            counters: SendCounters::default(),
        }
    }

    /// Returns the SSRC.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns the SSRC of the repair stream.
    pub fn rtx_ssrc(&self) -> Option<Ssrc> {
        self.rtx
    }

    /// Sets the SSRC of the repair stream after a renegotiation.
    pub fn set_rtx(&mut self, rtx: Option<Ssrc>) {
        self.rtx = rtx;
    }

    /// Counts sent packets.
    pub fn sent(&mut self, burst: &Burst, now: Instant) {
        self.highest = self.highest.max(burst.highest);
        self.last_timestamp = burst.timestamp;
        self.last_sent = Some(now);
        let packets = u32::try_from(burst.packets).unwrap_or(REPEATS);
        self.repeats = self.repeats.saturating_add(packets).min(REPEATS);
        self.counters.packets += burst.packets;
        self.counters.bytes += burst.bytes;
    }

    /// Returns the next number of the repair stream.
    pub fn next_rtx(&mut self) -> SeqNo {
        let seq = self.next_rtx;
        self.next_rtx = SeqNo(seq.0 + 1);
        self.counters.retransmissions += 1;
        seq
    }

    /// Returns the next number for padding, which is sent in the repair stream.
    pub fn next_padding(&mut self) -> SeqNo {
        let seq = self.next_rtx;
        self.next_rtx = SeqNo(seq.0 + 1);
        seq
    }

    /// Returns the timestamp of the last packet.
    pub fn last_timestamp(&self) -> u32 {
        self.last_timestamp
    }

    /// Counts a packet that was retransmitted with its own number.
    pub fn sent_again(&mut self) {
        self.counters.retransmissions += 1;
    }

    /// Takes a retransmission request. Returns the packet's full number if it was sent, if it was
    /// not retransmitted within the last round trips, and if not too many were requested.
    pub fn nacked(&mut self, wire: u16, round_trip: Duration, now: Instant) -> Option<SeqNo> {
        self.counters.nacks += 1;
        let seq = self.highest.nearest(wire);
        if seq > self.highest {
            return None;
        }
        let left = self.repeats.checked_sub(1)?;
        let again = self
            .retransmissions
            .get_or_insert_with(|| Box::new(Retransmissions::new(now)));
        if !again.leaves(seq, self.counters.packets, round_trip, now) {
            return None;
        }
        self.repeats = left;
        Some(seq)
    }

    /// Counts a keyframe request.
    pub fn count_keyframe_request(&mut self) {
        self.counters.keyframe_requests += 1;
    }

    /// Takes a report block of the receiver. Times are the middle 32 bits of NTP time and 1/65,536
    /// s.
    pub fn receiver_report(
        &mut self,
        lost: u32,
        jitter: u32,
        last_sr: u32,
        delay: u32,
        now: Instant,
    ) {
        // It has 24 bits, signed. Repeats can make it negative.
        let signed = ((lost << 8) as i32) >> 8;
        self.counters.lost = signed.max(0) as u64;
        self.jitter = jitter;
        let answered = self.reports.iter().flatten();
        let answered = answered
            .filter(|_| last_sr != 0)
            .find(|(sent, _)| *sent == last_sr);
        if let Some((_, at)) = answered {
            let held = Duration::from_secs_f64(f64::from(delay) / 65_536.0);
            self.answered = (last_sr, delay);
            self.round_trip = Some(now.saturating_duration_since(*at).saturating_sub(held));
        }
    }

    /// Returns the contents of a sender report if packets were sent since the last one.
    ///
    /// `source` is the clock of the relayed stream with its timestamps in this stream's numbering.
    /// Without it, the time of sending counts.
    pub fn report(
        &mut self,
        source: Option<SenderClock>,
        clock_rate: u32,
        clock: &NtpClock,
        now: Instant,
    ) -> Option<SenderFigures> {
        let last_sent = self
            .last_sent
            .filter(|_| self.counters.packets > self.sent_at_report)?;
        self.sent_at_report = self.counters.packets;
        let own = SenderClock {
            ntp: clock.ntp(last_sent),
            timestamp: self.last_timestamp,
            at: last_sent,
        };
        let (ntp, timestamp) = source.unwrap_or(own).at(now, clock_rate);
        self.reports.rotate_right(1);
        if let Some(last) = self.reports.first_mut() {
            *last = Some(((ntp >> 16) as u32, now));
        }
        Some(SenderFigures {
            ssrc: self.ssrc,
            ntp,
            timestamp,
            packets: self.counters.packets as u32,
            bytes: self.counters.bytes as u32,
        })
    }

    /// Returns whether packets were sent since the last sender report.
    pub fn report_pending(&self) -> bool {
        self.counters.packets > self.sent_at_report
    }

    /// Returns the round trip by the last report.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Returns the basis of the round trip: the answered sender report (the middle 32 bits of its
    /// NTP time), and how long the receiver had it, in 1/65,536 s.
    pub fn answered(&self) -> Option<(u32, u32)> {
        self.round_trip.map(|_| self.answered)
    }

    /// Returns when the last packet was sent.
    pub fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }

    /// Returns the receiver's jitter, in timestamp units.
    pub fn remote_jitter(&self) -> u32 {
        self.jitter
    }

    /// Returns the totals.
    pub fn counters(&self) -> SendCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn burst(seq: SeqNo, timestamp: u32, bytes: usize) -> Burst {
        let mut burst = Burst::default();
        burst.add(seq, timestamp, bytes);
        burst
    }

    #[test]
    fn the_round_trip_is_what_the_receiver_did_not_hold() {
        let start = Instant::now();
        let clock = NtpClock::new(start, Duration::ZERO);
        let mut stream = SendStream::new(Ssrc(1), None);
        stream.sent(&burst(SeqNo(5), 9_000, 100), start);
        let report = stream.report(None, 90_000, &clock, start);
        let last_sr = report.map_or(0, |r| (r.ntp >> 16) as u32);
        let now = start + Duration::from_millis(150);
        stream.receiver_report(0xff_ffff, 3, last_sr, 65_536 / 10, now);
        assert_eq!(stream.round_trip().map(|rtt| rtt.as_millis()), Some(50));
        assert_eq!(stream.counters().lost, 0, "a negative loss is none");
        assert!(
            stream.report(None, 90_000, &clock, now).is_none(),
            "nothing was sent since"
        );
    }

    #[test]
    fn only_numbers_that_were_sent_can_be_asked_for() {
        let mut stream = SendStream::new(Ssrc(1), None);
        let now = Instant::now();
        stream.sent(&burst(SeqNo(65_537), 0, 1), now);
        assert_eq!(stream.nacked(65_535, MS, now), Some(SeqNo(65_535)));
        assert_eq!(stream.nacked(9, MS, now), None);
    }

    #[test]
    fn no_more_is_repeated_than_was_sent() {
        let mut stream = SendStream::new(Ssrc(1), None);
        let now = Instant::now();
        stream.sent(&burst(SeqNo(5_000), 0, 1), now);
        let asked = |stream: &mut SendStream| {
            let asked = (0..5_000).filter_map(|wire| stream.nacked(wire, MS, now));
            asked.count()
        };
        assert_eq!(asked(&mut stream), REPEATS as usize);
        for seq in 5_001..5_011 {
            stream.sent(&burst(SeqNo(seq), 0, 1), now);
        }
        assert_eq!(asked(&mut stream), 10);
        assert_eq!(stream.counters().nacks, 10_000);
    }

    #[test]
    fn what_is_on_its_way_is_not_repeated_and_costs_nothing() {
        let start = Instant::now();
        let mut stream = SendStream::new(Ssrc(1), None);
        stream.sent(&burst(SeqNo(9), 0, 1), start);
        assert_eq!(stream.nacked(9, 20 * MS, start), Some(SeqNo(9)));
        for n in 0..2 * REPEATS {
            assert_eq!(stream.nacked(9, 20 * MS, start + MS * (n % 20)), None);
        }
        let lost_again = start + 20 * MS;
        assert_eq!(stream.nacked(9, 20 * MS, lost_again), Some(SeqNo(9)));
    }
}
