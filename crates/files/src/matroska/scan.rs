//! The intact content of a file.

use std::time::Duration;

use mkv_element::io::blocking_impl::ReadFrom;
use mkv_element::prelude::{
    Block, BlockGroup, Cluster, Ebml, Element, Header as ElementHeader, Info, Segment, SimpleBlock,
    Timestamp, Tracks, VInt64,
};

use super::cues::Cue;
use super::ebml::Id;
use super::{A_LAW, LONGEST_GUESS};
use crate::bitstream::Picture;
use crate::demux::{Input, decode_element, read_element_header};
use crate::{FileError, MAX_FRAME, MAX_INDEX};

/// The limit of clusters: 12 days with 2 s each.
const MAX_CLUSTERS: usize = 1 << 19;
/// The greatest size of all parts of a header, in bytes.
const MAX_HEAD: u64 = 4 << 20;
/// The type of a video track.
const VIDEO: u64 = 1;
/// In ns.
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
/// The limit of reported gaps of a track.
const MAX_GAPS: usize = 1_000;

/// Parts that are kept unchanged: tracks, chapters, attachments, tags.
const KEPT: [Id; 4] = [
    Id::TRACKS,
    Id(0x1043_a770),
    Id(0x1941_a469),
    Id(0x1254_c367),
];

/// A range of bytes in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub from: u64,
    pub to: u64,
}

impl Span {
    pub const fn len(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// A cluster with its time and its blocks.
#[derive(Debug, Default)]
pub(crate) struct FoundCluster {
    pub time: Option<u64>,
    pub spans: Vec<Span>,
    has_blocks: bool,
}

impl FoundCluster {
    pub fn len(&self) -> u64 {
        self.spans.iter().map(|span| span.len()).sum()
    }

    /// Joins adjacent spans.
    fn keep(&mut self, span: Span) {
        match self.spans.last_mut() {
            Some(last) if last.to == span.from => last.to = span.to,
            _ => self.spans.push(span),
        }
    }
}

#[derive(Debug)]
pub(crate) struct FoundTrack {
    number: u64,
    /// The codec's name in the file.
    pub codec: String,
    /// Whether G.711 is A-law.
    pub is_a_law: bool,
    pub is_video: bool,
    /// The size of pictures, and the channels of audio.
    pub picture: Option<Picture>,
    pub channels: Option<u64>,
    pub frames: u64,
    pub keyframes: u64,
    /// The times of its first and last block, and the distance of the last two, in ticks.
    pub first: Option<u64>,
    pub last: Option<u64>,
    pub step: u64,
    /// The times of more than a second without frames, in ticks.
    pub gaps: Vec<(u64, u64)>,
}

/// An entry for the index. Positions are those in the new file.
#[derive(Debug)]
pub(crate) struct Place {
    pub cluster: usize,
    pub cue: Cue,
}

/// The intact content of a file.
pub(crate) struct Scan {
    /// The EBML header, unchanged.
    pub ebml: Vec<u8>,
    pub info: Info,
    /// The bytes of each of [`KEPT`] in the file.
    pub kept: Vec<Vec<u8>>,
    pub tracks: Vec<FoundTrack>,
    pub clusters: Vec<FoundCluster>,
    pub places: Vec<Place>,
    pub frames: u64,
    /// The end of the intact content.
    pub end: u64,
    /// Whether the file has a regular end and no damage.
    pub is_whole: bool,
    /// The problem, if any.
    pub problem: Option<FileError>,
    header_only: bool,
    has_tracks: bool,
}

impl FoundTrack {
    /// Returns the codec's name in WebRTC in lower case, or else the name in the file.
    pub fn codec_name(&self) -> String {
        match self.codec.as_str() {
            "V_VP8" => "vp8",
            "V_VP9" => "vp9",
            "V_AV1" => "av1",
            "V_MPEG4/ISO/AVC" => "h264",
            "V_MPEGH/ISO/HEVC" => "h265",
            "A_OPUS" => "opus",
            "A_MS/ACM" if self.is_a_law => "pcma",
            "A_MS/ACM" => "pcmu",
            other => other,
        }
        .to_owned()
    }
}

impl Scan {
    /// Reads each block of a file, without the frames.
    pub fn new(input: &mut Input) -> Result<Self, FileError> {
        let (mut scan, stop) = Self::begin(input)?;
        let read = scan.read(input, stop.unwrap_or(u64::MAX).min(input.len()));
        if scan.tracks.is_empty() || scan.frames == 0 {
            // There is nothing to repair, so the error is returned.
            return Err(read.err().unwrap_or(FileError::Empty));
        }
        scan.is_whole = read.is_ok() && stop == Some(input.len());
        scan.problem = read.err();
        Ok(scan)
    }

    /// Reads the header only.
    pub fn of_header(input: &mut Input) -> Result<Self, FileError> {
        let (mut scan, stop) = Self::begin(input)?;
        scan.header_only = true;
        scan.read(input, stop.unwrap_or(u64::MAX).min(input.len()))?;
        scan.is_whole = stop == Some(input.len());
        Ok(scan)
    }

    /// Reads up to the first element of the segment. Returns the end of the segment, if it is
    /// known.
    fn begin(input: &mut Input) -> Result<(Self, Option<u64>), FileError> {
        let header = read_element_header(input)?;
        if header.id != Ebml::ID || header.size.is_unknown {
            return Err(FileError::UnknownType);
        }
        input.skip(*header.size)?;
        let (len, mut ebml) = (input.position(), Vec::new());
        input.seek(0)?;
        input.read_into(&mut ebml, len, 64 << 10, "the EBML header")?;
        let segment = read_element_header(input)?;
        if segment.id != Segment::ID {
            return Err(FileError::corrupt("no segment after the EBML header"));
        }
        let told =
            (!segment.size.is_unknown).then(|| input.position().saturating_add(*segment.size));
        let scan = Self {
            ebml,
            info: Info::default(),
            kept: Vec::new(),
            tracks: Vec::new(),
            clusters: Vec::new(),
            places: Vec::new(),
            frames: 0,
            end: input.position(),
            is_whole: false,
            problem: None,
            header_only: false,
            has_tracks: false,
        };
        Ok((scan, told))
    }

    /// Reads elements up to damage.
    fn read(&mut self, input: &mut Input, stop: u64) -> Result<(), FileError> {
        let mut body = Vec::new();
        while input.position() < stop {
            let at = input.position();
            let header = read_element_header(input)?;
            if header.id == Cluster::ID {
                if self.header_only {
                    return Ok(());
                }
                if self.clusters.len() >= MAX_CLUSTERS {
                    return Err(FileError::corrupt("too many clusters"));
                }
                self.clusters.push(FoundCluster::default());
                self.end = input.position();
                continue;
            }
            if header.size.is_unknown {
                return Err(FileError::corrupt("an element of unknown size"));
            }
            let to = input.position().saturating_add(*header.size);
            if to > input.len() {
                return Err(FileError::Truncated(input.len()));
            }
            self.element(input, &header, Span { from: at, to }, &mut body)?;
            input.seek(to)?;
            self.end = to;
        }
        Ok(())
    }

    fn element(
        &mut self,
        input: &mut Input,
        header: &ElementHeader,
        span: Span,
        body: &mut Vec<u8>,
    ) -> Result<(), FileError> {
        let size = *header.size;
        if header.id == Info::ID {
            input.read_into(body, size, MAX_INDEX, "the segment's information")?;
            self.info = decode_element(body, "the segment's information")?;
        } else if KEPT
            .iter()
            .any(|id| u64::from(id.0) == header.id.as_encoded())
        {
            let is_tracks = header.id == Tracks::ID;
            if is_tracks && self.has_tracks {
                // A second one is a copy, or wrong.
                return Ok(());
            }
            let so_far: usize = self.kept.iter().map(Vec::len).sum();
            let room = MAX_HEAD.saturating_sub(so_far as u64);
            if is_tracks {
                input.read_into(body, size, room, "the tracks")?;
                self.found_tracks(&decode_element(body, "the tracks")?);
                self.has_tracks = true;
            }
            input.seek(span.from)?;
            input.read_into(body, span.len(), room, "a part of the header")?;
            match is_tracks {
                true => self.kept.insert(0, body.clone()),
                false => self.kept.push(body.clone()),
            }
        } else if header.id == Timestamp::ID {
            input.read_into(body, size, 8, "a time")?;
            let time: Timestamp = decode_element(body, "a time")?;
            if let Some(cluster) = self.clusters.last_mut() {
                cluster.time = Some(*time);
                cluster.keep(span);
            }
        } else if header.id == SimpleBlock::ID {
            let mut start = [0; 13];
            let wanted = size.min(start.len() as u64) as usize;
            let start = start.get_mut(..wanted).unwrap_or_default();
            input.read_up_to(start)?;
            self.block(start, None, span)?;
        } else if header.id == BlockGroup::ID {
            input.read_into(body, size, MAX_FRAME, "a block")?;
            let group: BlockGroup = decode_element(body, "a block group")?;
            let keyframe = group.reference_block.is_empty();
            let Block(block) = group.block;
            self.block(&block, Some(keyframe), span)?;
        }
        Ok(())
    }

    fn found_tracks(&mut self, tracks: &Tracks) {
        let found = tracks.track_entry.iter().map(|entry| FoundTrack {
            number: *entry.track_number,
            codec: entry.codec_id.to_string(),
            is_a_law: (entry.codec_private.as_ref())
                .is_some_and(|private| private.starts_with(&A_LAW.to_le_bytes())),
            is_video: *entry.track_type == VIDEO,
            picture: entry.video.as_ref().and_then(|video| {
                Some(Picture {
                    width: u32::try_from(*video.pixel_width).ok()?,
                    height: u32::try_from(*video.pixel_height).ok()?,
                })
            }),
            channels: entry.audio.as_ref().map(|audio| *audio.channels),
            frames: 0,
            keyframes: 0,
            first: None,
            last: None,
            step: 0,
            gaps: Vec::new(),
        });
        self.tracks = found.collect();
    }

    /// Notes a block that starts with `start`. A simple block has its own keyframe flag.
    fn block(&mut self, start: &[u8], keyframe: Option<bool>, span: Span) -> Result<(), FileError> {
        let corrupt = || FileError::corrupt("a block");
        let second = SECOND / self.scale();
        let mut rest = start;
        let number = *VInt64::read_from(&mut rest).map_err(|_| corrupt())?;
        let (fixed, rest) = rest.split_first_chunk::<3>().ok_or_else(corrupt)?;
        let [high, low, flags] = *fixed;
        if !self.has_tracks {
            return Err(FileError::corrupt("a block before the tracks"));
        }
        let cluster = self.clusters.last_mut().ok_or_else(corrupt)?;
        let time = cluster.time.ok_or_else(corrupt)?;
        let time = time.saturating_add_signed(i64::from(i16::from_be_bytes([high, low])));
        let laced = flags & 0b110 != 0;
        let frames = match rest.first() {
            Some(more) if laced => u64::from(*more) + 1,
            _ => 1,
        };
        let place = cluster.len();
        cluster.keep(span);
        let is_first = !cluster.has_blocks;
        cluster.has_blocks = true;
        self.frames = self.frames.saturating_add(frames);
        let Some(track) = self.tracks.iter_mut().find(|track| track.number == number) else {
            return Ok(());
        };
        if let Some(last) = track.last {
            track.step = time.saturating_sub(last);
            if track.step > second && track.gaps.len() < MAX_GAPS {
                track.gaps.push((last, time));
            }
        }
        track.frames = track.frames.saturating_add(frames);
        track.first = track.first.or(Some(time));
        track.last = Some(track.last.unwrap_or(0).max(time));
        let keyframe = keyframe.unwrap_or(flags & 0x80 != 0);
        track.keyframes += u64::from(keyframe);
        if track.is_video && keyframe || is_first && !track.is_video {
            self.places.push(Place {
                cluster: self.clusters.len() - 1,
                cue: Cue {
                    time,
                    track: number,
                    cluster: 0,
                    block: place,
                },
            });
        }
        Ok(())
    }

    /// Returns the clusters with content, with their numbers.
    pub fn kept_clusters(&self) -> impl Iterator<Item = (usize, &FoundCluster)> {
        let clusters = self.clusters.iter().enumerate();
        clusters.filter(|(_, cluster)| cluster.has_blocks)
    }

    /// Returns the nanoseconds of a tick.
    fn scale(&self) -> u64 {
        (*self.info.timestamp_scale).clamp(1, 1_000_000_000)
    }

    /// Returns the duration in ticks.
    pub fn duration(&self) -> u64 {
        let guess = LONGEST_GUESS.saturating_mul(MILLISECOND) / self.scale();
        let ends = self.tracks.iter();
        let ends = ends.filter_map(|track| Some(track.last?.saturating_add(track.step.min(guess))));
        ends.max().unwrap_or(0)
    }

    /// Returns the duration in the header.
    pub fn header_duration(&self) -> Option<Duration> {
        let ticks = **self.info.duration.as_ref()?;
        // Casting a float saturates, and turns NaN into 0.
        Some(self.nanos(ticks as u64)).filter(|duration| !duration.is_zero())
    }

    /// Whether the file is WebM.
    pub fn is_webm(&self) -> bool {
        self.ebml.windows(4).any(|bytes| bytes == b"webm")
    }

    pub fn nanos(&self, ticks: u64) -> Duration {
        Duration::from_nanos(ticks.saturating_mul(self.scale()))
    }
}
