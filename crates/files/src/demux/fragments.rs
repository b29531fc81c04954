//! Fragmented MP4 (ISO/IEC 14496-12 section 8.8), read up to the first incomplete fragment.
//!
//! A file that is still being written, or was torn, ends with its last complete fragment.

use std::collections::VecDeque;

use mp4_atom::{Prft, Trex};

use super::boxes::{self, Traf};
use super::runs::{MAX_HEAD, Runs, defaults_of};
use super::{ClockPlace, Demux, Frame, Input, Nanos, nanos_of_ticks};
use crate::mp4::of_ntp;
use crate::track::{Kind, TrackSource};
use crate::{FileError, MAX_FRAME, MAX_INDEX};

/// The longest box with a time of day, in bytes.
const MAX_MOMENT: u64 = 64;

/// A track of the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexedTrack {
    pub(super) id: u32,
    pub(super) timescale: u32,
    /// The start of its edit list.
    pub(super) start: Nanos,
}

/// Opens the fragments after the index.
pub(super) fn open(
    input: Input,
    sources: Vec<TrackSource>,
    tracks: impl Iterator<Item = IndexedTrack>,
    defaults: &[Trex],
    duration: Option<Nanos>,
) -> Result<Box<dyn Demux>, FileError> {
    let tracks = tracks.map(|track| TrackState {
        id: track.id,
        timescale: track.timescale,
        start: track.start,
        defaults: defaults_of(defaults, track.id),
        next: 0,
    });
    let tracks: Vec<_> = tracks.collect();
    let mut this = Fragmented {
        first: input.position(),
        shift: tracks.iter().map(|track| track.start).max().unwrap_or(0),
        input,
        sources,
        tracks,
        queue: VecDeque::new(),
        duration,
        clock: None,
    };
    this.clock = this.read_clock()?;
    if this.duration.is_none() {
        let mut end = None;
        while this.read_fragment()?.is_some() {
            let ends = this
                .queue
                .iter()
                .map(|it| it.at.saturating_add(it.duration));
            end = ends.max().max(end);
        }
        this.duration = end;
        this.rewind()?;
    }
    Ok(Box::new(this))
}

#[derive(Debug)]
struct Fragmented {
    input: Input,
    sources: Vec<TrackSource>,
    tracks: Vec<TrackState>,
    /// The end of the index.
    first: u64,
    /// The shift of all times: as in an MP4 without fragments, frames that edit lists cut off are
    /// sent, too.
    shift: Nanos,
    /// The frames of the current fragment, by time.
    queue: VecDeque<Queued>,
    duration: Option<Nanos>,
    /// A time of day, if the file has one.
    clock: Option<ClockPlace>,
}

#[derive(Debug)]
struct TrackState {
    id: u32,
    timescale: u32,
    start: Nanos,
    defaults: Trex,
    /// The start of a fragment without a time, in units of the track.
    next: i64,
}

#[derive(Debug)]
struct Queued {
    track: usize,
    offset: u64,
    size: u32,
    at: Nanos,
    presented: Nanos,
    duration: Nanos,
    keyframe: bool,
}

impl Demux for Fragmented {
    fn tracks(&self) -> &[TrackSource] {
        &self.sources
    }

    fn read(&mut self, frame: &mut Frame) -> Result<bool, FileError> {
        let queued = loop {
            match self.queue.pop_front() {
                Some(queued) => break queued,
                None if self.read_fragment()?.is_none() => return Ok(false),
                None => {}
            }
        };
        let behind = self.input.position();
        self.input.seek(queued.offset)?;
        let size = u64::from(queued.size);
        self.input
            .read_into(&mut frame.data, size, MAX_FRAME, "a frame")?;
        self.input.seek(behind)?;
        frame.track = queued.track;
        frame.at = queued.at;
        frame.presented = queued.presented;
        frame.duration = queued.duration;
        frame.keyframe = queued.keyframe;
        Ok(true)
    }

    fn seek(&mut self, to: Nanos) -> Result<(), FileError> {
        let is_video = |source: &TrackSource| source.track.codec.kind() == Kind::Video;
        let lead = self.sources.iter().position(is_video).unwrap_or(0);
        // A broken index is ignored.
        let near = self.by_index(lead, to).ok().flatten();
        let mut found = match near {
            Some(near) => self.last_before(near, lead, to)?,
            None => None,
        };
        if found.is_none() {
            found = self.last_before(self.first, lead, to)?;
        }
        self.rewind()?;
        let Some(Found {
            fragment,
            begins,
            at,
        }) = found
        else {
            return Ok(());
        };
        self.input.seek(fragment)?;
        for (track, next) in self.tracks.iter_mut().zip(begins) {
            track.next = next;
        }
        self.read_fragment()?;
        self.queue.retain(|it| match it.track == lead {
            true => it.at >= at,
            false => it.at.saturating_add(it.duration) > at,
        });
        Ok(())
    }

    fn duration(&self) -> Option<Nanos> {
        self.duration
    }

    fn clock(&self) -> Vec<ClockPlace> {
        self.clock.into_iter().collect()
    }
}

/// A keyframe.
#[derive(Debug)]
struct Found {
    fragment: u64,
    /// The start of its fragment, by track.
    begins: Vec<i64>,
    at: Nanos,
}

impl Fragmented {
    /// Returns the last keyframe of a track at or before `to`, in this fragment or later ones.
    fn last_before(
        &mut self,
        from: u64,
        lead: usize,
        to: Nanos,
    ) -> Result<Option<Found>, FileError> {
        self.rewind()?;
        self.input.seek(from)?;
        let mut found = None;
        loop {
            let begins: Vec<_> = self.tracks.iter().map(|track| track.next).collect();
            let Some(fragment) = self.read_fragment()? else {
                break;
            };
            let own = self.queue.iter().filter(|it| it.track == lead);
            let before = own.clone().filter(|it| it.keyframe && it.at <= to);
            if let Some(at) = before.map(|it| it.at).next_back() {
                found = Some(Found {
                    fragment,
                    begins,
                    at,
                });
            } else if own.clone().any(|it| it.at > to) {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the fragment of the last keyframe at or before `to` in the index at the file's end,
    /// or `None` if there is no valid index.
    fn by_index(&mut self, lead: usize, to: Nanos) -> Result<Option<u64>, FileError> {
        /// The last box of the index, with the length of the index.
        const LAST: u64 = 16;
        let len = self.input.len();
        let mut last = [0; LAST as usize];
        self.input.seek(len.saturating_sub(LAST))?;
        self.input.read_up_to(&mut last)?;
        let [0, 0, 0, 16, b'm', b'f', b'r', b'o', _, _, _, _, size @ ..] = last else {
            return Ok(None);
        };
        let size = u64::from(u32::from_be_bytes(size));
        self.input.seek(len.saturating_sub(size))?;
        let Some((boxes::MFRA, size)) = boxes::read_header(&mut self.input)? else {
            return Ok(None);
        };
        let mut mfra = Vec::new();
        self.input
            .read_into(&mut mfra, size, MAX_INDEX, "the index of fragments")?;
        let Some(track) = self.tracks.get(lead) else {
            return Ok(None);
        };
        let shift = self.shift.saturating_sub(track.start);
        let timescale = track.timescale;
        let time = |ticks: u64| {
            let nanos = nanos_of_ticks(i64::try_from(ticks).ok()?, timescale)?;
            Some(nanos.saturating_add(shift))
        };
        let places = boxes::tfra(&mfra, track.id)?.map(|it| it.entries);
        let places = places.into_iter().flatten().filter_map(|place| {
            let at = time(place.time).filter(|at| *at <= to)?;
            (place.moof_offset >= self.first).then_some((at, place.moof_offset))
        });
        let Some((at, fragment)) = places.max_by_key(|(at, _)| *at) else {
            return Ok(None);
        };
        // The times of fragments without their own are known only after reading from the start.
        self.rewind()?;
        self.input.seek(fragment)?;
        let is_there = self.read_fragment()? == Some(fragment)
            && (self.queue.iter()).any(|it| it.track == lead && it.keyframe && it.presented == at);
        Ok(is_there.then_some(fragment))
    }

    /// Reads the time of day before the first fragment.
    fn read_clock(&mut self) -> Result<Option<ClockPlace>, FileError> {
        let mut reference = None;
        while let Some((kind, size)) = boxes::read_header(&mut self.input)? {
            if kind == boxes::MOOF {
                break;
            }
            if kind != boxes::PRFT || size > MAX_MOMENT {
                self.input.skip(size)?;
                continue;
            }
            let mut body = Vec::new();
            self.input
                .read_into(&mut body, size, MAX_MOMENT, "a reference time")?;
            reference = boxes::reference_time(&body).ok().or(reference);
        }
        self.rewind()?;
        Ok(reference.and_then(|reference| self.place_of(&reference)))
    }

    /// Returns the position of a time of day.
    fn place_of(&self, reference: &Prft) -> Option<ClockPlace> {
        let track = self.tracks.iter();
        let track = track
            .into_iter()
            .find(|it| it.id == reference.reference_track_id)?;
        let at = nanos_of_ticks(i64::try_from(reference.media_time).ok()?, track.timescale)?;
        let shift = self.shift.saturating_sub(track.start);
        Some(ClockPlace {
            at: at.saturating_add(shift),
            clock: of_ntp(reference.ntp_timestamp),
        })
    }

    fn rewind(&mut self) -> Result<(), FileError> {
        self.queue.clear();
        for track in &mut self.tracks {
            track.next = 0;
        }
        self.input.seek(self.first)
    }

    /// Takes the frames of the next fragment, and returns its position. Returns `None` if there is
    /// no complete one.
    fn read_fragment(&mut self) -> Result<Option<u64>, FileError> {
        self.queue.clear();
        loop {
            let at = self.input.position();
            let Some((kind, size)) = boxes::read_header(&mut self.input)? else {
                return Ok(None);
            };
            if kind != boxes::MOOF {
                self.input.skip(size)?;
                continue;
            }
            let mut moof = Vec::new();
            self.input
                .read_into(&mut moof, size, MAX_HEAD, "the head of a fragment")?;
            let mut runs = Runs::new(at);
            let mut end = at;
            for traf in boxes::trafs(&moof)? {
                self.take(&traf, &mut runs)?;
                end = end.max(runs.end());
            }
            if end > self.input.len() {
                self.queue.clear();
                return Ok(None);
            }
            self.queue.make_contiguous().sort_by_key(|it| it.at);
            return Ok(Some(at));
        }
    }

    /// Takes the frames of the next track.
    fn take(&mut self, traf: &Traf, runs: &mut Runs) -> Result<(), FileError> {
        let corrupt = || FileError::corrupt("a fragment");
        let found = self.tracks.iter_mut().enumerate();
        let Some((number, track)) = found
            .into_iter()
            .find(|(_, it)| it.id == traf.head.track_id)
        else {
            return Ok(());
        };
        if let Some(begins) = &traf.begins {
            track.next = i64::try_from(begins.base_media_decode_time).map_err(|_| corrupt())?;
        }
        let shift = self.shift.saturating_sub(track.start);
        let timescale = track.timescale;
        let nanos = |ticks: i64| nanos_of_ticks(ticks, timescale).ok_or_else(corrupt);
        let (next, queue) = (&mut track.next, &mut self.queue);
        runs.track(traf, &track.defaults, |sample| {
            queue.push_back(Queued {
                track: number,
                offset: sample.offset,
                size: sample.size,
                at: nanos(*next)?.saturating_add(shift),
                presented: nanos(next.saturating_add(sample.later))?.saturating_add(shift),
                duration: nanos(sample.duration.into())?,
                keyframe: sample.is_sync,
            });
            *next = next.saturating_add(sample.duration.into());
            Ok(())
        })
    }
}
