//! One outgoing RTP stream: its numbering, what the receiver reports of it, its sender reports.

use std::mem;
use std::time::{Duration, Instant};

use portunus_rtp::{SeqNo, Ssrc};

use super::left_again::LeftAgain;
use super::report::{NtpClock, SenderClock};

/// Sender reports remembered until they are answered.
const REPORTS: usize = 3;

/// As many packets as are remembered may be asked for again at once, and then as many as leave: who asks for more
/// has no use for it, and a few bytes of requests must not make megabytes of answers.
const REPEATS: u32 = 1_024;

/// Totals of an outgoing stream. What each packet changes stands first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SendCounters {
    /// Packets, retransmissions excluded.
    pub packets: u64,
    /// Payload bytes of these.
    pub bytes: u64,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Packets asked for again.
    pub nacks: u64,
    /// Packets that the receiver reports lost.
    pub lost: u64,
    /// Keyframe requests of the receiver.
    pub keyframe_requests: u64,
}

/// An outgoing stream with its repair stream. What each packet changes stands first.
#[derive(Debug)]
#[repr(C)]
pub struct SendStream {
    rtx: Option<Ssrc>,
    highest: SeqNo,
    last_sent: Option<Instant>,
    last_timestamp: u32,
    /// Packets that may still be asked for again.
    repeats: u32,
    counters: SendCounters,
    ssrc: Ssrc,
    next_rtx: SeqNo,
    /// The last sender reports: the middle 32 bits of their NTP time, and when they left. A receiver
    /// may answer one while the next is on its way.
    reports: [Option<(u32, Instant)>; REPORTS],
    sent_at_report: u64,
    round_trip: Option<Duration>,
    /// The sender report that the last round trip is by, and how long the receiver had it.
    answered: (u32, u32),
    jitter: u32,
    /// None before one left again.
    left_again: Option<Box<LeftAgain>>,
}

/// Packets of a stream that leave one after the other, retransmissions excluded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Burst {
    packets: u64,
    bytes: u64,
    highest: SeqNo,
    timestamp: u32,
}

impl Burst {
    /// One more packet: its number and timestamp as sent, and the bytes of its payload.
    #[inline]
    pub fn add(&mut self, seq: SeqNo, timestamp: u32, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
        self.highest = self.highest.max(seq);
        self.timestamp = timestamp;
    }

    /// How many packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The bytes of their payloads.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is no packet in it.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

/// The figures of a sender report (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderFigures {
    /// The stream.
    pub ssrc: Ssrc,
    /// NTP time.
    pub ntp: u64,
    /// The timestamp at that time.
    pub timestamp: u32,
    /// Packets sent so far (32 bits on the wire).
    pub packets: u32,
    /// Payload bytes sent so far (32 bits on the wire).
    pub bytes: u32,
}

impl SendStream {
    /// Bytes at its start that [`Self::sent`] changes.
    pub(crate) const HEAD: usize =
        mem::offset_of!(Self, counters) + mem::offset_of!(SendCounters, retransmissions);

    /// A stream of `ssrc`, repaired by `rtx`.
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
            left_again: None,
            counters: SendCounters::default(),
        }
    }

    /// Its SSRC.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// The SSRC of its repair stream.
    pub fn rtx_ssrc(&self) -> Option<Ssrc> {
        self.rtx
    }

    /// A renegotiation changed the SSRC of the repair stream.
    pub fn set_rtx(&mut self, rtx: Option<Ssrc>) {
        self.rtx = rtx;
    }

    /// Packets were sent.
    pub fn sent(&mut self, burst: &Burst, now: Instant) {
        self.highest = self.highest.max(burst.highest);
        self.last_timestamp = burst.timestamp;
        self.last_sent = Some(now);
        let packets = u32::try_from(burst.packets).unwrap_or(REPEATS);
        self.repeats = self.repeats.saturating_add(packets).min(REPEATS);
        self.counters.packets += burst.packets;
        self.counters.bytes += burst.bytes;
    }

    /// The number for a packet of the repair stream.
    pub fn next_rtx(&mut self) -> SeqNo {
        let seq = self.next_rtx;
        self.next_rtx = SeqNo(seq.0 + 1);
        self.counters.retransmissions += 1;
        seq
    }

    /// The number for padding, which goes by the repair stream.
    pub fn next_padding(&mut self) -> SeqNo {
        let seq = self.next_rtx;
        self.next_rtx = SeqNo(seq.0 + 1);
        seq
    }

    /// The timestamp of the last packet.
    pub fn last_timestamp(&self) -> u32 {
        self.last_timestamp
    }

    /// A packet was sent again under its own number.
    pub fn sent_again(&mut self) {
        self.counters.retransmissions += 1;
    }

    /// The receiver asked for a packet again; returns its full number if it was sent, if it did not leave again within
    /// the last round trip, or the last few of them if that was of no use, and if not too many were asked for.
    pub fn nacked(&mut self, wire: u16, round_trip: Duration, now: Instant) -> Option<SeqNo> {
        self.counters.nacks += 1;
        let seq = self.highest.nearest(wire);
        if seq > self.highest {
            return None;
        }
        let left = self.repeats.checked_sub(1)?;
        let again = self
            .left_again
            .get_or_insert_with(|| Box::new(LeftAgain::new(now)));
        if !again.leaves(seq, self.counters.packets, round_trip, now) {
            return None;
        }
        self.repeats = left;
        Some(seq)
    }

    /// The receiver asked for a keyframe.
    pub fn count_keyframe_request(&mut self) {
        self.counters.keyframe_requests += 1;
    }

    /// A report block of the receiver came. Times are the middle 32 bits of NTP time and 1/65,536 s.
    pub fn receiver_report(
        &mut self,
        lost: u32,
        jitter: u32,
        last_sr: u32,
        delay: u32,
        now: Instant,
    ) {
        // 24 bits, signed: repeats can make it negative.
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

    /// The figures for a sender report if packets left since the last one.
    ///
    /// `source` is the clock of the stream that is relayed, its timestamps already in the numbering
    /// of this stream; without one the time of sending is taken.
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

    /// Whether packets left since the last sender report.
    pub fn report_pending(&self) -> bool {
        self.counters.packets > self.sent_at_report
    }

    /// Round trip by the last report.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// What the round trip was computed from: the sender report that was answered (the middle 32 bits of its NTP time), and how
    /// long the receiver had had it, in 1/65,536 s.
    pub fn answered(&self) -> Option<(u32, u32)> {
        self.round_trip.map(|_| self.answered)
    }

    /// When the last packet left.
    pub fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }

    /// The receiver's jitter in timestamp units.
    pub fn remote_jitter(&self) -> u32 {
        self.jitter
    }

    /// Totals.
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
