//! Playback of a recording: all of its files together.

mod container_with_messages;
mod drift;
mod messages;
mod red;
mod source;
mod tail;
mod track;
mod unwrap;

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_rtp::codec::VideoCodec;

use crate::demux::{InParts, Input, Nanos};
use crate::mjr::{Info, Medium};
use crate::track::{Kind, Track};
use crate::{FileError, MediaFile, OpenOptions, Play, Sent, TimedPacket};

pub(crate) use unwrap::Unwrap;

use container_with_messages::ContainerWithMessages;
use messages::Messages;
use source::Source;
use track::{RecordedTrack, Redundancy, nanos};

/// Recordings with starts further apart were not made together: the clocks were wrong.
const APART: Duration = Duration::from_secs(24 * 3_600);

/// The options for containers.
const ONCE: OpenOptions = OpenOptions {
    audio: true,
    video: true,
    looping: false,
};

/// It makes the timestamps after a seek differ from those before.
const FRAME: Duration = Duration::from_millis(20);

/// Files that were recorded together, on one timeline: a container and its messages, or recordings
/// in Janus's format (`.mjr`) of audio, video and data.
///
/// Packets of such recordings are sorted and timed by the sender's clock. Tracks are aligned by the
/// arrivals of their first packets. Memory is bounded: packets within a second wait, at most 2,048
/// or 4 MiB for each track, and the index of positions to start at, which is made while reading,
/// has at most [`crate::MAX_INDEX`] bytes.
#[derive(Debug)]
pub struct Playback {
    tracks: Vec<PlayedTrack>,
    content: Content,
}

/// A track that is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedTrack {
    /// The medium.
    pub medium: Medium,
    /// Janus's name of the codec (`opus`, `vp8`, …), or `text` or `binary` for data.
    pub codec: String,
    /// The format parameters for SDP, as far as the file has them.
    pub fmtp: Option<String>,
    /// The RTP clock rate, or `None` for data, whose packets are messages.
    pub clock_rate: Option<u32>,
    /// Whether it has redundant audio (RFC 2198) of the codec with payload type 111.
    pub red: bool,
    /// Whether it is encrypted end to end.
    pub encrypted: bool,
    /// The header extensions of the packets: ids and URIs.
    pub extensions: Vec<(u8, String)>,
}

/// A file that cannot be played.
#[derive(Debug)]
pub struct Unreadable {
    /// Its index in the list of files.
    pub file: usize,
    /// The reason.
    pub error: FileError,
}

#[derive(Debug)]
enum Content {
    File(Box<MediaFile>),
    ContainerWithMessages(Box<ContainerWithMessages>),
    Recordings(Recordings),
}

impl Content {
    fn play(&self) -> &dyn Play {
        match self {
            Content::File(file) => &**file,
            Content::ContainerWithMessages(both) => &**both,
            Content::Recordings(recordings) => recordings,
        }
    }

    fn play_mut(&mut self) -> &mut dyn Play {
        match self {
            Content::File(file) => &mut **file,
            Content::ContainerWithMessages(both) => &mut **both,
            Content::Recordings(recordings) => recordings,
        }
    }
}

#[derive(Debug)]
struct Recordings {
    tracks: Vec<RecordedTrack>,
    duration: Option<Duration>,
    /// The difference between the endless timeline and that of the recordings, since the last seek.
    shift: Nanos,
    /// The start of that pass on the endless timeline, and the latest time since.
    base: Nanos,
    end: Nanos,
    /// The track of the last packet.
    current: Option<usize>,
}

/// The content of a file.
enum Opened {
    File(MediaFile),
    Recording(Source),
}

/// A file of the list that was given, after opening it.
struct OpenedFile<'a> {
    index: usize,
    path: &'a PathBuf,
    opened: Result<Opened, FileError>,
}

impl Playback {
    /// Opens files that were recorded together, and reports those that cannot be played. Fails if
    /// none can. A file that is named twice is opened once. Several containers follow one another.
    /// Messages come at their times, by the times of day in the files. It blocks.
    pub fn open(paths: &[PathBuf]) -> Result<(Self, Vec<Unreadable>), FileError> {
        let mut known = HashSet::new();
        let paths = paths.iter().enumerate();
        let paths = paths.filter(|(_, path)| known.insert((*path).clone()));
        let files: Vec<_> = paths
            .map(|(index, path)| OpenedFile {
                index,
                path,
                opened: open(path),
            })
            .collect();
        let is_container = |opened: &Result<Opened, _>| matches!(opened, Ok(Opened::File(_)));
        let containers = files.iter().filter(|file| is_container(&file.opened));
        let (containers, mut files) = (containers.count(), files);
        let messages = take_messages(&mut files);
        let (mut playback, mut unreadable) = match containers {
            0 | 1 => Self::join(files.into_iter().map(|file| (file.index, file.opened)))?,
            _ => Self::in_parts(files)?,
        };
        if let Some((file, messages)) = messages {
            match playback.read_messages(messages) {
                Ok((track, messages)) => playback = playback.with_messages(track, messages),
                Err(error) => unreadable.push(Unreadable { file, error }),
            }
        }
        Ok((playback, unreadable))
    }

    /// Opens containers that follow one another.
    fn in_parts(files: Vec<OpenedFile<'_>>) -> Result<(Self, Vec<Unreadable>), FileError> {
        let mut parts: Option<InParts> = None;
        let mut unreadable = Vec::new();
        for file in files {
            let OpenedFile {
                index: file,
                path,
                opened,
            } = file;
            let added = match opened {
                Err(error) => Err(error),
                Ok(Opened::Recording(_)) => Err(apart()),
                Ok(Opened::File(_)) => match &mut parts {
                    Some(parts) => parts.add(path),
                    None => InParts::new(path, &ONCE).map(|first| parts = Some(first)),
                },
            };
            if let Err(error) = added {
                unreadable.push(Unreadable { file, error });
            }
        }
        let parts = parts.ok_or(FileError::Empty)?;
        let file = MediaFile::from_demux(Box::new(parts), false);
        Ok((Self::of_file(file), unreadable))
    }

    /// Opens recordings in Janus's format from anything that can be read and sought in.
    pub fn of_recordings(
        readers: impl IntoIterator<Item = impl Read + Seek + Send + 'static>,
    ) -> Result<(Self, Vec<Unreadable>), FileError> {
        let readers = readers.into_iter().enumerate();
        Self::join(readers.map(|(index, reader)| {
            let source = Input::new(Box::new(reader)).and_then(Source::open);
            (index, source.map(Opened::Recording))
        }))
    }

    fn join(
        files: impl Iterator<Item = (usize, Result<Opened, FileError>)>,
    ) -> Result<(Self, Vec<Unreadable>), FileError> {
        let (mut tracks, mut recordings, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        let mut container = None;
        for (file, opened) in files {
            let added = opened.and_then(|opened| match opened {
                Opened::File(_) if container.is_some() || !recordings.is_empty() => Err(apart()),
                Opened::File(opened) => {
                    container = Some(opened);
                    Ok(())
                }
                Opened::Recording(_) if container.is_some() => Err(apart()),
                Opened::Recording(source) => add(source, &mut tracks, &mut recordings),
            });
            if let Err(error) = added {
                unreadable.push(Unreadable { file, error });
            }
        }
        if let Some(file) = container {
            return Ok((Self::of_file(file), unreadable));
        }
        if recordings.is_empty() {
            let first = unreadable.into_iter().next();
            return Err(first.map_or(FileError::Empty, |it| it.error));
        }
        let recordings = Recordings::new(recordings)?;
        let content = Content::Recordings(recordings);
        Ok((Self { tracks, content }, unreadable))
    }

    /// Reads the messages of a container.
    fn read_messages(&self, messages: Source) -> Result<(PlayedTrack, Messages), FileError> {
        let Content::File(file) = &self.content else {
            return Err(apart());
        };
        let info = messages.info();
        let track = PlayedTrack::of_recording(info, clock_rate(info)?);
        Ok((track, Messages::of_container(file, messages)?))
    }

    /// Adds messages to the container.
    fn with_messages(mut self, track: PlayedTrack, messages: Messages) -> Self {
        self.content = match self.content {
            Content::File(file) => {
                self.tracks.push(track);
                Content::ContainerWithMessages(Box::new(ContainerWithMessages::new(
                    *file, messages,
                )))
            }
            other => other,
        };
        self
    }

    fn of_file(file: MediaFile) -> Self {
        Self {
            tracks: file.tracks().iter().map(PlayedTrack::of_file).collect(),
            content: Content::File(Box::new(file)),
        }
    }

    /// The tracks that are played: at most one of each kind.
    pub fn tracks(&self) -> &[PlayedTrack] {
        &self.tracks
    }

    /// Removes redundant audio from a track, so that its packets are those of the codec itself.
    pub fn take_redundancy_out(&mut self, track: usize) {
        let recorded = match &mut self.content {
            Content::File(_) | Content::ContainerWithMessages(_) => None,
            Content::Recordings(recordings) => recordings.tracks.get_mut(track),
        };
        if let Some(recorded) = recorded
            && let Redundancy::Kept(red) = recorded.redundancy
        {
            recorded.redundancy = Redundancy::TakenOut(red);
        }
        if let Some(track) = self.tracks.get_mut(track) {
            track.red = false;
        }
    }
}

impl Play for Playback {
    fn clock_rates(&self) -> Vec<Option<u32>> {
        self.content.play().clock_rates()
    }

    fn duration(&self) -> Option<Duration> {
        self.content.play().duration()
    }

    fn is_looping(&self) -> bool {
        false
    }

    fn next(&mut self) -> Option<Result<TimedPacket<'_>, FileError>> {
        self.content.play_mut().next()
    }

    fn seek(&mut self, to: Duration) -> Result<(), FileError> {
        self.content.play_mut().seek(to)
    }

    fn seek_behind(&mut self, sent: &Sent, to: Duration) -> Result<(), FileError> {
        self.content.play_mut().seek_behind(sent, to)
    }

    fn nothing_sent(&self) -> Sent {
        self.content.play().nothing_sent()
    }

    fn played(&self) -> Duration {
        self.content.play().played()
    }
}

impl Recordings {
    fn new(mut tracks: Vec<RecordedTrack>) -> Result<Self, FileError> {
        let start = |info: &Info| (info.first_frame.0 > 0).then_some(info.first_frame);
        let first = tracks.iter().filter_map(|it| start(it.source.info())).min();
        let mut duration = None;
        for track in &mut tracks {
            let since = first.zip(start(track.source.info()));
            let since = since.map(|(first, start)| start.since(first));
            track.begins = since.filter(|since| *since <= APART).unwrap_or_default();
            let last = track.source.last_frame()?;
            duration = duration.max(last.map(|last| track.begins.saturating_add(last)));
        }
        Ok(Self {
            tracks,
            duration,
            shift: 0,
            base: 0,
            end: 0,
            current: None,
        })
    }

    fn go_to(&mut self, to: Duration) -> Result<(), FileError> {
        self.current = None;
        self.base = self.end;
        // Video starts with a keyframe, and the other tracks start with it.
        let mut from = to;
        if let Some(video) = self.tracks.iter_mut().find(|it| it.source.has_keyframes()) {
            let place = video.source.go_to(to.saturating_sub(video.begins))?;
            if place.keyframe.is_some() && to >= video.begins {
                from = video.begins.saturating_add(place.at).min(to);
            }
        }
        self.shift = self.base.saturating_sub(nanos(from));
        for track in &mut self.tracks {
            track.go_to(from, self.base)?;
        }
        Ok(())
    }
}

impl Play for Recordings {
    fn clock_rates(&self) -> Vec<Option<u32>> {
        self.tracks.iter().map(|track| track.rate).collect()
    }

    fn duration(&self) -> Option<Duration> {
        self.duration
    }

    fn is_looping(&self) -> bool {
        false
    }

    fn next(&mut self) -> Option<Result<TimedPacket<'_>, FileError>> {
        if let Some(track) = self.current.take().and_then(|it| self.tracks.get_mut(it)) {
            track.taken();
        }
        let shift = self.shift;
        let due = self.tracks.iter_mut().enumerate();
        let due = due.filter_map(|(index, track)| Some((track.peek(shift)?.at, index)));
        let Some((_, index)) = due.min() else {
            let mut tracks = self.tracks.iter_mut();
            return tracks.find_map(|track| track.error.take()).map(Err);
        };
        self.current = Some(index);
        let due = self.tracks.get(index)?.due()?;
        self.end = self
            .end
            .max(due.at.max(due.presented).saturating_add(nanos(FRAME)));
        Some(Ok(TimedPacket {
            track: index,
            at: time(due.at),
            presented: time(due.presented),
            bytes: &due.bytes,
        }))
    }

    fn seek(&mut self, to: Duration) -> Result<(), FileError> {
        // The waiting packet returns its number.
        for track in &mut self.tracks {
            if track.due().is_some() {
                let next = track.next_sequence();
                track.set_next_sequence(next.wrapping_sub(1));
            }
        }
        if let Some(track) = self.current.take().and_then(|it| self.tracks.get_mut(it)) {
            let next = track.next_sequence();
            track.set_next_sequence(next.wrapping_add(1));
        }
        self.go_to(to)
    }

    fn seek_behind(&mut self, sent: &Sent, to: Duration) -> Result<(), FileError> {
        for (track, next) in self.tracks.iter_mut().zip(&sent.next) {
            track.set_next_sequence(*next);
        }
        self.end = nanos(sent.until);
        self.go_to(to)
    }

    fn nothing_sent(&self) -> Sent {
        Sent {
            next: self
                .tracks
                .iter()
                .map(RecordedTrack::next_sequence)
                .collect(),
            until: Duration::ZERO,
        }
    }

    fn played(&self) -> Duration {
        time(self.end - self.base)
    }
}

impl PlayedTrack {
    fn of_file(track: &Track) -> Self {
        Self {
            medium: match track.codec.kind() {
                Kind::Audio => Medium::Audio,
                Kind::Video => Medium::Video,
            },
            codec: track.codec.name().to_ascii_lowercase(),
            fmtp: track.fmtp.clone(),
            clock_rate: Some(track.codec.clock_rate()),
            red: false,
            encrypted: false,
            extensions: Vec::new(),
        }
    }

    fn of_recording(info: &Info, clock_rate: Option<u32>) -> Self {
        Self {
            medium: info.medium,
            codec: info.codec.clone(),
            fmtp: info.fmtp.clone(),
            clock_rate,
            red: info.red.is_some(),
            encrypted: info.encrypted,
            extensions: info.extensions.clone(),
        }
    }
}

fn open(path: &Path) -> Result<Opened, FileError> {
    // Opening a pipe would block.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FileError::NotAFile);
    }
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(8).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    if start.starts_with(b"MJR") || start == b"MEETECHO" {
        return Source::open(Input::new(Box::new(file))?).map(Opened::Recording);
    }
    MediaFile::open(path, &ONCE).map(Opened::File)
}

/// Takes recorded messages out of the list of files, if the rest is a container.
fn take_messages(files: &mut Vec<OpenedFile<'_>>) -> Option<(usize, Source)> {
    let is_messages = |opened: &Opened| match opened {
        Opened::File(_) => false,
        Opened::Recording(source) => source.info().medium == Medium::Data,
    };
    let mut media = files.iter().filter_map(|file| file.opened.as_ref().ok());
    let first = media.find(|opened| !is_messages(opened))?;
    if !matches!(first, Opened::File(_)) {
        return None;
    }
    let found = |file: &OpenedFile<'_>| file.opened.as_ref().is_ok_and(is_messages);
    let place = files.iter().position(found)?;
    let OpenedFile { index, opened, .. } = files.remove(place);
    match opened {
        Ok(Opened::Recording(source)) => Some((index, source)),
        _ => None,
    }
}

fn apart() -> FileError {
    FileError::Unsupported("it does not play together with others")
}

/// Adds a recording to the list of files.
fn add(
    source: Source,
    tracks: &mut Vec<PlayedTrack>,
    recordings: &mut Vec<RecordedTrack>,
) -> Result<(), FileError> {
    let info = source.info();
    if tracks.iter().any(|other| other.medium == info.medium) {
        return Err(FileError::Unsupported("there is another one of its kind"));
    }
    let clock_rate = clock_rate(info)?;
    tracks.push(PlayedTrack::of_recording(info, clock_rate));
    recordings.push(RecordedTrack::new(source, clock_rate));
    Ok(())
}

/// Returns the RTP clock rate of a recording, or `None` for messages.
fn clock_rate(info: &Info) -> Result<Option<u32>, FileError> {
    let codec = info.codec.as_str();
    let rate = match (info.medium, codec) {
        (Medium::Audio, "opus" | "multiopus" | "l16-48") => 48_000,
        (Medium::Audio, "pcmu" | "pcma" | "g722") => 8_000,
        (Medium::Audio, "isac32") => 32_000,
        (Medium::Audio, "isac16" | "l16") => 16_000,
        (Medium::Video, name) if VideoCodec::from_name(name).is_some() => 90_000,
        (Medium::Data, "text" | "binary") => return Ok(None),
        _ => {
            return Err(FileError::RecordedCodec {
                medium: info.medium.as_str(),
                codec: codec.to_owned(),
            });
        }
    };
    Ok(Some(rate))
}

fn time(nanos: Nanos) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
