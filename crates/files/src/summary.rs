//! The summary of a recorded file, for people.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use portunus_rtp::Header;

use crate::bitstream::Picture;
use crate::demux::{Frame, Input, boxes, open_path};
use crate::matroska::Scan;
use crate::mjr::{FrameReader, Info, Medium};
use crate::playback::Unwrap;
use crate::track::Kind;
use crate::{FileError, MediaFile, OpenOptions};

/// The shortest time without packets or frames that counts as a gap.
const GAP: Duration = Duration::from_secs(1);
/// The end of a recording that is searched for its last frame: two frames of the greatest length.
const TAIL: u64 = 2 * (64 << 10);
/// The bytes that are read at once.
const PIECE: usize = 64 << 10;

/// The part of a file that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The beginning and the end.
    Ends,
    /// Every frame.
    All,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// The format: `mjr`, `webm`, `mkv`, `mp4`, `opus`.
    pub format: &'static str,
    /// The length in bytes.
    pub bytes: u64,
    /// The duration, if it is known.
    pub duration: Option<Duration>,
    /// Whether the file has a regular end.
    pub complete: bool,
    /// The problem with it, if any.
    pub problem: Option<String>,
    /// The tracks.
    pub tracks: Vec<TrackSummary>,
    /// The header of a recording in Janus's format.
    pub info: Option<Info>,
}

/// The content of a track. Counts are 0 if only the ends of the file were read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrackSummary {
    /// `audio`, `video` or `data`.
    pub kind: &'static str,
    /// The codec's name in lower case.
    pub codec: String,
    /// The size of pictures, if the file has it.
    pub picture: Option<Picture>,
    /// The channels of audio, if the file has them.
    pub channels: Option<u64>,
    /// Frames; in `.mjr`, packets or messages.
    pub frames: u64,
    /// Keyframes, if the file marks them.
    pub keyframes: Option<u64>,
    /// Missing packets, if they have numbers.
    pub lost: Option<u64>,
    /// Packets that came after one that was sent later.
    pub reordered: u64,
    /// Streams, each with its own SSRC or numbering.
    pub streams: u64,
    /// Times of more than a second without content: start and end.
    pub gaps: Vec<(Duration, Duration)>,
}

impl Summary {
    /// Reads a file, whose type is identified by its first bytes.
    pub fn of(path: &Path, depth: Depth) -> Result<Self, FileError> {
        let mut file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(FileError::NotAFile);
        }
        let mut start = Vec::new();
        (&mut file).take(8).read_to_end(&mut start)?;
        file.seek(SeekFrom::Start(0))?;
        let bytes = file.metadata()?.len();
        let summary = match *start.as_slice() {
            [] => Err(FileError::Empty),
            [b'M', b'J', b'R', ..] | [b'M', b'E', b'E', b'T', ..] => of_mjr(file, depth),
            [0x1a, 0x45, 0xdf, 0xa3, ..] => of_matroska(file, depth),
            [b'O', b'g', b'g', b'S', ..] => of_media(path, "opus", depth),
            [_, _, _, _, b'f', b't', b'y', b'p'] => of_media(path, "mp4", depth),
            _ => Err(FileError::UnknownType),
        }?;
        Ok(Self { bytes, ..summary })
    }
}

fn of_matroska(file: File, depth: Depth) -> Result<Summary, FileError> {
    let mut input = Input::new(Box::new(file))?;
    let scan = match depth {
        Depth::Ends => Scan::of_header(&mut input)?,
        Depth::All => Scan::new(&mut input)?,
    };
    let tracks = scan.tracks.iter().map(|track| TrackSummary {
        kind: if track.is_video { "video" } else { "audio" },
        codec: track.codec_name(),
        picture: track.picture,
        channels: track.channels,
        frames: track.frames,
        keyframes: track.is_video.then_some(track.keyframes),
        streams: 1,
        gaps: track
            .gaps
            .iter()
            .map(|(from, to)| (scan.nanos(*from), scan.nanos(*to)))
            .collect(),
        ..TrackSummary::default()
    });
    Ok(Summary {
        format: if scan.is_webm() { "webm" } else { "mkv" },
        duration: match depth {
            Depth::Ends => scan.header_duration(),
            Depth::All => Some(scan.nanos(scan.duration())),
        },
        complete: scan.is_whole,
        problem: scan.problem.as_ref().map(ToString::to_string),
        tracks: tracks.collect(),
        ..Summary::default()
    })
}

/// Reads a file by its demuxer: the first track of each kind, and with [`Depth::All`] their frames.
fn of_media(path: &Path, format: &'static str, depth: Depth) -> Result<Summary, FileError> {
    let options = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let file = MediaFile::open(path, &options)?;
    let tracks = file.tracks().iter().map(|track| TrackSummary {
        kind: match track.codec.kind() {
            Kind::Audio => "audio",
            Kind::Video => "video",
        },
        codec: track.codec.name().to_lowercase(),
        channels: (track.codec.kind() == Kind::Audio).then_some(track.channels.into()),
        streams: 1,
        ..TrackSummary::default()
    });
    let end = match format {
        "mp4" => end_of_mp4(path)?,
        _ => end_of_ogg(path)?,
    };
    let mut summary = Summary {
        format,
        duration: file.duration(),
        complete: end.is_ok(),
        problem: end.err().map(str::to_owned),
        tracks: tracks.collect(),
        ..Summary::default()
    };
    if depth == Depth::All
        && let Err(error) = count(path, &options, &mut summary.tracks)
    {
        summary.complete = false;
        summary.problem = Some(error.to_string());
    }
    Ok(summary)
}

/// Counts the frames of tracks, and notes their gaps.
fn count(path: &Path, options: &OpenOptions, tracks: &mut [TrackSummary]) -> Result<(), FileError> {
    let nanos = |at: i64| Duration::from_nanos(u64::try_from(at).unwrap_or(0));
    let mut demux = open_path(path, options)?;
    let mut frame = Frame::default();
    let mut lasts = vec![None; tracks.len()];
    while demux.read(&mut frame)? {
        let (Some(track), Some(last)) = (tracks.get_mut(frame.track), lasts.get_mut(frame.track))
        else {
            continue;
        };
        track.frames += 1;
        if track.kind == "video" {
            *track.keyframes.get_or_insert(0) += u64::from(frame.keyframe);
        }
        let at = nanos(frame.at);
        let before = last.replace(at);
        if let Some(before) = before.filter(|before| at.saturating_sub(*before) > GAP)
            && track.gaps.len() < Counts::MAX_GAPS
        {
            track.gaps.push((before, at));
        }
    }
    Ok(())
}

/// Checks that an MP4 has a regular end.
fn end_of_mp4(path: &Path) -> Result<Result<(), &'static str>, FileError> {
    /// The end of an index of fragments: its last box with length and name.
    const LAST: &[u8] = b"\0\0\0\x10mfro";
    const LAST_LEN: usize = 16;
    let tail = tail(&mut File::open(path)?, LAST_LEN as u64)?;
    if tail.starts_with(LAST) {
        return Ok(Ok(()));
    }
    let mut input = Input::new(Box::new(File::open(path)?))?;
    let (mut has_index, mut end) = (false, 0);
    while let Some((kind, size)) = boxes::read_header(&mut input)? {
        if kind == boxes::MOOF {
            return Ok(Err(
                "it has no index at its end: it is still written, or torn",
            ));
        }
        has_index |= kind == boxes::MOOV;
        input.skip(size)?;
        end = input.position();
    }
    Ok(match has_index && end == input.len() {
        true => Ok(()),
        false => Err("its end is torn"),
    })
}

/// Checks that an Ogg file ends with a last page (RFC 3533 section 6).
fn end_of_ogg(path: &Path) -> Result<Result<(), &'static str>, FileError> {
    /// The longest page.
    const PAGE: u64 = 65_307;
    const HEAD: usize = 27;
    const LAST: u8 = 4;
    let tail = tail(&mut File::open(path)?, PAGE)?;
    let is_last = |start: usize| {
        let page = tail.get(start..)?;
        let (head, rest) = page.split_at_checked(HEAD)?;
        let flags = *head.strip_prefix(b"OggS\0")?.first()?;
        let sizes = rest.get(..usize::from(*head.last()?))?;
        let body: usize = sizes.iter().map(|size| usize::from(*size)).sum();
        (HEAD + sizes.len() + body == page.len()).then_some(flags & LAST != 0)
    };
    Ok(match (0..tail.len()).rev().find_map(is_last) {
        Some(true) => Ok(()),
        Some(false) => Err("it has no last page: it is still written, or torn"),
        None => Err("its end is torn"),
    })
}

/// Returns the last bytes of a file.
fn tail(file: &mut File, bytes: u64) -> Result<Vec<u8>, FileError> {
    let len = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(len.saturating_sub(bytes)))?;
    let mut tail = Vec::new();
    file.take(bytes).read_to_end(&mut tail)?;
    Ok(tail)
}

fn of_mjr(mut file: File, depth: Depth) -> Result<Summary, FileError> {
    let mut reader = FrameReader::new();
    let mut piece = vec![0; PIECE];
    let mut summary = Summary {
        format: "mjr",
        ..Summary::default()
    };
    let mut counts = Counts::default();
    let damage = loop {
        let frame = match reader.next() {
            Ok(Some(frame)) => frame,
            Ok(None) => {
                let read = file.read(&mut piece)?;
                if read == 0 {
                    break reader.finish().err();
                }
                reader.push(piece.get(..read).unwrap_or_default());
                continue;
            }
            Err(error) => break Some(error),
        };
        counts.last = counts.last.max(frame.at);
        let bytes = frame.bytes.to_vec();
        let at = frame.at;
        let info = reader.info().cloned();
        counts.frame(info.as_ref(), at, &bytes);
        if depth == Depth::Ends {
            break None;
        }
    };
    let Some(info) = reader.info().cloned() else {
        return Err(damage.map_or(FileError::Empty, FileError::from));
    };
    summary.complete = damage.is_none();
    summary.problem = damage.map(|error| error.to_string());
    summary.duration = Some(match depth {
        Depth::All => counts.last,
        Depth::Ends => {
            let last = last_frame(&mut file)?;
            summary.complete = last.is_some();
            last.unwrap_or(counts.last)
        }
    });
    summary.tracks = vec![counts.track(&info, depth)];
    summary.info = Some(info);
    Ok(summary)
}

/// Returns the time of the last frame, if the file ends with a complete frame.
fn last_frame(file: &mut File) -> Result<Option<Duration>, FileError> {
    let tail = tail(file, TAIL)?;
    let starts = (0..tail.len()).rev();
    for start in starts {
        let rest = tail.get(start..).unwrap_or_default();
        if let Some(([b'M', b'E', b'E', b'T', m0, m1, m2, m3, l0, l1], frame)) =
            rest.split_first_chunk()
            && frame.len() == usize::from(u16::from_be_bytes([*l0, *l1]))
        {
            let millis = u32::from_be_bytes([*m0, *m1, *m2, *m3]);
            return Ok(Some(Duration::from_millis(millis.into())));
        }
    }
    Ok(None)
}

/// The counts while a recording is read.
#[derive(Debug, Default)]
struct Counts {
    frames: u64,
    last: Duration,
    before: Option<Duration>,
    gaps: Vec<(Duration, Duration)>,
    unwrap: Option<Unwrap>,
    stretch: u32,
    first: i64,
    highest: i64,
    in_stretch: u64,
    lost: u64,
    reordered: u64,
}

impl Counts {
    /// The limit of reported gaps.
    const MAX_GAPS: usize = 1_000;

    fn frame(&mut self, info: Option<&Info>, at: Duration, bytes: &[u8]) {
        self.frames += 1;
        let before = self.before.replace(at).unwrap_or(at);
        if at.saturating_sub(before) > GAP && self.gaps.len() < Self::MAX_GAPS {
            self.gaps.push((before, at));
        }
        let medium = info.map(|info| info.medium);
        if medium == Some(Medium::Data) {
            return;
        }
        let Ok(header) = Header::parse(bytes) else {
            return;
        };
        let rate = match (medium, info.map(|info| info.codec.as_str())) {
            (Some(Medium::Video), _) => 90_000,
            (_, Some("opus" | "multiopus")) => 48_000,
            _ => 8_000,
        };
        let unwrap = self.unwrap.get_or_insert_with(|| Unwrap::new(rate));
        let (key, _) = unwrap.packet(&header, at);
        if key.stretch != self.stretch {
            self.end_stretch();
            self.stretch = key.stretch;
            (self.first, self.highest) = (key.sequence, key.sequence);
        }
        self.reordered += u64::from(key.sequence < self.highest);
        self.first = self.first.min(key.sequence);
        self.highest = self.highest.max(key.sequence);
        self.in_stretch += 1;
    }

    fn end_stretch(&mut self) {
        if self.in_stretch > 0 {
            let all = u64::try_from(self.highest - self.first + 1).unwrap_or(0);
            self.lost += all.saturating_sub(self.in_stretch);
        }
        self.in_stretch = 0;
    }

    fn track(mut self, info: &Info, depth: Depth) -> TrackSummary {
        self.end_stretch();
        let is_all = depth == Depth::All;
        TrackSummary {
            kind: info.medium.as_str(),
            codec: info.codec.clone(),
            frames: if is_all { self.frames } else { 0 },
            lost: (is_all && info.medium != Medium::Data).then_some(self.lost),
            reordered: self.reordered,
            streams: u64::from(self.stretch.max(1)),
            gaps: self.gaps,
            ..TrackSummary::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    #[test]
    fn files_that_are_cut_off_are_not_complete() {
        let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
        let folder = tempfile::tempdir().unwrap();
        for (name, keep) in [
            ("h264-opus.mp4", 10),
            ("tone.opus", 10),
            ("vp8-opus.webm", 10),
        ] {
            let path = data.join(name);
            let whole = Summary::of(&path, Depth::All).unwrap();
            assert!(whole.complete, "{name}: {whole:?}");
            assert!(whole.tracks.iter().all(|it| it.frames > 10), "{whole:?}");
            let mut bytes = std::fs::read(path).unwrap();
            bytes.truncate(bytes.len() - keep);
            let cut = folder.path().join(name);
            std::fs::write(&cut, bytes).unwrap();
            let Ok(torn) = Summary::of(&cut, Depth::All) else {
                continue;
            };
            assert!(!torn.complete && torn.problem.is_some(), "{name}: {torn:?}");
        }
        let opus = std::fs::read(data.join("tone.opus")).unwrap();
        let page = opus.windows(4).rposition(|it| it == b"OggS").unwrap();
        let cut = folder.path().join("between pages.opus");
        std::fs::write(&cut, &opus[..page]).unwrap();
        let torn = Summary::of(&cut, Depth::Ends).unwrap();
        assert!(!torn.complete, "{torn:?}");
    }
}
