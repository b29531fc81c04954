//! Repair of a file without a regular end: torn content is dropped; durations and index are
//! written.

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use mp4_atom::{Buf, DecodeMaybe, FourCC, Header as BoxHeader, Trex};

use super::header::in_movie;
use super::index::{self, Place, Places};
use super::time;
use crate::container::Repaired;
use crate::demux::runs::{MAX_HEAD, Runs, defaults_of};
use crate::demux::{Input, boxes};
use crate::{FileError, MAX_INDEX};

/// Reads a file up to damage, and writes it anew.
pub(crate) fn repair(mut input: Input, out: &mut dyn Write) -> Result<Repaired, FileError> {
    let mut scan = Scan::new(&mut input)?;
    while scan.fragment(&mut input)? {}
    if scan.frames == 0 {
        return Err(FileError::Empty);
    }
    let was_whole = scan.ends_with_index(&mut input)?;
    let duration = scan.put_durations();
    let write = |out: &mut dyn Write, bytes: &[u8]| out.write_all(bytes).map_err(FileError::Write);
    write(out, &scan.head)?;
    for span in &scan.spans {
        copy(&mut input, span.clone(), out)?;
    }
    let mut places = Vec::new();
    let tracks = scan.tracks.iter();
    index::put(tracks.map(|track| (track.id, &track.places)), &mut places);
    write(out, &places)?;
    Ok(Repaired {
        cut: match was_whole {
            true => 0,
            false => input.len().saturating_sub(scan.end),
        },
        was_whole,
        duration,
        frames: scan.frames,
    })
}

/// The intact content of a file.
#[derive(Debug)]
struct Scan {
    /// The start of the new file.
    head: Vec<u8>,
    /// The position of the index's body in it.
    moov: Range<usize>,
    tracks: Vec<FoundTrack>,
    movie_rate: u32,
    /// The fragments that are kept.
    spans: Vec<Range<u64>>,
    /// The length of the new file so far, and the end of the last kept fragment in the old one.
    len: u64,
    end: u64,
    frames: u64,
}

#[derive(Debug)]
struct FoundTrack {
    id: u32,
    is_video: bool,
    rate: u32,
    defaults: Trex,
    /// The end of its content, in its own units.
    next: u64,
    end: u64,
    places: Places,
}

/// A track in a fragment.
#[derive(Debug, Clone, Copy)]
struct FoundRun {
    track: usize,
    begins: u64,
    ends: u64,
    keyframe: Option<(u32, u64)>,
    frames: usize,
}

impl Scan {
    /// Reads up to the first fragment.
    fn new(input: &mut Input) -> Result<Self, FileError> {
        let mut head = Vec::new();
        let mut moov = None;
        loop {
            let at = input.position();
            let Some((kind, size)) = boxes::read_header(input)? else {
                // An incomplete index is of no use.
                return match moov {
                    Some(_) => Err(FileError::Empty),
                    None => Err(FileError::Truncated(input.len())),
                };
            };
            let body_at = input.position();
            match &<[u8; 4]>::from(kind) {
                b"moof" => {
                    input.seek(at)?;
                    break;
                }
                b"ftyp" | b"free" | b"moov" | b"prft" => {}
                _ => {
                    input.skip(size)?;
                    continue;
                }
            }
            let whole = (body_at - at).saturating_add(size);
            if (head.len() as u64).saturating_add(whole) > MAX_INDEX {
                return Err(FileError::TooLong {
                    what: "what the file begins with",
                    len: whole,
                    max: MAX_INDEX,
                });
            }
            input.seek(at)?;
            let mut bytes = Vec::new();
            input.read_into(&mut bytes, whole, MAX_INDEX, "what the file begins with")?;
            if kind == boxes::MOOV && moov.is_none() {
                moov = Some(head.len() + (body_at - at) as usize..head.len() + bytes.len());
            }
            head.append(&mut bytes);
        }
        let moov =
            moov.ok_or_else(|| FileError::corrupt("there is no moov box before the fragments"))?;
        let body = head.get(moov.clone()).unwrap_or_default();
        if !boxes::is_fragmented(body) {
            return Err(FileError::Unsupported(
                "an MP4 without fragments is not repaired",
            ));
        }
        let defaults = boxes::trexes(body)?;
        let tracks = boxes::traks(body)?.into_iter().map(|trak| FoundTrack {
            id: trak.id,
            is_video: trak.handler == FourCC::new(b"vide"),
            rate: trak.timescale,
            defaults: defaults_of(&defaults, trak.id),
            next: 0,
            end: 0,
            places: Places::default(),
        });
        Ok(Self {
            tracks: tracks.collect(),
            movie_rate: boxes::movie_timescale(body)?,
            moov,
            spans: Vec::new(),
            len: head.len() as u64,
            end: input.position(),
            frames: 0,
            head,
        })
    }

    /// Takes the next fragment. Returns false if there is no complete one; the input is then at the
    /// end of the last one.
    fn fragment(&mut self, input: &mut Input) -> Result<bool, FileError> {
        let begin = loop {
            let at = input.position();
            match boxes::read_header(input)? {
                Some((boxes::MOOF, size)) if size <= MAX_HEAD => {
                    break (at, size);
                }
                // A box that may be between fragments.
                Some((kind, size))
                    if matches!(
                        &<[u8; 4]>::from(kind),
                        b"styp" | b"sidx" | b"free" | b"emsg" | b"prft"
                    ) =>
                {
                    input.skip(size)?;
                }
                _ => {
                    input.seek(self.end)?;
                    return Ok(false);
                }
            }
        };
        let (at, size) = begin;
        let mut moof = Vec::new();
        input.read_into(&mut moof, size, MAX_HEAD, "the head of a fragment")?;
        let data = match boxes::read_header(input)? {
            Some((kind, size)) if kind == FourCC::new(b"mdat") => {
                let begin = input.position();
                begin..begin.saturating_add(size)
            }
            _ => {
                input.seek(self.end)?;
                return Ok(false);
            }
        };
        let Some(runs) = self.runs(&moof, at, &data) else {
            input.seek(self.end)?;
            return Ok(false);
        };
        for run in &runs {
            let Some(track) = self.tracks.get_mut(run.track) else {
                continue;
            };
            track.next = run.ends;
            track.end = track.end.max(run.ends);
            self.frames = self.frames.saturating_add(run.frames as u64);
        }
        for (run, traf) in runs.iter().zip(1..) {
            if let (Some((sample, time)), Some(track)) =
                (run.keyframe, self.tracks.get_mut(run.track))
            {
                track.places.add(Place {
                    time,
                    fragment: self.len,
                    traf,
                    sample,
                });
            }
        }
        match self.spans.last_mut() {
            Some(last) if last.end == at => last.end = data.end,
            _ => self.spans.push(at..data.end),
        }
        self.len = self.len.saturating_add(data.end - at);
        self.end = data.end;
        input.seek(data.end)?;
        Ok(true)
    }

    /// Returns the tracks of a fragment at `at`, or `None` if it is invalid, or its frames are not
    /// in `data`.
    fn runs(&self, moof: &[u8], at: u64, data: &Range<u64>) -> Option<Vec<FoundRun>> {
        let mut found: Vec<FoundRun> = Vec::new();
        let mut runs = Runs::new(at);
        for traf in boxes::trafs(moof).ok()? {
            let head = &traf.head;
            let (number, track) = {
                let mut tracks = self.tracks.iter().enumerate();
                tracks.find(|(_, it)| it.id == head.track_id)?
            };
            // An absolute position is valid only if the fragment does not move.
            if head.base_data_offset.is_some() && self.len != at {
                return None;
            }
            let earlier = found.iter().rev().find(|run| run.track == number);
            let next = earlier.map_or(track.next, |run| run.ends);
            let begins = traf.begins.as_ref();
            let begins = begins.map_or(next, |it| it.base_media_decode_time);
            let mut run = FoundRun {
                track: number,
                begins,
                ends: begins,
                keyframe: None,
                frames: 0,
            };
            let taken = runs.track(&traf, &track.defaults, |frame| {
                run.frames += 1;
                if run.keyframe.is_none() && (frame.is_sync || !track.is_video) {
                    run.keyframe = Some((run.frames as u32, run.ends));
                }
                run.ends = run.ends.saturating_add(frame.duration.into());
                let end = frame.offset.saturating_add(frame.size.into());
                match frame.offset >= data.start && end <= data.end {
                    true => Ok(()),
                    false => Err(FileError::corrupt("a frame outside of its fragment")),
                }
            });
            taken.ok()?;
            found.push(run);
        }
        let is_new = |run: &FoundRun| {
            self.tracks
                .get(run.track)
                .is_some_and(|track| run.begins >= track.next.saturating_sub(u64::from(track.rate)))
        };
        found.iter().all(is_new).then_some(found)
    }

    /// Whether the fragments are followed by an index up to the file's end, and nothing else.
    fn ends_with_index(&self, input: &mut Input) -> Result<bool, FileError> {
        input.seek(self.end)?;
        let header = boxes::read_header(input)?;
        Ok(header.is_some_and(|(kind, size)| {
            kind == FourCC::new(b"mfra") && input.position().saturating_add(size) == input.len()
        }))
    }

    /// Writes the durations into the header, and returns that of the file.
    fn put_durations(&mut self) -> Duration {
        let Some(moov) = self.head.get_mut(self.moov.clone()) else {
            return Duration::ZERO;
        };
        let in_movie = |track: &FoundTrack| in_movie(track.end, track.rate, self.movie_rate);
        let longest = self.tracks.iter().map(in_movie).max().unwrap_or(0);
        let parts = |moov: &[u8], kind: &[u8; 4]| {
            let own = spans(moov)
                .into_iter()
                .filter(|(found, _)| *found == FourCC::new(kind));
            own.map(|(_, span)| span).collect::<Vec<_>>()
        };
        for span in parts(moov, b"mvhd") {
            put_duration(moov.get_mut(span), Times::Media, longest);
        }
        for span in parts(moov, b"mvex") {
            let Some(mvex) = moov.get_mut(span) else {
                continue;
            };
            for span in parts(mvex, b"mehd") {
                put_duration(mvex.get_mut(span), Times::None, longest);
            }
        }
        for (span, track) in parts(moov, b"trak").into_iter().zip(&self.tracks) {
            let Some(trak) = moov.get_mut(span) else {
                continue;
            };
            for span in parts(trak, b"tkhd") {
                put_duration(trak.get_mut(span), Times::Track, in_movie(track));
            }
            for span in parts(trak, b"mdia") {
                let Some(mdia) = trak.get_mut(span) else {
                    continue;
                };
                for span in parts(mdia, b"mdhd") {
                    put_duration(mdia.get_mut(span), Times::Media, track.end);
                }
            }
        }
        time(longest, self.movie_rate)
    }
}

/// The fields between the version and the duration of a box.
#[derive(Debug, Clone, Copy)]
enum Times {
    /// None.
    None,
    /// Two times, then four bytes.
    Media,
    /// Two times, then eight bytes.
    Track,
}

/// Writes the duration into a box of version 0 or 1.
fn put_duration(body: Option<&mut [u8]>, times: Times, duration: u64) {
    let Some(body) = body else { return };
    let wide = body.first() == Some(&1);
    let width = if wide { 8 } else { 4 };
    let at = 4 + match times {
        Times::None => 0,
        Times::Media => 2 * width + 4,
        Times::Track => 2 * width + 8,
    };
    if let Some(place) = body.get_mut(at..at + width) {
        // All ones would mean an unknown duration.
        let short = u32::try_from(duration).unwrap_or(u32::MAX);
        match wide {
            true => place.copy_from_slice(&duration.to_be_bytes()),
            false => place.copy_from_slice(&short.to_be_bytes()),
        }
    }
}

/// Returns the positions of the bodies of successive boxes, up to a malformed one.
fn spans(body: &[u8]) -> Vec<(FourCC, Range<usize>)> {
    let mut rest = body;
    let mut spans = Vec::new();
    while let Ok(Some(header)) = BoxHeader::decode_maybe(&mut rest) {
        let begin = body.len() - rest.remaining();
        let size = header.size.unwrap_or(rest.remaining());
        if rest.split_off(..size).is_none() {
            break;
        }
        spans.push((header.kind, begin..begin + size));
    }
    spans
}

/// Copies bytes unchanged.
fn copy(input: &mut Input, span: Range<u64>, out: &mut dyn Write) -> Result<(), FileError> {
    const AT_ONCE: u64 = 64 << 10;
    input.seek(span.start)?;
    let mut left = span.end.saturating_sub(span.start);
    let mut bytes = Vec::new();
    while left > 0 {
        let len = left.min(AT_ONCE);
        input.read_into(&mut bytes, len, AT_ONCE, "a part of the file")?;
        out.write_all(&bytes).map_err(FileError::Write)?;
        left -= len;
    }
    Ok(())
}
