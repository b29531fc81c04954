//! A writer of Matroska and WebM (RFC 9559).
//!
//! A file starts with its header and room for a longer one, up to [`HEADER_ROOM`]. Then there are
//! clusters of up to 2 s. The size of a cluster is unknown while it is open. When the next one
//! starts, the size is written into the cluster, and the duration so far into the header. At the
//! end there is an index, to which the header refers.

mod clusters;
mod constants;
mod cues;
mod ebml;
mod header;
mod repair;
mod scan;

use std::time::Duration;

use self::clusters::{CLUSTER_HEAD, Cluster};
pub(crate) use self::constants::{A_LAW, EPOCH, MU_LAW};
use self::cues::{Cue, Index};
use self::ebml::{Id, put_size, wide_size};
use self::header::{Header, header, track_number};
pub(crate) use self::repair::repair;
pub(crate) use self::scan::Scan;
use crate::MAX_FRAME;
use crate::container::{
    Container, ContainerError, ContainerWriter, Edits, FileInfo, FrameOut, HEADER_ROOM, TrackSetup,
};
use crate::track::Kind;

/// The longest assumed duration of a frame, in ms.
const LONGEST_GUESS: u64 = 1_000;
/// The latest time in ms.
const LAST: u64 = 1 << 31;
/// The room in the header for each later track, in bytes.
const TRACK_ROOM: usize = 1_024;
/// The limit of tracks: those with numbers of one byte.
const MAX_TRACKS: usize = 126;

/// Writes a file.
#[derive(Debug)]
pub(crate) struct MatroskaWriter {
    container: Container,
    info: FileInfo,
    tracks: Vec<Option<Track>>,
    len: u64,
    begun: Option<Begun>,
    cluster: Option<Cluster>,
    index: Index,
}

/// The positions in the written header.
#[derive(Debug, Clone, Copy)]
struct Begun {
    room: usize,
    /// The start of the segment's body.
    segment: u64,
    /// The position of the duration.
    duration: u64,
}

impl Begun {
    fn new(room: usize, header: &Header) -> Self {
        Self {
            room,
            segment: header.segment(),
            duration: header.duration,
        }
    }
}

#[derive(Debug)]
struct Track {
    setup: TrackSetup,
    /// The time of its last frame in ms.
    last: Option<u64>,
    /// The duration of the last frame, by default that of the one before.
    lasts: u64,
}

impl MatroskaWriter {
    pub fn new(container: Container, info: FileInfo) -> Self {
        let tracks = info.tracks.min(MAX_TRACKS);
        Self {
            container,
            info,
            tracks: (0..tracks).map(|_| None).collect(),
            len: 0,
            begun: None,
            cluster: None,
            index: Index::default(),
        }
    }

    fn header(&self, cues: Option<u64>) -> Result<Header, ContainerError> {
        let known = self.tracks.iter().enumerate();
        let known = known.filter_map(|(track, known)| Some((track, &known.as_ref()?.setup)));
        header(self.container, &self.info, known, self.end(), cues)
    }

    /// Writes the header, at first or again.
    fn put_header(&mut self, out: &mut Edits) -> Result<(), ContainerError> {
        let mut header = self.header(None)?;
        match self.begun {
            None => {
                let to_come = self.tracks.iter().filter(|track| track.is_none()).count();
                // The position of the index is added later, too.
                let needed = header.bytes.len() + (to_come + 1) * TRACK_ROOM;
                let room = needed.next_multiple_of(HEADER_ROOM);
                self.begun = Some(Begun::new(room, &header));
                header.fill(room)?;
                self.append(out, &header.bytes);
            }
            Some(begun) => {
                let places = Begun::new(begun.room, &header);
                header.fill(begun.room)?;
                self.begun = Some(places);
                self.patch(out, 0, header.bytes);
            }
        }
        Ok(())
    }

    /// Returns the end of the last frame in ms.
    fn end(&self) -> u64 {
        let known = self.tracks.iter().flatten();
        let ends = known.filter_map(|track| Some(track.last?.saturating_add(track.lasts)));
        ends.max().unwrap_or(0)
    }

    fn append(&mut self, out: &mut Edits, bytes: &[u8]) {
        out.append.extend_from_slice(bytes);
        self.len += bytes.len() as u64;
    }

    /// Overwrites bytes of the file, or of the edits.
    fn patch(&self, out: &mut Edits, at: u64, bytes: Vec<u8>) {
        let written = self.len.saturating_sub(out.append.len() as u64);
        let place = at.checked_sub(written).and_then(|from| {
            let from = usize::try_from(from).ok()?;
            out.append.get_mut(from..from.checked_add(bytes.len())?)
        });
        match place {
            Some(place) => place.copy_from_slice(&bytes),
            None => out.patches.push((at, bytes)),
        }
    }
}

impl ContainerWriter for MatroskaWriter {
    fn set_track(
        &mut self,
        track: usize,
        setup: TrackSetup,
        out: &mut Edits,
    ) -> Result<(), ContainerError> {
        let (container, codec) = (self.container, setup.setup.codec());
        if !container.takes(codec) {
            return Err(ContainerError::Codec { container, codec });
        }
        let place = self.tracks.get_mut(track);
        let place = place.ok_or(ContainerError::NoTrack(track))?;
        let (last, lasts) = match place {
            Some(known) if known.setup.setup.codec() != codec => {
                return Err(ContainerError::CodecChanged(track));
            }
            Some(known) => (known.last, known.lasts),
            None => (None, 0),
        };
        let before = place.replace(Track { setup, last, lasts });
        let written = self.put_header(out);
        if let (Err(_), Some(place)) = (&written, self.tracks.get_mut(track)) {
            *place = before;
        }
        written
    }

    fn frame(&mut self, frame: &FrameOut<'_>, out: &mut Edits) -> Result<(), ContainerError> {
        let track = self.tracks.get_mut(frame.track);
        let track = track.ok_or(ContainerError::NoTrack(frame.track))?;
        let track = track.as_mut().ok_or(ContainerError::NoSetup(frame.track))?;
        let segment = self.begun.map_or(0, |begun| begun.segment);
        if frame.data.len() as u64 > MAX_FRAME {
            return Err(ContainerError::FrameTooLong(frame.data.len()));
        }
        let time = millis(frame.at).max(track.last.unwrap_or(0));
        if time >= LAST {
            return Err(ContainerError::TooLate);
        }
        let since = time - track.last.unwrap_or(time);
        track.lasts = match millis(frame.duration) {
            0 => since.min(LONGEST_GUESS),
            told => told,
        };
        track.last = Some(time);
        let is_video = track.setup.setup.codec().kind() == Kind::Video;

        let video_keyframe = is_video && frame.keyframe;
        let over = |cluster: &Cluster| cluster.is_over(time, video_keyframe);
        if self.cluster.as_ref().is_none_or(over) {
            self.close_cluster(out);
            self.open_cluster(time, out);
        }
        let Some(cluster) = self.cluster.as_mut() else {
            return Ok(());
        };
        // A cluster without a video keyframe is indexed by its first block.
        if video_keyframe || !cluster.indexed && !is_video && cluster.time == time {
            cluster.indexed = true;
            self.index.add(Cue {
                time,
                track: u64::from(track_number(frame.track)),
                cluster: cluster.at - segment,
                block: self.len - cluster.at - CLUSTER_HEAD,
            });
        }
        cluster.last = time;
        let since = (time - cluster.time) as i16;
        let before = out.append.len();
        Id::SIMPLE_BLOCK.put(&mut out.append);
        put_size(&mut out.append, frame.data.len() + 4);
        out.append.push(0x80 | track_number(frame.track));
        out.append.extend(since.to_be_bytes());
        out.append
            .push(if frame.keyframe || !is_video { 0x80 } else { 0 });
        out.append.extend_from_slice(frame.data);
        self.len += (out.append.len() - before) as u64;
        Ok(())
    }

    /// Frames are written at once.
    fn flush(&mut self, _: &mut Edits) {}

    fn finish(mut self: Box<Self>, out: &mut Edits) {
        self.close_cluster(out);
        let Some(begun) = self.begun else {
            return;
        };
        let mut cues = None;
        if !self.index.is_empty() {
            cues = Some(self.len - begun.segment);
            let mut bytes = Vec::new();
            self.index.put(&mut bytes);
            self.append(out, &bytes);
        }
        // There is room, which was reserved at the start.
        let Ok(mut header) = self.header(cues) else {
            return;
        };
        if header.fill(begun.room).is_ok() {
            let size = header.segment_size;
            self.patch(out, 0, header.bytes);
            let size_of_segment = wide_size(self.len - begun.segment);
            self.patch(out, size, size_of_segment.to_vec());
        }
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// Rounds to ms.
fn millis(time: Duration) -> u64 {
    let rounded = time.saturating_add(Duration::from_micros(500)).as_millis();
    u64::try_from(rounded).unwrap_or(u64::MAX)
}
