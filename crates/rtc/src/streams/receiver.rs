//! One incoming RTP stream: numbering, loss, jitter, and its receiver reports.

use std::time::{Duration, Instant};

use portunus_rtp::{SeqNo, Ssrc};

use super::nack::MissingPackets;

/// Totals of an incoming stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Packets without retransmissions and repeats.
    pub packets: u64,
    /// The payload bytes of these.
    pub bytes: u64,
    /// Packets repaired by retransmission.
    pub retransmissions: u64,
    /// Packets requested again.
    pub nacks: u64,
    /// Packets that count as lost.
    pub lost: u64,
    /// Packets that arrived twice.
    pub repeated: u64,
    /// Keyframes requested.
    pub keyframe_requests: u64,
}

/// The result of a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It is the first of its stream.
    First,
    /// It is new.
    Yes,
    /// It is new, and the gap before it is so large that only a keyframe helps.
    AfterLongGap,
    /// It arrived before and has to be dropped.
    Repeated,
}

/// An incoming stream of one SSRC.
#[derive(Debug)]
pub struct ReceiveStream {
    ssrc: Ssrc,
    clock_rate: u32,
    first: SeqNo,
    highest: SeqNo,
    started: bool,
    /// The missing packets. `None` if NACK was not agreed on.
    missing: Option<MissingPackets>,
    /// Interarrival jitter in timestamp units, times 16 (RFC 3550 appendix A.8).
    jitter: u32,
    transit: Option<(u32, Instant)>,
    last_packet: Option<Instant>,
    counters: ReceiveCounters,
    reported: Reported,
    /// The middle 32 bits of the last sender report's NTP time, and its arrival.
    last_report: Option<(u32, Instant)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Reported {
    expected: u64,
    received: u64,
}

/// The contents of a report block (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportFigures {
    /// The SSRC of the stream.
    pub ssrc: Ssrc,
    /// Packets lost since the last report, in 256ths.
    pub fraction_lost: u8,
    /// Packets lost since the start.
    pub cumulative_lost: u32,
    /// The highest extended sequence number.
    pub highest: u32,
    /// The jitter, in timestamp units.
    pub jitter: u32,
    /// The middle 32 bits of the last sender report's NTP time. 0 without one.
    pub last_sr: u32,
    /// The time since that report, in 1/65,536 s.
    pub delay_since_last_sr: u32,
}

impl ReceiveStream {
    /// Makes a stream of `ssrc`. Requests missing packets if `nack` is true.
    pub fn new(ssrc: Ssrc, clock_rate: u32, nack: bool) -> Self {
        Self {
            ssrc,
            clock_rate: clock_rate.max(1),
            first: SeqNo(0),
            highest: SeqNo(0),
            started: false,
            missing: nack.then(MissingPackets::default),
            jitter: 0,
            transit: None,
            last_packet: None,
            counters: ReceiveCounters::default(),
            reported: Reported::default(),
            last_report: None,
        }
    }

    /// Returns the SSRC.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Takes a packet of the stream itself.
    pub fn accept(&mut self, seq: SeqNo, timestamp: u32, bytes: usize, now: Instant) -> Accepted {
        self.last_packet = Some(now);
        if !self.started {
            self.started = true;
            self.first = seq;
            self.highest = seq;
            self.count(bytes);
            self.measure(timestamp, now);
            return Accepted::First;
        }
        if seq < self.first {
            // The first one overtook it. SRTP has refused repeats and packets older than its
            // window.
            let first = std::mem::replace(&mut self.first, seq);
            if let Some(missing) = &mut self.missing {
                missing.gap(seq, first, now);
            }
            self.count(bytes);
            return Accepted::Yes;
        }
        if seq <= self.highest {
            let late = match &mut self.missing {
                Some(missing) => missing.arrived(seq),
                // SRTP has refused repeats already.
                None => seq != self.highest,
            };
            if !late {
                self.counters.repeated += 1;
                return Accepted::Repeated;
            }
            self.count(bytes);
            return Accepted::Yes;
        }
        let last = std::mem::replace(&mut self.highest, seq);
        let bridged = match &mut self.missing {
            Some(missing) if seq.0 > last.0 + 1 => missing.gap(last, seq, now),
            _ => true,
        };
        self.count(bytes);
        self.measure(timestamp, now);
        if bridged {
            Accepted::Yes
        } else {
            Accepted::AfterLongGap
        }
    }

    /// Takes a retransmitted packet. Returns its full number if it was missing.
    pub fn accept_repair(&mut self, original: u16, bytes: usize, now: Instant) -> Option<SeqNo> {
        let seq = self.highest.nearest(original);
        let missing = self.missing.as_mut()?;
        if !missing.arrived(seq) {
            self.counters.repeated += 1;
            return None;
        }
        self.last_packet = Some(now);
        self.count(bytes);
        self.counters.retransmissions += 1;
        Some(seq)
    }

    /// Passes on the numbers to request now. Returns how many packets count as lost, so that only a
    /// keyframe helps.
    pub fn take_nacks(
        &mut self,
        now: Instant,
        round_trip: Duration,
        mut ask: impl FnMut(SeqNo),
    ) -> usize {
        let Some(missing) = &mut self.missing else {
            return 0;
        };
        let mut asked = 0;
        let given_up = missing.due(now, round_trip, |seq| {
            asked += 1;
            ask(seq);
        });
        self.counters.nacks += asked;
        given_up
    }

    /// Returns when [`ReceiveStream::take_nacks`] is due.
    pub fn next_nack(&self) -> Option<Instant> {
        self.missing.as_ref()?.next_due()
    }

    /// Counts a keyframe request.
    pub fn count_keyframe_request(&mut self) {
        self.counters.keyframe_requests += 1;
    }

    /// Takes a sender report. `ntp` is its full 64-bit time.
    pub fn sender_report(&mut self, ntp: u64, now: Instant) {
        self.last_report = Some(((ntp >> 16) as u32, now));
    }

    /// Returns the arrival of the last packet.
    pub fn last_packet(&self) -> Option<Instant> {
        self.last_packet
    }

    /// Returns the totals. Packets that have not arrived until now are lost.
    pub fn counters(&self) -> ReceiveCounters {
        ReceiveCounters {
            lost: self.expected().saturating_sub(self.counters.packets),
            ..self.counters
        }
    }

    /// Returns the interarrival jitter.
    pub fn jitter(&self) -> Duration {
        Duration::from_secs_f64(f64::from(self.jitter >> 4) / f64::from(self.clock_rate))
    }

    /// Returns the contents of a report block. The fraction lost is that since the last call.
    pub fn report(&mut self, now: Instant) -> Option<ReportFigures> {
        if !self.started {
            return None;
        }
        let (expected, received) = (self.expected(), self.counters.packets);
        let new_expected = expected.saturating_sub(self.reported.expected);
        let new_received = received.saturating_sub(self.reported.received);
        self.reported = Reported { expected, received };
        let lost = new_expected.saturating_sub(new_received);
        let fraction = (lost * 256).checked_div(new_expected).unwrap_or(0).min(255);
        let (last_sr, since) = self.last_report.map_or((0, 0), |(ntp, at)| {
            let since = now.saturating_duration_since(at);
            (ntp, (since.as_secs_f64() * 65_536.0) as u32)
        });
        Some(ReportFigures {
            ssrc: self.ssrc,
            fraction_lost: fraction as u8,
            // It has 24 bits on the wire, signed.
            cumulative_lost: expected.saturating_sub(received).min(0x7f_ffff) as u32,
            highest: self.highest.0 as u32,
            jitter: self.jitter >> 4,
            last_sr,
            delay_since_last_sr: since,
        })
    }

    fn expected(&self) -> u64 {
        if self.started {
            self.highest.0.saturating_sub(self.first.0) + 1
        } else {
            0
        }
    }

    fn count(&mut self, bytes: usize) {
        self.counters.packets += 1;
        self.counters.bytes += bytes as u64;
    }

    /// Updates the jitter (RFC 3550 appendix A.8).
    fn measure(&mut self, timestamp: u32, now: Instant) {
        if let Some((last_timestamp, last_arrival)) = self.transit {
            let elapsed = now.saturating_duration_since(last_arrival).as_secs_f64();
            let arrival = (elapsed * f64::from(self.clock_rate)) as i64;
            let sent = i64::from(timestamp.wrapping_sub(last_timestamp) as i32);
            let difference = (arrival - sent)
                .unsigned_abs()
                .min(u64::from(u32::MAX >> 5)) as u32;
            let decay = (self.jitter + 8) >> 4;
            self.jitter = (self.jitter + difference).saturating_sub(decay);
        }
        self.transit = Some((timestamp, now));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const RTT: Duration = Duration::from_millis(20);

    fn stream(nack: bool) -> ReceiveStream {
        ReceiveStream::new(Ssrc(1), 90_000, nack)
    }

    /// Takes packets of one byte, 10 ms apart in time and timestamp.
    fn accept(stream: &mut ReceiveStream, start: Instant, seq: u64) -> Accepted {
        let at = start + 10 * MS * seq as u32;
        stream.accept(SeqNo(seq), seq as u32 * 900, 1, at)
    }

    fn asked(stream: &mut ReceiveStream, now: Instant) -> Vec<u64> {
        let mut asked = Vec::new();
        stream.take_nacks(now, RTT, |seq| asked.push(seq.0));
        asked
    }

    #[test]
    fn what_is_missing_is_asked_for_until_it_comes() {
        let start = Instant::now();
        let mut stream = stream(true);
        assert_eq!(accept(&mut stream, start, 1), Accepted::First);
        assert_eq!(stream.next_nack(), None);
        assert_eq!(accept(&mut stream, start, 5), Accepted::Yes);
        let due = stream.next_nack().unwrap();
        assert_eq!(asked(&mut stream, due), [2, 3, 4]);
        // One arrives by its own number, one by retransmission, and one never.
        assert_eq!(accept(&mut stream, start, 3), Accepted::Yes);
        assert_eq!(stream.accept_repair(2, 1, due), Some(SeqNo(2)));
        let due = stream.next_nack().unwrap();
        assert_eq!(asked(&mut stream, due), [4]);
        let counters = stream.counters();
        assert_eq!((counters.packets, counters.bytes, counters.lost), (4, 4, 1));
        assert_eq!((counters.nacks, counters.retransmissions), (4, 1));
    }

    #[test]
    fn what_came_before_is_told_from_what_comes_late() {
        let start = Instant::now();
        let mut stream = stream(true);
        for seq in [1, 2, 4] {
            accept(&mut stream, start, seq);
        }
        assert_eq!(accept(&mut stream, start, 3), Accepted::Yes);
        for seq in [3, 4] {
            assert_eq!(accept(&mut stream, start, seq), Accepted::Repeated);
        }
        assert_eq!(stream.accept_repair(3, 1, start), None);
        assert_eq!(stream.accept_repair(90, 1, start), None, "ahead of all");
        let counters = stream.counters();
        assert_eq!((counters.packets, counters.repeated), (4, 4));
    }

    #[test]
    fn what_the_first_packet_overtook_counts_and_the_rest_of_it_is_missing() {
        let start = Instant::now();
        let mut stream = stream(true);
        assert_eq!(accept(&mut stream, start, 10), Accepted::First);
        assert_eq!(accept(&mut stream, start, 7), Accepted::Yes);
        assert_eq!(accept(&mut stream, start, 8), Accepted::Yes);
        let counters = stream.counters();
        assert_eq!((counters.packets, counters.lost), (3, 1));
        let due = stream.next_nack().unwrap();
        assert_eq!(asked(&mut stream, due), [9]);
    }

    #[test]
    fn repairs_find_their_number_over_the_wrap() {
        let start = Instant::now();
        let mut stream = stream(true);
        accept(&mut stream, start, 65_534);
        accept(&mut stream, start, 65_538);
        let repaired = [65_535, 0, 1].map(|wire| stream.accept_repair(wire, 1, start));
        assert_eq!(
            repaired,
            [65_535, 65_536, 65_537].map(|seq| Some(SeqNo(seq)))
        );
        let highest = stream.report(start).unwrap().highest;
        assert_eq!(highest, 65_538, "with the roll-over above");
    }

    #[test]
    fn a_long_gap_is_told_and_nothing_of_it_asked_for() {
        let start = Instant::now();
        let mut stream = stream(true);
        accept(&mut stream, start, 1);
        assert_eq!(accept(&mut stream, start, 2_000), Accepted::AfterLongGap);
        assert_eq!(stream.next_nack(), None);
        assert_eq!(stream.counters().lost, 1_998);
    }

    #[test]
    fn without_nack_nothing_is_asked_for_and_late_packets_count() {
        let start = Instant::now();
        let mut stream = stream(false);
        for seq in [1, 4, 2] {
            accept(&mut stream, start, seq);
        }
        assert_eq!(stream.next_nack(), None);
        assert_eq!(stream.accept_repair(3, 1, start), None);
        assert_eq!(stream.counters().lost, 1);
    }

    #[test]
    fn what_is_given_up_is_told() {
        let start = Instant::now();
        let mut stream = stream(true);
        accept(&mut stream, start, 1);
        accept(&mut stream, start, 4);
        let mut given_up = 0;
        while let Some(due) = stream.next_nack() {
            given_up += stream.take_nacks(due, RTT, |_| {});
        }
        assert_eq!(given_up, 2);
    }

    #[test]
    fn a_report_tells_the_losses_since_the_last_one() {
        let start = Instant::now();
        let mut stream = stream(false);
        assert_eq!(stream.report(start), None, "nothing came");
        for seq in [1, 2, 3, 8] {
            accept(&mut stream, start, seq);
        }
        let first = stream.report(start).unwrap();
        assert_eq!((first.fraction_lost, first.cumulative_lost), (128, 4));
        assert_eq!((first.last_sr, first.delay_since_last_sr), (0, 0));
        stream.sender_report(0x1234_5678_9abc_def0, start);
        for seq in 9..13 {
            accept(&mut stream, start, seq);
        }
        let second = stream.report(start + 500 * MS).unwrap();
        assert_eq!((second.fraction_lost, second.cumulative_lost), (0, 4));
        assert_eq!(
            (second.last_sr, second.delay_since_last_sr),
            (0x5678_9abc, 32_768)
        );
    }

    #[test]
    fn jitter_is_what_arrivals_differ_from_timestamps() {
        let start = Instant::now();
        let mut steady = stream(false);
        for seq in 1..200 {
            accept(&mut steady, start, seq);
        }
        assert_eq!(steady.jitter(), Duration::ZERO);
        // Every other packet is 4 ms late, so each difference is 4 ms.
        let mut stream = stream(false);
        for seq in 0..400_u32 {
            let at = start + 10 * MS * seq + 4 * MS * (seq % 2);
            stream.accept(SeqNo(seq.into()), seq * 900, 1, at);
        }
        let off = stream.jitter().abs_diff(4 * MS);
        assert!(off < MS / 10, "{off:?}");
    }
}
