//! A worker of another node: its address, and the round trip to it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::ReportBlock;

/// The time between two reports (RFC 3550 section 6.2).
const REPORTS: Duration = Duration::from_secs(1);
/// How long an answer may be held and still say that both directions work.
const IN_TIME: Duration = Duration::from_millis(1_500);
/// The reports that are remembered until they are answered.
const REMEMBERED: usize = 3;
/// What a round trip is assumed to take before the first answer.
const ASSUMED: Duration = Duration::from_millis(50);

/// A worker of another node, as a worker of this one knows it.
#[derive(Debug)]
pub(crate) struct FarWorker {
    pub(crate) address: SocketAddr,
    /// The streams from and to it.
    pub(crate) streams: usize,
    /// Reports are exchanged without streams, too, so that both nodes know whether the link works.
    pub(crate) is_probed: bool,
    /// The middle 32 bits of the NTP times of our last reports, and when they were sent.
    sent: [Option<(u32, Instant)>; REMEMBERED],
    /// The same of its last report, and when that arrived.
    received: Option<(u32, Instant)>,
    round_trip: Option<Duration>,
    report_at: Option<Instant>,
}

impl FarWorker {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            streams: 0,
            is_probed: false,
            sent: [None; REMEMBERED],
            received: None,
            round_trip: None,
            report_at: None,
        }
    }

    /// When the next report is due. `None` without streams, unless the link is probed here.
    pub(crate) fn report_at(&self) -> Option<Instant> {
        self.report_at
            .filter(|_| self.streams > 0 || self.is_probed)
    }

    /// Sends a report soon, because there is something new to say.
    pub(crate) fn report_soon(&mut self, now: Instant) {
        self.report_at = Some(self.report_at.map_or(now, |at| at.min(now)));
    }

    /// Notes that a report leaves, with this NTP time.
    pub(crate) fn reports(&mut self, ntp: u64, now: Instant) {
        self.sent.rotate_right(1);
        if let Some(last) = self.sent.first_mut() {
            *last = Some(((ntp >> 16) as u32, now));
        }
        self.report_at = Some(now + REPORTS);
    }

    /// Takes its report, with this NTP time.
    pub(crate) fn reported(&mut self, ntp: u64, now: Instant) {
        self.received = Some(((ntp >> 16) as u32, now));
    }

    /// Returns what answers its last report, which was sent by `ssrc`.
    pub(crate) fn answer(&self, ssrc: Ssrc, now: Instant) -> Option<ReportBlock> {
        let (last_sr, at) = self.received?;
        let since = now.saturating_duration_since(at);
        Some(ReportBlock {
            ssrc,
            fraction_lost: 0,
            cumulative_lost: 0,
            highest_sequence: 0,
            jitter: 0,
            last_sr,
            delay_since_last_sr: (since.as_secs_f64() * 65_536.0) as u32,
        })
    }

    /// Takes its answer. Returns the round trip, if it is one.
    pub(crate) fn answered(&mut self, block: &ReportBlock, now: Instant) -> Option<Duration> {
        let mut sent = self.sent.iter().flatten();
        let (_, at) = sent.find(|(sent, _)| *sent == block.last_sr && block.last_sr != 0)?;
        let held = Duration::from_secs_f64(f64::from(block.delay_since_last_sr) / 65_536.0);
        let round_trip = now.saturating_duration_since(*at).saturating_sub(held);
        self.round_trip = Some(round_trip);
        Some(round_trip)
    }

    /// Returns whether an answer was held so briefly that the report before it had arrived, too.
    pub(crate) fn is_in_time(block: &ReportBlock) -> bool {
        f64::from(block.delay_since_last_sr) / 65_536.0 < IN_TIME.as_secs_f64()
    }

    /// The last round trip, or what it is assumed to be.
    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or(ASSUMED)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    #[test]
    fn the_round_trip_is_that_of_a_report_and_its_answer() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let address = SocketAddr::from(([192, 0, 2, 1], 4_000));
        let (mut here, mut there) = (FarWorker::new(address), FarWorker::new(address));
        assert_eq!(here.round_trip(), ASSUMED);
        let ntp = 0x1234_5678_9abc_def0;
        here.reports(ntp, at(0));
        there.reported(ntp, at(30));
        let answer = there.answer(Ssrc(7), at(430)).unwrap();
        let round_trip = here.answered(&answer, at(460)).unwrap();
        assert!(round_trip.abs_diff(Duration::from_millis(60)) < Duration::from_millis(1));
        assert_eq!(
            here.answered(&answer, at(461)).map(|it| it.as_millis()),
            Some(61)
        );
        let forged = ReportBlock {
            last_sr: 1,
            ..answer
        };
        assert_eq!(here.answered(&forged, at(470)), None);
    }

    #[test]
    fn reports_leave_once_a_second_as_long_as_there_are_streams() {
        let start = Instant::now();
        let mut far = FarWorker::new(SocketAddr::from(([192, 0, 2, 1], 4_000)));
        far.report_soon(start);
        assert_eq!(far.report_at(), None);
        far.streams = 1;
        assert_eq!(far.report_at(), Some(start));
        far.reports(1, start);
        assert_eq!(far.report_at(), Some(start + REPORTS));
    }
}
