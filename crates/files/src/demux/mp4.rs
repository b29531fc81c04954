//! MP4 (ISO/IEC 14496-12 and -14, -15): H.264, H.265, AV1, VP8, VP9 and Opus.

use mp4_atom::{FourCC, Header, ReadFrom, Stbl, StszSamples};
use portunus_rtp::packetize::{ParameterSets, PayloadFormat};

use super::boxes::{self, SampleEntry, Trak};
use super::sample_table::{Cursor, Sample};
use super::{Demux, Frame, Input, Nanos, fragments, nanos_of_ticks};
use crate::track::{Codec, Kind, TrackSource};
use crate::{FileError, MAX_FRAME, MAX_INDEX, OpenOptions};

/// The limit of skipped boxes outside of `moov`.
const MAX_BOXES: u32 = 100_000;

/// The limit of samples of a track: as many as fit an index with a size for each. An index with one
/// size for all can claim any number, and seeks iterate over them.
const MAX_SAMPLES: u32 = (MAX_INDEX / 4) as u32;

pub(super) fn open(mut input: Input, options: &OpenOptions) -> Result<Box<dyn Demux>, FileError> {
    let moov = read_moov(&mut input)?;
    let traks = boxes::traks(&moov)?;
    let movie = match traks.iter().any(|trak| trak.delay > 0) {
        true => boxes::movie_timescale(&moov)?,
        false => 0,
    };
    let duration = traks.iter().filter_map(|trak| {
        let own = nanos_of(trak.duration, trak.timescale)?;
        Some(own.saturating_add(delay_of(trak, movie)))
    });
    let duration = duration.max().filter(|nanos| *nanos > 0);
    let mut sources = Vec::new();
    let mut tracks = Vec::new();
    let mut ids = Vec::new();
    let mut traks: Vec<_> = traks.into_iter().map(Some).collect();
    for wanted in options.kinds() {
        let is_wanted = |trak: &Trak| kind_of(trak) == Some(wanted);
        let found = traks
            .iter_mut()
            .find(|trak| trak.as_ref().is_some_and(is_wanted))
            .and_then(Option::take);
        if let Some(trak) = found {
            ids.push(trak.id);
            let (source, track) = open_track(trak, wanted, movie)?;
            sources.push(source);
            tracks.push(track);
        }
    }
    if sources.is_empty() {
        return Err(FileError::NoTrack(options.wanted()));
    }
    for track in &mut tracks {
        track.advance()?;
    }
    if boxes::is_fragmented(&moov) && tracks.iter().all(|track| track.next.is_none()) {
        let tracks = ids.into_iter().zip(&tracks);
        let tracks = tracks.map(|(id, track)| fragments::IndexedTrack {
            id,
            timescale: track.timescale,
            start: track.start,
        });
        return fragments::open(input, sources, tracks, &boxes::trexes(&moov)?, duration);
    }
    // Frames that edit lists cut off are sent, too, because decoders need them. So all times are
    // shifted.
    let shift = tracks.iter().map(|track| track.start).max().unwrap_or(0);
    Ok(Box::new(Mp4 {
        duration,
        input,
        sources,
        tracks,
        shift,
    }))
}

#[derive(Debug)]
struct Mp4 {
    input: Input,
    sources: Vec<TrackSource>,
    tracks: Vec<TrackState>,
    shift: Nanos,
    duration: Option<Nanos>,
}

struct TrackState {
    table: Stbl,
    timescale: u32,
    /// The start of the edit list in the track's own time, or before it if it starts with empty
    /// edits.
    start: Nanos,
    cursor: Cursor,
    /// The next sample.
    next: Option<(Sample, Nanos)>,
}

impl TrackState {
    fn advance(&mut self) -> Result<(), FileError> {
        self.next = match self.cursor.next(&self.table)? {
            Some(sample) => Some((sample, self.nanos(sample.decoded)?)),
            None => None,
        };
        Ok(())
    }

    fn rewind(&mut self) -> Result<(), FileError> {
        self.cursor = Cursor::default();
        self.advance()
    }

    fn nanos(&self, ticks: i64) -> Result<Nanos, FileError> {
        nanos_of_ticks(ticks, self.timescale).ok_or_else(|| FileError::corrupt("a time"))
    }

    /// Returns the time for seeks.
    fn time(&self) -> Option<Nanos> {
        Some(self.next?.1.saturating_sub(self.start))
    }
}

impl std::fmt::Debug for TrackState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TrackState(next {:?})", self.next)
    }
}

impl Demux for Mp4 {
    fn tracks(&self) -> &[TrackSource] {
        &self.sources
    }

    fn read(&mut self, frame: &mut Frame) -> Result<bool, FileError> {
        let due = |track: &TrackState| track.time();
        let next = self.tracks.iter_mut().enumerate();
        let Some((index, track)) = next
            .filter(|(_, track)| track.next.is_some())
            .min_by_key(|(_, track)| due(track))
        else {
            return Ok(false);
        };
        let Some((sample, decoded)) = track.next else {
            return Ok(false);
        };
        let size = u64::from(sample.size);
        self.input.seek(sample.offset)?;
        self.input
            .read_into(&mut frame.data, size, MAX_FRAME, "a frame")?;
        let shift = self.shift.saturating_sub(track.start);
        frame.track = index;
        frame.at = decoded.saturating_add(shift);
        frame.presented = track.nanos(sample.presented)?.saturating_add(shift);
        frame.duration = track.nanos(i64::from(sample.duration))?;
        frame.keyframe = sample.keyframe;
        track.advance()?;
        Ok(true)
    }

    fn seek(&mut self, to: Nanos) -> Result<(), FileError> {
        let mut to = to;
        // Video comes first, so that audio starts with the keyframe.
        for track in self.tracks.iter_mut().rev() {
            track.rewind()?;
            let mut best = (track.cursor.clone(), track.next);
            while track.time().is_some_and(|time| time <= to) {
                if track.next.is_some_and(|(sample, _)| sample.keyframe) {
                    best = (track.cursor.clone(), track.next);
                }
                track.advance()?;
            }
            (track.cursor, track.next) = best;
            // A track that starts later must not cut the others.
            to = track.time().map_or(to, |time| time.max(0).min(to));
        }
        Ok(())
    }

    fn duration(&self) -> Option<Nanos> {
        self.duration
    }
}

/// Skips boxes up to the index.
fn read_moov(input: &mut Input) -> Result<Vec<u8>, FileError> {
    for _ in 0..MAX_BOXES {
        if input.is_at_end() {
            break;
        }
        let at = input.position();
        let header = Header::read_from(input).map_err(|error| match error {
            mp4_atom::Error::Io(_) | mp4_atom::Error::UnexpectedEof => {
                FileError::Truncated(input.len())
            }
            error => FileError::corrupt(format!("the box at {at}: {error}")),
        })?;
        let rest = input.len().saturating_sub(input.position());
        let size = header.size.map_or(rest, |size| size as u64);
        if header.kind != boxes::MOOV {
            input.skip(size)?;
            continue;
        }
        let mut body = Vec::new();
        input.read_into(&mut body, size, MAX_INDEX, "the moov box")?;
        return Ok(body);
    }
    Err(FileError::corrupt("there is no moov box"))
}

fn kind_of(trak: &Trak) -> Option<Kind> {
    let handler = trak.handler;
    if handler == FourCC::new(b"vide") {
        Some(Kind::Video)
    } else if handler == FourCC::new(b"soun") {
        Some(Kind::Audio)
    } else {
        None
    }
}

/// Returns a time of the file, or `None` out of range.
fn nanos_of(ticks: u64, rate: u32) -> Option<Nanos> {
    nanos_of_ticks(i64::try_from(ticks).ok()?, rate)
}

/// Returns by how much later than the movie a track starts.
fn delay_of(trak: &Trak, movie: u32) -> Nanos {
    nanos_of(trak.delay, movie).unwrap_or(0)
}

fn open_track(trak: Trak, kind: Kind, movie: u32) -> Result<(TrackSource, TrackState), FileError> {
    let source = source_of(&trak.entry).map_err(|codec| FileError::Codec {
        track: u64::from(trak.id),
        kind,
        codec,
        advice: advice_for(kind),
    })?;
    if source.track.codec.kind() != kind {
        return Err(FileError::corrupt("a track of two kinds"));
    }
    if source.track.channels > 2 {
        return Err(FileError::Unsupported(
            "Opus of more than two channels: mix it down to stereo",
        ));
    }
    if let StszSamples::Identical { count, .. } = trak.table.stsz.samples
        && count > MAX_SAMPLES
    {
        return Err(FileError::corrupt(format!("a track of {count} samples")));
    }
    if trak.timescale == 0 {
        return Err(FileError::corrupt("a track with timescale 0"));
    }
    let start = nanos_of(trak.start, trak.timescale).unwrap_or(0);
    let start = start.saturating_sub(delay_of(&trak, movie));
    let state = TrackState {
        table: trak.table,
        timescale: trak.timescale,
        start,
        cursor: Cursor::default(),
        next: None,
    };
    Ok((source, state))
}

pub(super) fn advice_for(kind: Kind) -> &'static str {
    match kind {
        Kind::Audio => {
            "WebRTC does not carry it; transcode it to Opus (ffmpeg -i … -c:v copy -c:a libopus …)"
        }
        Kind::Video => "transcode it to H.264, H.265, VP8, VP9 or AV1",
    }
}

/// Returns the conversion of samples to payloads, or the codec's name if there is none.
fn source_of(entry: &SampleEntry) -> Result<TrackSource, String> {
    Ok(match entry {
        SampleEntry::H264(config) => h264(config),
        SampleEntry::H265(config) => h265(config),
        SampleEntry::Av1(config) => av1(config.config_obus.clone()),
        SampleEntry::Vp8 => TrackSource::new(Codec::Vp8, PayloadFormat::Vp8),
        SampleEntry::Vp9(config) => {
            let mut source = TrackSource::new(Codec::Vp9, PayloadFormat::Vp9);
            source.track.fmtp = Some(format!("profile-id={}", config.profile));
            source
        }
        SampleEntry::Opus(head) => TrackSource::opus(head.output_channel_count.max(1)),
        SampleEntry::Other(kind) => return Err(name_of(*kind)),
    })
}

pub(super) fn av1(sequence_header: Vec<u8>) -> TrackSource {
    TrackSource::new(Codec::Av1, PayloadFormat::Av1 { sequence_header })
}

pub(super) fn h264(config: &mp4_atom::Avcc) -> TrackSource {
    let units = [
        config.sequence_parameter_sets.as_slice(),
        config.picture_parameter_sets.as_slice(),
    ]
    .concat();
    let mut source = TrackSource::new(
        Codec::H264,
        PayloadFormat::H264(ParameterSets {
            length_size: config.length_size,
            units,
        }),
    );
    source.track.fmtp = Some(format!(
        "profile-level-id={:02x}{:02x}{:02x};packetization-mode=1;level-asymmetry-allowed=1",
        config.avc_profile_indication, config.profile_compatibility, config.avc_level_indication
    ));
    source
}

pub(super) fn h265(config: &mp4_atom::Hvcc) -> TrackSource {
    let sets = |kind: u8| {
        let own = config.arrays.iter();
        let own = own.filter(move |array| array.nal_unit_type == kind);
        own.flat_map(|array| array.nalus.iter().cloned())
    };
    // Video, sequence and picture parameter sets.
    let units = sets(32).chain(sets(33)).chain(sets(34)).collect();
    let mut source = TrackSource::new(
        Codec::H265,
        PayloadFormat::H265(ParameterSets {
            length_size: config.length_size_minus_one.saturating_add(1),
            units,
        }),
    );
    source.track.fmtp = Some(format!(
        "profile-id={};tier-flag={};level-id={}",
        config.general_profile_idc,
        u8::from(config.general_tier_flag),
        config.general_level_idc
    ));
    source
}

fn name_of(kind: FourCC) -> String {
    match &<[u8; 4]>::from(kind) {
        b"mp4a" => "AAC",
        b".mp3" => "MP3",
        b"fLaC" => "FLAC",
        b"ac-3" => "AC-3",
        b"ec-3" => "E-AC-3",
        b"mp4v" => "MPEG-4 Visual",
        b"jpeg" => "JPEG",
        kind => return String::from_utf8_lossy(kind).escape_default().to_string(),
    }
    .to_owned()
}
