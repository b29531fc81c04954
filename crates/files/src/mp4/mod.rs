//! A writer of fragmented MP4 (ISO/IEC 14496-12).
//!
//! A file starts with its header and room for a longer one, up to [`HEADER_ROOM`], and the time of
//! day of its start. Then there are fragments of half a second. Each is appended as a box that
//! readers skip, and becomes a fragment by a change of its type, so that players see complete ones
//! only. At the end there is an index of keyframes, and the header gets the durations.

mod fragment;
mod header;
mod index;
mod moment;
mod repair;

use std::time::Duration;

use self::fragment::{Queue, Run, Sample};
use self::header::{HeaderTrack, rate, track_id};
use self::index::{Place, Places};
pub(crate) use self::moment::of_ntp;
pub(crate) use self::repair::repair;
use crate::MAX_FRAME;
use crate::bitstream::Setup;
use crate::container::{
    Container, ContainerError, ContainerWriter, Edits, FileInfo, FrameOut, HEADER_ROOM, TrackSetup,
};
use crate::mjr::UnixMicros;
use crate::opus::packet_duration;
use crate::track::Kind;

/// The duration of a fragment.
const FRAGMENT: Duration = Duration::from_millis(500);
/// The greatest length of a fragment.
const MOST_BYTES: usize = 16 << 20;
/// The room in the header for each later track, in bytes.
const TRACK_ROOM: usize = 1_024;
/// The limit of tracks.
const MOST_TRACKS: usize = 126;
/// The assumed number of video frames per second.
const FRAME_RATE: u32 = 30;

/// Writes a file.
#[derive(Debug)]
pub(crate) struct Mp4Writer {
    info: FileInfo,
    tracks: Vec<Option<Track>>,
    len: u64,
    /// The bytes of the header and its room, once it is written.
    room: Option<usize>,
    /// The number of the last fragment.
    sequence: u32,
    /// The times of the first and the last waiting frame.
    waiting: Option<(Duration, Duration)>,
    /// The waiting bytes.
    bytes: usize,
    /// Whether no frame came since the last flush.
    is_idle: bool,
}

#[derive(Debug)]
struct Track {
    setup: TrackSetup,
    queue: Queue,
    places: Places,
    /// The time of the last frame, and the duration of the one before.
    last: Option<u64>,
    step: u32,
    /// The end of the last written frame.
    end: u64,
    /// Whether the stream has had other parameter sets than the header.
    has_other_sets: bool,
}

impl Mp4Writer {
    pub fn new(mut info: FileInfo) -> Self {
        info.tracks = info.tracks.min(MOST_TRACKS);
        Self {
            tracks: (0..info.tracks).map(|_| None).collect(),
            info,
            len: 0,
            room: None,
            sequence: 0,
            waiting: None,
            bytes: 0,
            is_idle: false,
        }
    }

    fn header(&self, is_over: bool) -> Result<Vec<u8>, ContainerError> {
        let tracks = self.tracks.iter().enumerate();
        let tracks = tracks.filter_map(|(number, track)| {
            let track = track.as_ref()?;
            Some(HeaderTrack {
                number,
                setup: &track.setup,
                duration: track.end,
            })
        });
        header::header(&self.info, &tracks.collect::<Vec<_>>(), is_over)
    }

    /// Writes the header, at first or again.
    fn put_header(&mut self, is_over: bool, out: &mut Edits) -> Result<(), ContainerError> {
        let mut header = self.header(is_over)?;
        match self.room {
            None => {
                let to_come = self.tracks.iter().filter(|track| track.is_none()).count();
                // The durations are added later, too.
                let needed = header.len() + (to_come + 1) * TRACK_ROOM;
                let room = needed.next_multiple_of(HEADER_ROOM);
                header::fill(&mut header, room)?;
                self.room = Some(room);
                self.put_moment(&mut header);
                self.len += header.len() as u64;
                out.append.extend_from_slice(&header);
            }
            Some(room) => {
                header::fill(&mut header, room)?;
                out.patches.push((0, header));
            }
        }
        Ok(())
    }

    /// Appends the time of day of time 0, if it is known.
    fn put_moment(&self, out: &mut Vec<u8>) {
        let track = self.tracks.iter().position(Option::is_some);
        if let Some(track) = track.filter(|_| self.info.started_us > 0) {
            moment::put(track_id(track), UnixMicros(self.info.started_us), out);
        }
    }

    /// Writes a fragment of the waiting frames. Unless it is the last one, the last picture of a
    /// track stays, because its duration may still become known.
    fn put_fragment(&mut self, is_all: bool, out: &mut Edits) {
        let Some((_, newest)) = self.waiting.take() else {
            return;
        };
        let begin = self.len;
        let mut runs = Vec::new();
        let mut oldest = None;
        for (number, track) in self.tracks.iter_mut().enumerate() {
            let Some(track) = track else {
                continue;
            };
            let is_video = track.setup.setup.codec().kind() == Kind::Video;
            let rate = rate(&track.setup.setup);
            let count = track.queue.samples.len();
            let last = track.queue.samples.last();
            let is_fresh = last.is_some_and(|last| {
                last.at.saturating_add(ticks(FRAGMENT, rate)) > ticks(newest, rate)
            });
            let kept = usize::from(is_video && is_fresh && !is_all);
            if let Some(run) =
                Run::take(number, is_video, &mut track.queue, count - kept.min(count))
            {
                track.end = track.end.max(run.end());
                runs.push(run);
            }
            if let Some(sample) = track.queue.samples.first() {
                let at = time(sample.at, rate);
                oldest = Some(oldest.map_or(at, |oldest: Duration| oldest.min(at)));
            }
        }
        self.bytes = self
            .tracks
            .iter()
            .flatten()
            .map(|track| track.queue.data.len())
            .sum();
        self.waiting = oldest.map(|oldest| (oldest, newest));
        if runs.is_empty() {
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let before = out.append.len();
        if fragment::put(self.sequence, &runs, &mut out.append).is_none() {
            out.append.truncate(before);
            return;
        }
        // It becomes a fragment once it is complete, because a player would fail at an incomplete
        // one.
        const TYPE: std::ops::Range<usize> = 4..8;
        if let Some(kind) = out.append.get_mut(before..).and_then(|it| it.get_mut(TYPE)) {
            out.patches.push((begin + TYPE.start as u64, kind.to_vec()));
            kind.copy_from_slice(b"free");
        }
        self.len += (out.append.len() - before) as u64;
        for (run, traf) in runs.iter().zip(1..) {
            if let (Some((sample, time)), Some(Some(track))) =
                (run.first_keyframe(), self.tracks.get_mut(run.track()))
            {
                track.places.add(Place {
                    time,
                    fragment: begin,
                    traf,
                    sample,
                });
            }
        }
    }

    fn is_due(&self) -> bool {
        self.waiting
            .is_some_and(|(oldest, newest)| newest.saturating_sub(oldest) >= FRAGMENT)
    }
}

impl ContainerWriter for Mp4Writer {
    fn set_track(
        &mut self,
        track: usize,
        setup: TrackSetup,
        out: &mut Edits,
    ) -> Result<(), ContainerError> {
        let (container, codec) = (Container::Mp4, setup.setup.codec());
        if !container.takes(codec) {
            return Err(ContainerError::Codec { container, codec });
        }
        let place = self.tracks.get_mut(track);
        let place = place.ok_or(ContainerError::NoTrack(track))?;
        let before = match place {
            Some(known) if known.setup.setup.codec() != codec => {
                return Err(ContainerError::CodecChanged(track));
            }
            Some(known) if known.setup == setup => return Ok(()),
            Some(known) => Some(std::mem::replace(&mut known.setup, setup)),
            None => {
                *place = Some(Track {
                    setup,
                    queue: Queue::default(),
                    places: Places::default(),
                    last: None,
                    step: 0,
                    end: 0,
                    has_other_sets: false,
                });
                None
            }
        };
        let written = self.put_header(false, out);
        if let (Err(_), Some(place)) = (&written, self.tracks.get_mut(track)) {
            match (before, place) {
                (Some(before), Some(known)) => known.setup = before,
                (_, place) => *place = None,
            }
        }
        written
    }

    fn frame(&mut self, frame: &FrameOut<'_>, out: &mut Edits) -> Result<(), ContainerError> {
        let track = self.tracks.get_mut(frame.track);
        let track = track.ok_or(ContainerError::NoTrack(frame.track))?;
        let track = track.as_mut().ok_or(ContainerError::NoSetup(frame.track))?;
        if frame.data.len() as u64 > MAX_FRAME {
            return Err(ContainerError::FrameTooLong(frame.data.len()));
        }
        self.is_idle = false;
        let size = track.queue.data.len();
        if track.has_other_sets {
            track.queue.data.extend_from_slice(frame.data);
        } else {
            let setup = &track.setup.setup;
            track.has_other_sets = append_without_sets(frame.data, setup, &mut track.queue.data);
        }
        let size = track.queue.data.len() - size;
        if size == 0 {
            return Ok(());
        }
        let rate = rate(&track.setup.setup);
        // A player would treat two frames with the same time as one.
        let earliest = track.last.map_or(0, |last| last.saturating_add(1));
        let at = ticks(frame.at, rate).max(earliest);
        if let Some(last) = track.last {
            track.step = u32::try_from(at - last).unwrap_or(u32::MAX);
        }
        track.last = Some(at);
        let is_audio = track.setup.setup.codec().kind() == Kind::Audio;
        let duration = match (ticks(frame.duration, rate), track.step) {
            (0, _) if is_audio => packet_duration(frame.data).map_or(rate / 50, |it| it.0 as u32),
            (0, 0) => rate / FRAME_RATE,
            // A gap is not repeated.
            (0, step) => step.min(rate),
            (duration, _) => u32::try_from(duration).unwrap_or(u32::MAX),
        };
        track.queue.samples.push(Sample {
            at,
            duration,
            size: size as u32,
            keyframe: frame.keyframe,
        });
        self.bytes += size;
        let (oldest, newest) = self.waiting.unwrap_or((frame.at, frame.at));
        self.waiting = Some((oldest.min(frame.at), newest.max(frame.at)));
        if self.is_due() || self.bytes > MOST_BYTES {
            self.put_fragment(false, out);
        }
        Ok(())
    }

    /// Writes a fragment if it has its full duration, or if no frame came since the last call.
    fn flush(&mut self, out: &mut Edits) {
        if self.is_due() || self.is_idle {
            self.put_fragment(self.is_idle, out);
        }
        self.is_idle = true;
    }

    fn finish(mut self: Box<Self>, out: &mut Edits) {
        if self.room.is_none() {
            return;
        }
        self.put_fragment(true, out);
        let tracks = self.tracks.iter().enumerate();
        let tracks =
            tracks.filter_map(|(number, track)| Some((track_id(number), &track.as_ref()?.places)));
        index::put(tracks, &mut out.append);
        // There is room, which was reserved at the start. A file without durations still plays.
        let _ = self.put_header(true, out);
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// Appends a frame without the header's parameter sets. Returns true if it has others. From then on
/// no sets may be left out, because the decoder needs those of the header again.
fn append_without_sets(frame: &[u8], setup: &Setup, to: &mut Vec<u8>) -> bool {
    let known: [&[Vec<u8>]; 3] = match setup {
        Setup::H264 { sps, pps } => [sps, pps, &[]],
        Setup::H265 { vps, sps, pps } => [vps, sps, pps],
        _ => {
            to.extend_from_slice(frame);
            return false;
        }
    };
    let is_set = |first: u8| match setup {
        Setup::H264 { .. } => matches!(first & 0x1f, 7 | 8),
        _ => matches!(first >> 1 & 0x3f, 32..=34),
    };
    let mut has_others = false;
    let mut rest = frame;
    while let Some((length, after)) = rest.split_first_chunk() {
        let len = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((unit, after)) = after.split_at_checked(len) else {
            break;
        };
        if has_others || !known.iter().any(|sets| sets.iter().any(|set| set == unit)) {
            has_others |= unit.first().is_some_and(|first| is_set(*first));
            to.extend_from_slice(length);
            to.extend_from_slice(unit);
        }
        rest = after;
    }
    has_others
}

/// Rounds to ticks of 1/`rate` s.
fn ticks(time: Duration, rate: u32) -> u64 {
    let scaled = time.as_nanos() * u128::from(rate) + 500_000_000;
    u64::try_from(scaled / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Returns the time of a tick.
fn time(ticks: u64, rate: u32) -> Duration {
    let rate = u64::from(rate.max(1));
    let nanos = u128::from(ticks % rate) * 1_000_000_000 / u128::from(rate);
    Duration::from_secs(ticks / rate) + Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(units: &[&[u8]]) -> Vec<u8> {
        let length = |unit: &[u8]| (unit.len() as u32).to_be_bytes();
        units
            .iter()
            .flat_map(|unit| [&length(unit)[..], *unit].concat())
            .collect()
    }

    #[test]
    fn sets_of_the_header_are_left_out_until_others_take_their_place() {
        let (sps, pps, other, idr) = (
            &[0x67, 1][..],
            &[0x68, 1][..],
            &[0x67, 2][..],
            &[0x65, 9][..],
        );
        let setup = Setup::H264 {
            sps: vec![sps.to_vec()],
            pps: vec![pps.to_vec()],
        };
        let mut out = Vec::new();
        assert!(!append_without_sets(
            &frame(&[sps, pps, idr]),
            &setup,
            &mut out
        ));
        assert_eq!(out, frame(&[idr]));
        out.clear();
        // The sets after the different one belong to it.
        assert!(append_without_sets(
            &frame(&[other, pps, idr]),
            &setup,
            &mut out
        ));
        assert_eq!(out, frame(&[other, pps, idr]));
    }
}
