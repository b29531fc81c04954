//! WebM and Matroska (RFC 9559): VP8, VP9, AV1, H.264, H.265, Opus and G.711.
//!
//! The file is read element by element. Elements in unexpected places are skipped by their sizes.

use mkv_element::Lacer;
use mkv_element::io::blocking_impl::ReadFrom;
use mkv_element::prelude::{
    Block, BlockGroup, Cluster, CodecPrivate, Cues, DateUtc, Ebml, Element, Header, Info, SeekHead,
    Segment, SimpleBlock, Timestamp, TrackEntry, Tracks, VInt64,
};
use mp4_atom::Atom;
use portunus_rtp::packetize::PayloadFormat;

use super::mp4::{advice_for, av1, h264, h265};
use super::{ClockPlace, Demux, Frame, Input, Nanos, nanos_of_ticks, opus_duration};
use crate::matroska::{A_LAW, EPOCH, MU_LAW};
use crate::mjr::UnixMicros;
use crate::track::{Codec, Kind, TrackSource};
use crate::{FileError, MAX_FRAME, MAX_INDEX, OpenOptions};

const VIDEO: u64 = 1;
const AUDIO: u64 = 2;
/// The sampling rate of G.711.
const PCM_RATE: u32 = 8_000;
/// The limit of elements before the first cluster.
const MAX_ELEMENTS: u32 = 10_000;
/// The longest head of a block, with its track, its time and its flags.
const BLOCK_HEAD: u64 = 8 + 3;
/// The limit of clusters that a seek without an index iterates over.
const MAX_CLUSTERS: u32 = 1_000_000;

pub(super) fn open(mut input: Input, options: &OpenOptions) -> Result<Box<dyn Demux>, FileError> {
    let mut body = Vec::new();
    let header = read_header(&mut input)?;
    if header.id != Ebml::ID {
        return Err(FileError::UnknownType);
    }
    input.read_into(&mut body, *header.size, 64 << 10, "the EBML header")?;
    let ebml: Ebml = decode(&body, "the EBML header")?;
    let doc_type = ebml
        .doc_type
        .as_deref()
        .map(|name| name.trim_end_matches('\0'));
    if !matches!(doc_type, Some("webm" | "matroska")) {
        return Err(FileError::UnknownType);
    }
    let segment = read_header(&mut input)?;
    if segment.id != Segment::ID {
        return Err(FileError::corrupt("no segment after the EBML header"));
    }
    let start = input.position();
    let end = (!segment.size.is_unknown).then(|| start.saturating_add(*segment.size));

    let mut head = Head::default();
    for _ in 0..MAX_ELEMENTS {
        if input.is_at_end() {
            break;
        }
        let at = input.position();
        let header = read_header(&mut input)?;
        if header.id == Cluster::ID {
            return Webm::enter(input, start, end, at, head, options);
        }
        head.read(&mut input, &header, &mut body)?;
    }
    Err(FileError::Empty)
}

/// The elements before the first cluster.
#[derive(Default)]
struct Head {
    info: Option<Info>,
    tracks: Vec<TrackEntry>,
    /// The position of the index relative to the segment's start.
    cues: Option<u64>,
}

impl Head {
    fn read(
        &mut self,
        input: &mut Input,
        header: &Header,
        body: &mut Vec<u8>,
    ) -> Result<(), FileError> {
        if header.size.is_unknown {
            return Err(FileError::corrupt("an element of unknown size"));
        }
        let size = *header.size;
        if ![Info::ID, Tracks::ID, SeekHead::ID].contains(&header.id) {
            return input.skip(size);
        }
        input.read_into(body, size, MAX_INDEX, "a header")?;
        if header.id == Info::ID {
            self.info = Some(decode(body, "the segment's information")?);
        } else if header.id == Tracks::ID {
            self.tracks = decode::<Tracks>(body, "the tracks")?.track_entry;
        } else {
            let seek_head: SeekHead = decode(body, "the seek head")?;
            let id = [0x1c, 0x53, 0xbb, 0x6b];
            let cues = seek_head.seek.iter().find(|seek| seek.seek_id[..] == id);
            self.cues = cues.map(|seek| *seek.seek_position).or(self.cues);
        }
        Ok(())
    }
}

struct Webm {
    input: Input,
    /// The origin of positions, and the end of the segment, if it is known.
    segment: (u64, Option<u64>),
    first_cluster: u64,
    cues: Option<u64>,
    /// The nanoseconds of a tick.
    scale: i64,
    duration: Option<Nanos>,
    /// The time of day of time 0.
    began: Option<UnixMicros>,
    sources: Vec<TrackSource>,
    /// For each of `sources`, the number of the track, and the duration of a frame, if the file has
    /// it.
    numbers: Vec<(u64, Option<Nanos>)>,
    cluster_time: u64,
    /// The current block.
    body: Vec<u8>,
    laced: Laced,
}

/// The remaining frames of a block.
#[derive(Debug, Default)]
struct Laced {
    sizes: std::collections::VecDeque<usize>,
    from: usize,
    track: usize,
    at: Nanos,
    keyframe: bool,
}

impl Webm {
    fn enter(
        mut input: Input,
        start: u64,
        end: Option<u64>,
        first_cluster: u64,
        head: Head,
        options: &OpenOptions,
    ) -> Result<Box<dyn Demux>, FileError> {
        let info = head.info.unwrap_or_default();
        let scale = i64::try_from(*info.timestamp_scale)
            .ok()
            .filter(|scale| (1..=1_000_000_000).contains(scale))
            .ok_or_else(|| FileError::corrupt("the timestamp scale"))?;
        let (mut sources, mut numbers) = (Vec::new(), Vec::new());
        for wanted in options.kinds() {
            let kind = if wanted == Kind::Video { VIDEO } else { AUDIO };
            let Some(entry) = head.tracks.iter().find(|entry| *entry.track_type == kind) else {
                continue;
            };
            sources.push(source_of(entry, wanted)?);
            let each = entry.default_duration.as_ref();
            let each = each.and_then(|nanos| Nanos::try_from(**nanos).ok());
            numbers.push((*entry.track_number, each));
        }
        if sources.is_empty() {
            return Err(FileError::NoTrack(options.wanted()));
        }
        input.seek(first_cluster)?;
        let ticks = info.duration.map_or(0.0, |duration| *duration);
        Ok(Box::new(Self {
            input,
            segment: (start, end),
            first_cluster,
            cues: head.cues,
            scale,
            // Casting a float saturates, and turns NaN into 0.
            duration: Some((ticks * scale as f64) as Nanos).filter(|nanos| *nanos > 0),
            began: info.date_utc.and_then(|DateUtc(nanos)| micros(nanos)),
            sources,
            numbers,
            cluster_time: 0,
            body: Vec::new(),
            laced: Laced::default(),
        }))
    }

    /// Reads up to the next block with a frame of a played track.
    fn next_block(&mut self) -> Result<bool, FileError> {
        loop {
            let (at, (_, end)) = (self.input.position(), self.segment);
            if end.is_some_and(|end| at >= end) {
                return Ok(false);
            }
            if self.input.is_at_end() {
                return match end {
                    Some(_) => Err(FileError::Truncated(self.input.len())),
                    None => Ok(false),
                };
            }
            let header = read_header(&mut self.input)?;
            let size = *header.size;
            if header.id == Cluster::ID {
                self.cluster_time = 0;
            } else if header.size.is_unknown {
                return Err(FileError::corrupt("an element of unknown size"));
            } else if header.id == Timestamp::ID {
                self.input.read_into(&mut self.body, size, 8, "a time")?;
                self.cluster_time = *decode::<Timestamp>(&self.body, "a time")?;
            } else if header.id == SimpleBlock::ID {
                self.input
                    .read_into(&mut self.body, size, MAX_FRAME, "a block")?;
                if self.begin_block(None)? {
                    return Ok(true);
                }
            } else if header.id == BlockGroup::ID {
                self.input
                    .read_into(&mut self.body, size, MAX_FRAME, "a block")?;
                let group: BlockGroup = decode(&self.body, "a block group")?;
                let keyframe = group.reference_block.is_empty();
                let Block(block) = group.block;
                self.body = block.into();
                if self.begin_block(Some(keyframe))? {
                    return Ok(true);
                }
            } else {
                self.input.skip(size)?;
            }
        }
    }

    /// Splits the block in `body`. Returns false if its track is not played. A simple block has its
    /// own keyframe flag.
    fn begin_block(&mut self, keyframe: Option<bool>) -> Result<bool, FileError> {
        let corrupt = || FileError::corrupt("a block");
        let mut rest = self.body.as_slice();
        let number = VInt64::read_from(&mut rest).map_err(|_| corrupt())?;
        let (fixed, data) = rest.split_first_chunk::<3>().ok_or_else(corrupt)?;
        let [high, low, flags] = *fixed;
        let Some(track) = self.numbers.iter().position(|(own, _)| *own == *number) else {
            return Ok(false);
        };
        let ticks = i64::try_from(self.cluster_time)
            .ok()
            .and_then(|time| time.checked_add(i64::from(i16::from_be_bytes([high, low]))));
        let at = ticks.and_then(|ticks| ticks.checked_mul(self.scale));
        self.laced.sizes.clear();
        let lacer = match (flags >> 1) & 3 {
            0 => None,
            1 => Some(Lacer::Xiph),
            2 => Some(Lacer::FixedSize),
            _ => Some(Lacer::Ebml),
        };
        match lacer {
            None => self.laced.sizes.push_back(data.len()),
            Some(lacer) => {
                // The number of frames less one, and then at least a byte for each.
                let frames = data.first().map_or(0, |count| usize::from(*count) + 1);
                if data.len() <= frames {
                    return Err(corrupt());
                }
                let parts = lacer.delace(data).map_err(|_| corrupt())?;
                self.laced.sizes.extend(parts.iter().map(|part| part.len()));
            }
        }
        let total: usize = self.laced.sizes.iter().sum();
        self.laced.from = self.body.len().checked_sub(total).ok_or_else(corrupt)?;
        self.laced.track = track;
        self.laced.at = at.ok_or_else(corrupt)?;
        self.laced.keyframe = keyframe.unwrap_or(flags & 0x80 != 0);
        Ok(!self.laced.sizes.is_empty())
    }

    /// Returns the number of the track that needs a keyframe after a seek: the video, if there is
    /// one.
    fn lead(&self) -> Option<u64> {
        let mut tracks = self.sources.iter().zip(&self.numbers);
        let video = tracks.find(|(source, _)| source.track.codec.kind() == Kind::Video);
        video.map(|(_, (number, _))| *number)
    }

    /// Returns the last cluster in the index at or before `ticks`. With `lead`, it must have a
    /// keyframe of that track: an index also contains clusters for the audio.
    fn by_cues(&mut self, ticks: u64, lead: Option<u64>) -> Result<Option<u64>, FileError> {
        let Some(cues) = self.cues else {
            return Ok(None);
        };
        self.input.seek(self.segment.0.saturating_add(cues))?;
        let header = read_header(&mut self.input)?;
        if header.id != Cues::ID {
            return Ok(None);
        }
        self.input
            .read_into(&mut self.body, *header.size, MAX_INDEX, "the index")?;
        let cues: Cues = decode(&self.body, "the index")?;
        let behind = cues.cue_point.iter().filter(|cue| *cue.cue_time <= ticks);
        let places = behind.filter_map(|cue| {
            let mut places = cue.cue_track_positions.iter();
            let place = places.find(|it| lead.is_none_or(|lead| *it.cue_track == lead))?;
            Some((*cue.cue_time, *place.cue_cluster_position))
        });
        let Some((_, place)) = places.max_by_key(|(time, _)| *time) else {
            return Ok(None);
        };
        let (start, _) = self.segment;
        let cluster = start.saturating_add(place);
        self.input.seek(cluster)?;
        let header = read_header(&mut self.input)?;
        Ok((header.id == Cluster::ID).then_some(cluster))
    }

    /// Finds the cluster by iterating over all clusters, up to a malformed or incomplete one.
    fn by_walking(&mut self, ticks: u64, lead: Option<u64>) -> u64 {
        let mut clusters = Vec::new();
        let _ = self.walk(ticks, &mut clusters);
        let mut found = clusters.into_iter().rev();
        let found = match lead {
            None => found.next(),
            Some(lead) => found.find(|it| self.has_keyframe(*it, lead, ticks).unwrap_or(false)),
        };
        found.unwrap_or(self.first_cluster)
    }

    /// Whether a cluster has a keyframe of a track at or before `ticks`.
    fn has_keyframe(&mut self, cluster: u64, track: u64, ticks: u64) -> Result<bool, FileError> {
        self.input.seek(cluster)?;
        read_header(&mut self.input)?;
        let mut time = 0;
        while !self.input.is_at_end() {
            let header = read_header(&mut self.input)?;
            if header.id == Cluster::ID || header.size.is_unknown {
                break;
            }
            let size = *header.size;
            let behind = self.input.position().saturating_add(size);
            let keyframe = if header.id == Timestamp::ID {
                self.input.read_into(&mut self.body, size, 8, "a time")?;
                time = *decode::<Timestamp>(&self.body, "a time")?;
                continue;
            } else if header.id == SimpleBlock::ID {
                let start = size.min(BLOCK_HEAD);
                self.input
                    .read_into(&mut self.body, start, BLOCK_HEAD, "a block")?;
                None
            } else if header.id == BlockGroup::ID {
                self.input
                    .read_into(&mut self.body, size, MAX_FRAME, "a block")?;
                let group: BlockGroup = decode(&self.body, "a block group")?;
                let Block(block) = group.block;
                self.body = block.into();
                Some(group.reference_block.is_empty())
            } else {
                self.input.skip(size)?;
                continue;
            };
            let block = BlockStart::read(&self.body, time, keyframe)?;
            if block.number == track && block.keyframe && block.ticks <= i128::from(ticks) {
                return Ok(true);
            }
            self.input.seek(behind)?;
        }
        Ok(false)
    }

    /// Collects the clusters that start at or before `ticks`, up to the first that does not.
    fn walk(&mut self, ticks: u64, clusters: &mut Vec<u64>) -> Result<(), FileError> {
        let (mut cluster, mut count) = (self.first_cluster, 0);
        // The end of the cluster, if it is known.
        let mut end = None;
        self.input.seek(cluster)?;
        while !self.input.is_at_end() {
            let at = self.input.position();
            let header = read_header(&mut self.input)?;
            let size = *header.size;
            if header.id == Cluster::ID {
                count += 1;
                if count > MAX_CLUSTERS {
                    break;
                }
                cluster = at;
                end = (!header.size.is_unknown).then(|| self.input.position().saturating_add(size));
            } else if header.size.is_unknown {
                break;
            } else if header.id == Timestamp::ID {
                self.input.read_into(&mut self.body, size, 8, "a time")?;
                if *decode::<Timestamp>(&self.body, "a time")? > ticks {
                    break;
                }
                if clusters.last() != Some(&cluster) {
                    clusters.push(cluster);
                }
                // An end before the position is invalid: each step must advance.
                let end = end.filter(|end| *end > self.input.position());
                if let Some(end) = end {
                    self.input.seek(end)?;
                }
            } else {
                self.input.skip(size)?;
            }
        }
        Ok(())
    }
}

/// The start of a block.
struct BlockStart {
    /// The number of its track.
    number: u64,
    /// Its time: that of its cluster plus a difference.
    ticks: i128,
    keyframe: bool,
}

impl BlockStart {
    /// Reads it from the first bytes of a block in a cluster of this time. A simple block has its
    /// own keyframe flag.
    fn read(mut bytes: &[u8], time: u64, keyframe: Option<bool>) -> Result<Self, FileError> {
        let corrupt = || FileError::corrupt("a block");
        let number = *VInt64::read_from(&mut bytes).map_err(|_| corrupt())?;
        let [high, low, flags] = *bytes.first_chunk().ok_or_else(corrupt)?;
        Ok(Self {
            number,
            ticks: i128::from(time) + i128::from(i16::from_be_bytes([high, low])),
            keyframe: keyframe.unwrap_or(flags & 0x80 != 0),
        })
    }
}

impl Demux for Webm {
    fn tracks(&self) -> &[TrackSource] {
        &self.sources
    }

    fn read(&mut self, frame: &mut Frame) -> Result<bool, FileError> {
        if self.laced.sizes.is_empty() && !self.next_block()? {
            return Ok(false);
        }
        let laced = &mut self.laced;
        let size = laced.sizes.pop_front().unwrap_or(0);
        let to = laced.from.saturating_add(size);
        let data = self.body.get(laced.from..to).unwrap_or_default();
        laced.from = to;
        let default_duration = self.numbers.get(laced.track).and_then(|(_, each)| *each);
        let codec = self
            .sources
            .get(laced.track)
            .map(|source| source.track.codec);
        let duration = match codec {
            Some(Codec::Opus) => opus_duration(data)
                .ok_or_else(|| FileError::corrupt("an Opus packet without duration"))?,
            Some(Codec::Pcmu | Codec::Pcma) => {
                let samples = i64::try_from(data.len()).unwrap_or(0);
                nanos_of_ticks(samples, PCM_RATE).unwrap_or(0)
            }
            _ => default_duration.unwrap_or(0),
        };
        let is_audio = codec.is_some_and(|codec| codec.kind() == Kind::Audio);
        frame.data.clear();
        frame.data.extend_from_slice(data);
        frame.track = laced.track;
        frame.at = laced.at;
        frame.presented = laced.at;
        frame.duration = duration;
        frame.keyframe = laced.keyframe || is_audio;
        laced.at = laced.at.saturating_add(duration);
        Ok(true)
    }

    fn seek(&mut self, to: Nanos) -> Result<(), FileError> {
        self.laced.sizes.clear();
        self.cluster_time = 0;
        let ticks = u64::try_from(to.checked_div(self.scale).unwrap_or(0)).unwrap_or(0);
        let cluster = match ticks {
            0 => self.first_cluster,
            // A broken index is ignored.
            _ => {
                let lead = self.lead();
                match self.by_cues(ticks, lead).ok().flatten() {
                    Some(cluster) => cluster,
                    None => self.by_walking(ticks, lead),
                }
            }
        };
        self.input.seek(cluster)
    }

    fn duration(&self) -> Option<Nanos> {
        self.duration
    }

    fn clock(&self) -> Vec<ClockPlace> {
        let place = self.began.map(|clock| ClockPlace { at: 0, clock });
        place.into_iter().collect()
    }
}

/// Converts a date of the file to µs since 1970. Returns `None` before that.
fn micros(nanos: i64) -> Option<UnixMicros> {
    let micros = (nanos / 1_000).checked_add(EPOCH)?;
    u64::try_from(micros).ok().map(UnixMicros)
}

impl std::fmt::Debug for Webm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Webm({:?})", self.input)
    }
}

/// Reads the identifier and the size of the next element.
pub(crate) fn read_header(input: &mut Input) -> Result<Header, FileError> {
    let at = input.position();
    let (id, _) = read_number(input, at)?;
    let (size, bytes) = read_number(input, at)?;
    // If all bits are ones, the size is unknown (RFC 8794 section 6.2). The library knows this for
    // one byte only.
    let ones = 1_u64.checked_shl(7 * bytes).map(|bits| bits - 1);
    let size = match Some(*size) == ones {
        true => VInt64::new_unknown(),
        false => size,
    };
    Ok(Header { id, size })
}

/// Reads a number of the header at `at`, and returns its length in bytes, 1 to 8.
fn read_number(input: &mut Input, at: u64) -> Result<(VInt64, u32), FileError> {
    let before = input.position();
    let number = VInt64::read_from(input).map_err(|error| match error {
        mkv_element::Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            FileError::Truncated(input.len())
        }
        mkv_element::Error::Io(error) => error.into(),
        _ => FileError::corrupt(format!("no element at byte {at}")),
    })?;
    Ok((number, (input.position() - before) as u32))
}

/// Decodes the body of an element.
pub(crate) fn decode<T: Element>(body: &[u8], what: &str) -> Result<T, FileError> {
    T::decode_body(&mut &*body).map_err(|error| FileError::corrupt(format!("{what}: {error}")))
}

fn source_of(entry: &TrackEntry, kind: Kind) -> Result<TrackSource, FileError> {
    if entry.content_encodings.is_some() {
        return Err(FileError::Unsupported(
            "a compressed or encrypted track: remux it with ffmpeg -i … -c copy …",
        ));
    }
    let empty = CodecPrivate::default();
    let private = entry.codec_private.as_ref().unwrap_or(&empty);
    let unknown = |codec: &str| FileError::Codec {
        track: *entry.track_number,
        kind,
        codec: codec.chars().take(64).collect(),
        advice: advice_for(kind),
    };
    let source = match (kind, &entry.codec_id[..]) {
        (Kind::Video, "V_VP8") => TrackSource::new(Codec::Vp8, PayloadFormat::Vp8),
        (Kind::Video, "V_VP9") => TrackSource::new(Codec::Vp9, PayloadFormat::Vp9),
        // Four bytes of flags come before the OBUs.
        (Kind::Video, "V_AV1") => av1(private.get(4..).unwrap_or_default().to_vec()),
        (Kind::Video, "V_MPEG4/ISO/AVC") => {
            let config = mp4_atom::Avcc::decode_body(&mut &private[..]);
            h264(&config.map_err(|error| FileError::corrupt(format!("H.264's setup: {error}")))?)
        }
        (Kind::Video, "V_MPEGH/ISO/HEVC") => {
            let config = mp4_atom::Hvcc::decode_body(&mut &private[..]);
            h265(&config.map_err(|error| FileError::corrupt(format!("H.265's setup: {error}")))?)
        }
        (Kind::Audio, "A_OPUS") => {
            let channels = entry.audio.as_ref().map_or(1, |audio| *audio.channels);
            if channels > 2 {
                return Err(FileError::Unsupported(
                    "Opus of more than two channels: mix it down to stereo",
                ));
            }
            TrackSource::opus(if channels == 2 { 2 } else { 1 })
        }
        (Kind::Audio, "A_MS/ACM") => {
            let codec = pcm(entry, private).ok_or_else(|| unknown("A_MS/ACM"))?;
            TrackSource::new(codec, PayloadFormat::Whole)
        }
        (_, codec) if codec.starts_with("A_AAC") => return Err(unknown("AAC")),
        (_, codec) => return Err(unknown(codec)),
    };
    Ok(source)
}

/// Returns the G.711 codec of a WAVEFORMATEX structure, if it has one channel and RTP's rate.
fn pcm(entry: &TrackEntry, format: &[u8]) -> Option<Codec> {
    let audio = entry.audio.as_ref()?;
    if *audio.channels != 1 || *audio.sampling_frequency != f64::from(PCM_RATE) {
        return None;
    }
    match u16::from_le_bytes(*format.first_chunk()?) {
        MU_LAW => Some(Codec::Pcmu),
        A_LAW => Some(Codec::Pcma),
        _ => None,
    }
}
