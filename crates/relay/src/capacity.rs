//! Which streams a link carries if it cannot carry all.

use std::time::{Duration, Instant};

/// The share of the limit below which a withheld stream comes back, if it fits.
const COMFORT: f64 = 0.9;
/// How long there has to be room for a withheld stream before it comes back.
const PATIENCE: u32 = 5;
/// How often bitrates are measured.
pub(crate) const MEASURED: Duration = Duration::from_secs(1);

/// A stream, as the choice sees it. Streams that come first are withheld first.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Rank {
    /// Audio is withheld last.
    is_video: bool,
    /// Upper encodings are withheld first.
    encoding: u8,
    /// Of two, the larger one first.
    bitrate: f64,
}

impl Rank {
    pub(crate) fn new(is_video: bool, encoding: u8, bitrate: f64) -> Self {
        Self {
            is_video,
            encoding,
            bitrate,
        }
    }
}

/// What to do about the bitrate of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Choice {
    /// Withhold the streams of the highest rank until this many bit/s are gone.
    Withhold(f64),
    /// Send the withheld stream of the lowest rank again, if it has no more than this many bit/s.
    Restore(f64),
}

/// The limit of a link, and what it carries.
#[derive(Debug)]
pub(crate) struct Capacity {
    /// In bit/s.
    limit: Option<f64>,
    measured: Option<Instant>,
    /// The measurements in a row with room for more.
    roomy: u32,
}

impl Capacity {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            limit: limit.map(|limit| limit as f64),
            measured: None,
            roomy: 0,
        }
    }

    /// When bitrates are to be measured. `None` without a limit.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.limit?;
        self.measured.map(|at| at + MEASURED)
    }

    /// Begins to measure.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.measured.get_or_insert(now);
    }

    /// Returns the time since the last measurement in seconds, if one is due.
    pub(crate) fn measure(&mut self, now: Instant) -> Option<f64> {
        let due = self.poll_timeout()?;
        if due > now {
            return None;
        }
        let since = now.saturating_duration_since(self.measured.replace(now)?);
        Some(since.as_secs_f64())
    }

    /// Decides about a bitrate.
    pub(crate) fn choose(&mut self, bitrate: f64) -> Option<Choice> {
        let limit = self.limit?;
        if bitrate > limit {
            self.roomy = 0;
            return Some(Choice::Withhold(bitrate - limit));
        }
        let room = limit * COMFORT - bitrate;
        self.roomy = if room > 0.0 { self.roomy + 1 } else { 0 };
        (self.roomy >= PATIENCE).then(|| {
            self.roomy = 0;
            Choice::Restore(room)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_encodings_are_withheld_first_and_audio_last() {
        let audio = Rank::new(false, 0, 64e3);
        let low = Rank::new(true, 0, 150e3);
        let lone = Rank::new(true, 0, 2e6);
        let top = Rank::new(true, 2, 1e6);
        let mut all = [audio, top, low, lone];
        all.sort_by(|a, b| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal));
        assert_eq!(all, [top, lone, low, audio]);
    }

    #[test]
    fn what_is_withheld_comes_back_when_there_was_room_for_a_while() {
        let mut capacity = Capacity::new(Some(1_000_000));
        assert_eq!(capacity.choose(1.5e6), Some(Choice::Withhold(0.5e6)));
        for _ in 1..PATIENCE {
            assert_eq!(capacity.choose(0.5e6), None);
        }
        assert_eq!(capacity.choose(0.5e6), Some(Choice::Restore(0.4e6)));
        assert_eq!(capacity.choose(0.5e6), None, "one at a time");
        assert_eq!(Capacity::new(None).choose(9e9), None);
    }
}
