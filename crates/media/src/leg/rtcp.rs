//! The state of RTCP with a far end: when reports are due, and what the far end asks for.

use std::time::{Duration, Instant};

use portunus_rtp::{SeqNo, Ssrc};
use smallvec::SmallVec;

use super::reports::KeyframeRequest;
use super::{KeyframeAsking, LegId, LegRemote, LegRtcp};

/// The average time between two reports (RFC 3550 section 6.2).
const REPORTS: Duration = Duration::from_secs(5);
/// The first report comes sooner, because it puts streams in step with each other.
const FIRST_REPORT: Duration = Duration::from_millis(500);
/// Keyframe requests of the far end that come sooner after the last one are ignored.
const KEYFRAMES: Duration = Duration::from_millis(500);
/// The maximum number of packets that one datagram of RTCP may ask for again.
const LOST: usize = 128;

/// The state of RTCP with a far end.
#[derive(Debug)]
pub(super) struct RtcpState {
    cname: String,
    /// RTCP uses the port of RTP.
    shares_port: bool,
    keyframes: KeyframeAsking,
    /// The number of the last FIR.
    fir: u8,
    report_at: Option<Instant>,
    /// When the far end last asked for a keyframe.
    asked: Option<Instant>,
    /// The packets that the far end has lost and that are to be sent again.
    lost: SmallVec<[SeqNo; 16]>,
}

impl RtcpState {
    pub(super) fn new(leg: LegId) -> Self {
        Self {
            cname: format!("portunus-{:x}", leg.serial),
            shares_port: false,
            keyframes: KeyframeAsking::default(),
            fir: 0,
            report_at: None,
            asked: None,
            lost: SmallVec::new(),
        }
    }

    /// Applies what was agreed on with the far end.
    pub(super) fn set(&mut self, remote: &LegRemote) {
        self.shares_port = remote.rtcp == LegRtcp::Mux;
        self.keyframes = remote.keyframes;
    }

    /// Schedules the first report.
    pub(super) fn start(&mut self, now: Instant) {
        self.report_at = Some(now + FIRST_REPORT);
    }

    /// Sends no more reports.
    pub(super) fn stop(&mut self) {
        self.report_at = None;
    }

    pub(super) fn cname(&self) -> &str {
        &self.cname
    }

    pub(super) fn shares_port(&self) -> bool {
        self.shares_port
    }

    /// When the next report is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.report_at
    }

    /// Schedules the report after the one that is due.
    pub(super) fn schedule_next(&mut self, now: Instant) {
        // Reports must not be in step with those of others (RFC 3550 section 6.3.1).
        let factor = rand::random_range(0.5..1.5);
        self.report_at = Some(now + REPORTS.mul_f64(factor));
    }

    /// Whether the far end can be asked for keyframes.
    pub(super) fn asks_for_keyframes(&self) -> bool {
        self.keyframes != KeyframeAsking::Never
    }

    /// Returns a keyframe request for a stream of the far end.
    pub(super) fn request_keyframe(&mut self, media: Ssrc) -> KeyframeRequest {
        if self.keyframes == KeyframeAsking::Fir {
            self.fir = self.fir.wrapping_add(1);
        }
        KeyframeRequest {
            media,
            by: self.keyframes,
            sequence: self.fir,
        }
    }

    /// Notes that the far end asks for a keyframe. Returns whether that is to be passed on.
    pub(super) fn note_keyframe_request(&mut self, now: Instant) -> bool {
        let recent = |at| now.saturating_duration_since(at) < KEYFRAMES;
        let passes = !self.asked.is_some_and(recent);
        if passes {
            self.asked = Some(now);
        }
        passes
    }

    /// Notes the packets that the far end has lost. `find` returns the packet of a number on the
    /// wire.
    pub(super) fn note_lost(
        &mut self,
        lost: impl Iterator<Item = u16>,
        find: impl FnMut(u16) -> Option<SeqNo>,
    ) {
        let left = LOST.saturating_sub(self.lost.len());
        self.lost.extend(lost.take(left).filter_map(find));
    }

    /// Takes the packets that are to be sent again.
    pub(super) fn take_lost(&mut self) -> SmallVec<[SeqNo; 16]> {
        std::mem::take(&mut self.lost)
    }
}
