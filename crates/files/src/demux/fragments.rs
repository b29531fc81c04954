//! Fragmented MP4 (ISO/IEC 14496-12 section 8.8): fragment by fragment, as far as they are whole.
//!
//! A file that is still being written, or was cut off, ends with its last whole fragment.

use std::collections::VecDeque;

use mp4_atom::{Prft, Trex};

use super::boxes::{self, Traf};
use super::runs::{MAX_HEAD, Runs, defaults_of};
use super::{ClockPlace, Demux, Frame, Input, Nanos, nanos_of_ticks};
use crate::mp4::of_ntp;
use crate::track::{Kind, TrackSource};
use crate::{FileError, MAX_FRAME, MAX_INDEX};

/// The longest box that tells of the time of day, in bytes.
const MAX_MOMENT: u64 = 64;

/// Opens the fragments behind the index. `tracks` have their number, their timescale, and where their edit list begins.
pub(super) fn open(
    input: Input,
    sources: Vec<TrackSource>,
    tracks: impl Iterator<Item = (u32, u32, Nanos)>,
    defaults: &[Trex],
    duration: Option<Nanos>,
) -> Result<Box<dyn Demux>, FileError> {
    let tracks = tracks.map(|(id, timescale, start)| TrackState {
        id,
        timescale,
        start,
        defaults: defaults_of(defaults, id),
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
    /// Where the index ends.
    first: u64,
    /// As of an MP4 without fragments: what edit lists cut off is sent all the same, so everything moves back.
    shift: Nanos,
    /// The frames of the current fragment, in the order of their times.
    queue: VecDeque<Queued>,
    duration: Option<Nanos>,
    /// The time of day at a place, if the file tells.
    clock: Option<ClockPlace>,
}

#[derive(Debug)]
struct TrackState {
    id: u32,
    timescale: u32,
    start: Nanos,
    defaults: Trex,
    /// Where a fragment begins that does not tell, in units of the track.
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
        // A broken index is as good as none.
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

/// A place to begin.
#[derive(Debug)]
struct Found {
    fragment: u64,
    /// Where the fragment begins, of each track.
    begins: Vec<i64>,
    at: Nanos,
}

impl Fragmented {
    /// The last place of a track at or before `to`, of the fragments from this one on.
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

    /// The fragment of the last place at or before `to` that the index at the end of the file has; none if there is no such index, or
    /// it leads elsewhere.
    fn by_index(&mut self, lead: usize, to: Nanos) -> Result<Option<u64>, FileError> {
        /// The box that the index ends with, which says how long all of it is.
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
        // Fragments tell their times themselves, or only those do who have read all before.
        self.rewind()?;
        self.input.seek(fragment)?;
        let is_there = self.read_fragment()? == Some(fragment)
            && (self.queue.iter()).any(|it| it.track == lead && it.keyframe && it.presented == at);
        Ok(is_there.then_some(fragment))
    }

    /// Reads what is told of the time of day before the first fragment.
    fn read_clock(&mut self) -> Result<Option<ClockPlace>, FileError> {
        let mut told = None;
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
            told = boxes::reference_time(&body).ok().or(told);
        }
        self.rewind()?;
        Ok(told.and_then(|told| self.place_of(&told)))
    }

    /// The place that a time of day is told of.
    fn place_of(&self, told: &Prft) -> Option<ClockPlace> {
        let track = self.tracks.iter();
        let track = track
            .into_iter()
            .find(|it| it.id == told.reference_track_id)?;
        let at = nanos_of_ticks(i64::try_from(told.media_time).ok()?, track.timescale)?;
        let shift = self.shift.saturating_sub(track.start);
        Some(ClockPlace {
            at: at.saturating_add(shift),
            clock: of_ntp(told.ntp_timestamp),
        })
    }

    fn rewind(&mut self) -> Result<(), FileError> {
        self.queue.clear();
        for track in &mut self.tracks {
            track.next = 0;
        }
        self.input.seek(self.first)
    }

    /// Takes the frames of the next fragment, and says where it is. Nothing: there is none that is whole.
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
        runs.track(traf, &track.defaults, |told| {
            queue.push_back(Queued {
                track: number,
                offset: told.offset,
                size: told.size,
                at: nanos(*next)?.saturating_add(shift),
                presented: nanos(next.saturating_add(told.later))?.saturating_add(shift),
                duration: nanos(told.duration.into())?,
                keyframe: told.is_sync,
            });
            *next = next.saturating_add(told.duration.into());
            Ok(())
        })
    }
}
