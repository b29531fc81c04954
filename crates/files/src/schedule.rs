//! The conversion of a file's times to endlessly rising times and RTP timestamps.
//!
//! Times are whole nanoseconds, converted once per frame, so errors do not accumulate over hours.

use crate::demux::{Frame, Nanos};

/// A smaller deviation from the end of the last frame is ignored for audio, because WebM rounds
/// times to milliseconds.
const TOLERANCE: Nanos = 12_000_000;

/// A greater step between two frames means that the file is corrupt. A recording may have been
/// paused or muted for hours.
const LONGEST_GAP: Nanos = 24 * 3_600 * 1_000_000_000;

/// The assumed duration of a frame.
const FALLBACK: Nanos = 20_000_000;

/// The place of a frame on the endless timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// When it is due.
    pub at: Nanos,
    /// The time of its RTP timestamp.
    pub presented: Nanos,
}

/// Joins passes through a file, and parts of it, to one timeline.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The start of the current pass on the endless timeline.
    base: Nanos,
    /// The file's time at that start, set by the first frame of a pass.
    origin: Option<Nanos>,
    /// The latest end of all frames so far.
    end: Nanos,
    /// The latest time of a frame in this pass.
    latest: Nanos,
    tracks: Vec<TrackState>,
}

#[derive(Debug, Clone, Default)]
struct TrackState {
    is_audio: bool,
    /// The end of the last frame in this pass.
    end: Option<Nanos>,
    /// The time of the last frame, and its distance from the one before.
    last: Option<Nanos>,
    step: Nanos,
}

/// The file's times are invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Senseless;

impl Schedule {
    /// Returns a schedule for tracks that are audio or not.
    pub fn new(is_audio: impl Iterator<Item = bool>) -> Self {
        let state = |is_audio| TrackState {
            is_audio,
            ..TrackState::default()
        };
        Self {
            base: 0,
            origin: None,
            end: 0,
            latest: 0,
            tracks: is_audio.map(state).collect(),
        }
    }

    /// Starts a pass from another position or from the start: it follows everything so far.
    /// `origin` is its first time in the file, by default that of its first frame.
    pub fn begin_pass(&mut self, origin: Option<Nanos>) {
        self.base = self.end;
        self.origin = origin;
        for track in &mut self.tracks {
            track.end = None;
            track.last = None;
        }
    }

    /// Has the next pass follow `end`, even if frames were placed after it.
    pub fn end_at(&mut self, end: Nanos) {
        self.end = end;
    }

    /// Returns the end of everything placed so far.
    pub fn end(&self) -> Nanos {
        self.end
    }

    /// Returns the difference between the timeline and the file's times in this pass, or `None`
    /// before its first frame.
    pub fn shift(&self) -> Option<Nanos> {
        self.base.checked_sub(self.origin?)
    }

    /// Returns the time played since [`Schedule::begin_pass`].
    pub fn played(&self) -> Nanos {
        self.end.saturating_sub(self.base)
    }

    /// Whether the frame is before the origin of the pass.
    pub fn is_before_origin(&self, frame: &Frame) -> bool {
        self.origin.is_some_and(|origin| frame.at < origin)
    }

    /// Returns the place of the frame.
    pub fn place(&mut self, frame: &Frame) -> Result<Place, Senseless> {
        let origin = match self.origin {
            Some(origin) => origin,
            None => {
                self.latest = frame.at;
                *self.origin.insert(frame.at)
            }
        };
        if frame.at.saturating_sub(self.latest.max(origin)) > LONGEST_GAP {
            return Err(Senseless);
        }
        self.latest = self.latest.max(frame.at);
        let shift = self.base.checked_sub(origin).ok_or(Senseless)?;
        let at = frame.at.checked_add(shift).ok_or(Senseless)?;
        let presented = frame.presented.checked_add(shift).ok_or(Senseless)?;
        let track = self.tracks.get_mut(frame.track).ok_or(Senseless)?;
        let presented = match track.end {
            Some(end) if track.is_audio && (presented - end).abs() < TOLERANCE => end,
            _ => presented,
        };
        if let Some(last) = track.last
            && at > last
        {
            track.step = at - last;
        }
        track.last = Some(at);
        let duration = match frame.duration {
            known @ 1.. => known.min(LONGEST_GAP),
            _ if track.step > 0 => track.step,
            _ => FALLBACK,
        };
        let end = presented.checked_add(duration).ok_or(Senseless)?;
        track.end = Some(end);
        self.end = self.end.max(end);
        Ok(Place {
            at: at.max(0),
            presented,
        })
    }
}

/// Converts a time to units of an RTP clock, which wrap.
pub(crate) fn rtp_ticks(time: Nanos, clock_rate: u32) -> u32 {
    let scaled = i128::from(time) * i128::from(clock_rate);
    // A timestamp is the remainder modulo 2^32.
    ((scaled + 500_000_000).div_euclid(1_000_000_000)) as u32
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;

    const MS: Nanos = 1_000_000;

    fn frame(track: usize, at: Nanos, duration: Nanos) -> Frame {
        Frame {
            track,
            at,
            presented: at,
            duration,
            ..Frame::default()
        }
    }

    #[test]
    fn passes_follow_one_another() {
        let mut schedule = Schedule::new([false, true].into_iter());
        for pass in 0..3 {
            let video = schedule.place(&frame(0, 7 * MS, 40 * MS)).unwrap();
            let audio = schedule.place(&frame(1, 10 * MS, 20 * MS)).unwrap();
            assert_eq!(video.at, pass * 40 * MS);
            assert_eq!(audio.at, video.at + 3 * MS);
            schedule.begin_pass(None);
        }
    }

    #[test]
    fn rounded_audio_times_are_made_even() {
        let mut schedule = Schedule::new([true].into_iter());
        for (index, at) in [0, 20, 41, 60, 80, 101].into_iter().enumerate() {
            let place = schedule.place(&frame(0, at * MS, 20 * MS)).unwrap();
            assert_eq!(place.presented, index as Nanos * 20 * MS);
        }
        // A real gap stays.
        let place = schedule.place(&frame(0, 500 * MS, 20 * MS)).unwrap();
        assert_eq!(place.presented, 500 * MS);
    }

    #[test]
    fn a_recording_that_was_paused_for_hours_goes_on() {
        const HOUR: Nanos = 3_600_000 * MS;
        let mut schedule = Schedule::new([true].into_iter());
        schedule.place(&frame(0, 0, 20 * MS)).unwrap();
        let place = schedule.place(&frame(0, 3 * HOUR, 20 * MS)).unwrap();
        assert_eq!(place.at, 3 * HOUR);
        assert_eq!(schedule.place(&frame(0, 30 * HOUR, 0)), Err(Senseless));
    }

    #[test]
    fn times_that_make_no_sense() {
        let mut schedule = Schedule::new([true].into_iter());
        schedule.place(&frame(0, 0, 0)).unwrap();
        assert_eq!(schedule.place(&frame(0, Nanos::MAX, 0)), Err(Senseless));
        assert_eq!(schedule.place(&frame(7, 0, 0)), Err(Senseless));
        let mut schedule = Schedule::new([true].into_iter());
        schedule.place(&frame(0, Nanos::MIN, 0)).unwrap_err();
    }

    #[test]
    fn ticks_are_exact_after_years() {
        let ten_years = 10 * 365 * 86_400 * 1_000_000_000;
        let frames = ten_years / (20 * MS);
        assert_eq!(
            rtp_ticks(frames * 20 * MS, 48_000),
            (frames as u64 * 960) as u32
        );
        assert_eq!(rtp_ticks(-20 * MS, 48_000), 0_u32.wrapping_sub(960));
    }
}
