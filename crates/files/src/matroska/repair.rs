//! A file whose writer did not come to its end, made whole: what is torn is left out; sizes, duration and index are written.

use std::io::Write;
use std::time::Duration;

use mkv_element::io::blocking_impl::ReadFrom;
use mkv_element::prelude::{
    Block, BlockGroup, Cluster, Ebml, Element, Header as ElementHeader, Info, Segment, SimpleBlock,
    Timestamp, Tracks, VInt64,
};

use super::cues::{Cue, Index};
use super::ebml::{Id, put_element, wide_size};
use super::header::seek_head;
use super::{CLUSTER_HEAD, LONGEST_GUESS};
use crate::container::Repaired;
use crate::demux::{Input, decode_element, read_element_header};
use crate::{FileError, MAX_FRAME, MAX_INDEX};

/// The most clusters: of 2 s each they are 12 days.
const MAX_CLUSTERS: usize = 1 << 19;
/// The most that all parts of a header have, in bytes.
const MAX_HEAD: u64 = 4 << 20;
/// The number of a type of track.
const VIDEO: u64 = 1;
/// Nanoseconds of a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// Parts that are kept as they are: tracks, chapters, attachments, tags.
const KEPT: [Id; 4] = [
    Id::TRACKS,
    Id(0x1043_a770),
    Id(0x1941_a469),
    Id(0x1254_c367),
];

/// Reads a file as far as it is whole, and writes it anew.
pub(crate) fn repair(mut input: Input, out: &mut dyn Write) -> Result<Repaired, FileError> {
    let scan = Scan::new(&mut input)?;
    let head = Head::new(&scan);
    let write = |out: &mut dyn Write, bytes: &[u8]| out.write_all(bytes).map_err(FileError::Write);
    write(out, &head.bytes)?;
    for cluster in scan.kept_clusters().map(|(_, cluster)| cluster) {
        let mut bytes = Vec::with_capacity(CLUSTER_HEAD as usize);
        Id::CLUSTER.put(&mut bytes);
        bytes.extend(wide_size(cluster.len()));
        write(out, &bytes)?;
        for span in &cluster.spans {
            copy(&mut input, *span, out)?;
        }
    }
    write(out, &head.cues)?;
    Ok(Repaired {
        cut: input.len().saturating_sub(scan.end),
        was_whole: scan.is_whole,
        duration: scan.nanos(scan.duration()),
        frames: scan.frames,
    })
}

/// Bytes of the file, from where to where.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
}

impl Span {
    const fn len(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// A cluster as it is kept: its time and its blocks.
#[derive(Debug, Default)]
struct FoundCluster {
    time: Option<u64>,
    spans: Vec<Span>,
    has_blocks: bool,
}

impl FoundCluster {
    fn len(&self) -> u64 {
        self.spans.iter().map(|span| span.len()).sum()
    }

    /// One span for all that lies side by side.
    fn keep(&mut self, span: Span) {
        match self.spans.last_mut() {
            Some(last) if last.to == span.from => last.to = span.to,
            _ => self.spans.push(span),
        }
    }
}

#[derive(Debug)]
struct FoundTrack {
    number: u64,
    is_video: bool,
    /// The time of its last block and how long the one before lasted, in ticks.
    last: Option<u64>,
    step: u64,
}

/// A place for the index; positions are those of the new file.
#[derive(Debug)]
struct Place {
    cluster: usize,
    cue: Cue,
}

/// What is whole in a file.
struct Scan {
    /// The EBML header as it is.
    ebml: Vec<u8>,
    info: Info,
    /// Bytes of each of [`KEPT`] that there is.
    kept: Vec<Vec<u8>>,
    tracks: Vec<FoundTrack>,
    clusters: Vec<FoundCluster>,
    places: Vec<Place>,
    frames: u64,
    /// Where what is whole ends.
    end: u64,
    is_whole: bool,
}

impl Scan {
    fn new(input: &mut Input) -> Result<Self, FileError> {
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
        let mut scan = Self {
            ebml,
            info: Info::default(),
            kept: Vec::new(),
            tracks: Vec::new(),
            clusters: Vec::new(),
            places: Vec::new(),
            frames: 0,
            end: input.position(),
            is_whole: false,
        };
        let stop = told.unwrap_or(u64::MAX).min(input.len());
        let read = scan.read(input, stop);
        if scan.tracks.is_empty() || scan.frames == 0 {
            // Nothing to be saved: what is wrong with it is said instead.
            return Err(read.err().unwrap_or(FileError::Empty));
        }
        scan.is_whole = read.is_ok() && told == Some(input.len());
        Ok(scan)
    }

    /// Reads element by element; ends at what is damaged.
    fn read(&mut self, input: &mut Input, stop: u64) -> Result<(), FileError> {
        let mut body = Vec::new();
        while input.position() < stop {
            let at = input.position();
            let header = read_element_header(input)?;
            if header.id == Cluster::ID {
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
            let so_far: usize = self.kept.iter().map(Vec::len).sum();
            let room = MAX_HEAD.saturating_sub(so_far as u64);
            if header.id == Tracks::ID {
                input.read_into(body, size, room, "the tracks")?;
                self.found_tracks(&decode_element(body, "the tracks")?);
            }
            input.seek(span.from)?;
            input.read_into(body, span.len(), room, "a part of the header")?;
            match header.id == Tracks::ID {
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
            is_video: *entry.track_type == VIDEO,
            last: None,
            step: 0,
        });
        self.tracks = found.collect();
    }

    /// Takes note of a block that begins with `start`. A simple one says itself whether it is a keyframe.
    fn block(&mut self, start: &[u8], keyframe: Option<bool>, span: Span) -> Result<(), FileError> {
        let corrupt = || FileError::corrupt("a block");
        let mut rest = start;
        let number = *VInt64::read_from(&mut rest).map_err(|_| corrupt())?;
        let (fixed, rest) = rest.split_first_chunk::<3>().ok_or_else(corrupt)?;
        let [high, low, flags] = *fixed;
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
        }
        track.last = Some(track.last.unwrap_or(0).max(time));
        let keyframe = keyframe.unwrap_or(flags & 0x80 != 0);
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

    /// The clusters that have something, with their numbers.
    fn kept_clusters(&self) -> impl Iterator<Item = (usize, &FoundCluster)> {
        let clusters = self.clusters.iter().enumerate();
        clusters.filter(|(_, cluster)| cluster.has_blocks)
    }

    /// Nanoseconds of a tick.
    fn scale(&self) -> u64 {
        (*self.info.timestamp_scale).clamp(1, 1_000_000_000)
    }

    /// How long the file lasts, in ticks.
    fn duration(&self) -> u64 {
        let guess = LONGEST_GUESS.saturating_mul(MILLISECOND) / self.scale();
        let ends = self.tracks.iter();
        let ends = ends.filter_map(|track| Some(track.last?.saturating_add(track.step.min(guess))));
        ends.max().unwrap_or(0)
    }

    fn nanos(&self, ticks: u64) -> Duration {
        Duration::from_nanos(ticks.saturating_mul(self.scale()))
    }
}

/// The header of the new file, and its index.
struct Head {
    bytes: Vec<u8>,
    cues: Vec<u8>,
}

impl Head {
    fn new(scan: &Scan) -> Self {
        let mut info = Vec::new();
        let without = Info {
            duration: None,
            ..scan.info.clone()
        };
        // Writing into memory does not fail.
        let _ = without.encode_body(&mut info);
        Id::DURATION.put(&mut info);
        info.push(0x88);
        info.extend((scan.duration() as f64).to_be_bytes());
        let mut body = Vec::new();
        put_element(&mut body, Id::INFO, &info);
        let tracks = body.len() as u64;
        for kept in &scan.kept {
            body.extend_from_slice(kept);
        }

        let places = seek_head(0, 0, Some(0)).len() as u64;
        let mut at = places + body.len() as u64;
        let mut index = Index::default();
        let mut to_place = scan.places.iter().peekable();
        for (number, cluster) in scan.kept_clusters() {
            while let Some(place) = to_place.next_if(|place| place.cluster == number) {
                index.add(Cue {
                    cluster: at,
                    ..place.cue
                });
            }
            at = at
                .saturating_add(CLUSTER_HEAD)
                .saturating_add(cluster.len());
        }
        let mut cues = Vec::new();
        index.put(&mut cues);

        let mut bytes = scan.ebml.clone();
        Id::SEGMENT.put(&mut bytes);
        bytes.extend(wide_size(at.saturating_add(cues.len() as u64)));
        bytes.extend(seek_head(places, places + tracks, Some(at)));
        bytes.extend(body);
        Self { bytes, cues }
    }
}

fn copy(input: &mut Input, span: Span, out: &mut dyn Write) -> Result<(), FileError> {
    const PIECE: u64 = 64 << 10;
    let mut piece = Vec::new();
    input.seek(span.from)?;
    let mut left = span.len();
    while left > 0 {
        let len = left.min(PIECE);
        input.read_into(&mut piece, len, PIECE, "a cluster")?;
        out.write_all(&piece).map_err(FileError::Write)?;
        left -= len;
    }
    Ok(())
}
