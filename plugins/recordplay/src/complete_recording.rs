//! A complete recording: its description, and the facts in its files.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use portunus_core::Object;
use portunus_core::record::Medium;
use portunus_files::{FileError, Folders, Play, Playback};
use portunus_player::Hold;
use serde_json::Value;

use crate::nfo::{MediaFiles, Nfo};

/// The start of the addresses of files.
pub(crate) const BASE: &str = "/recordplay/";

/// A recording that can be played.
#[derive(Debug)]
pub(crate) struct CompleteRecording {
    pub(crate) nfo: Nfo,
    /// The part of its files' addresses that cannot be guessed.
    pub(crate) key: String,
    pub(crate) facts: Facts,
    stamps: Mutex<Stamps>,
    /// Pauses all who play it.
    pub(crate) hold: Hold,
    viewers: AtomicUsize,
}

/// The stamps of its files. While they stay the same, the facts about the files do.
#[derive(Debug, PartialEq, Eq, Default)]
struct Stamps {
    /// The stamp of its description.
    description: Option<(PathBuf, Stamp)>,
    /// The stamps of all its media files, by name, or `None` if a file is missing.
    files: Vec<(String, Option<(PathBuf, Stamp)>)>,
}

/// The state of a file on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    written: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file, or `None` if it is missing.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let file = path.metadata().ok()?;
        Some(Self {
            inode: file.ino(),
            bytes: file.len(),
            written: (file.mtime(), file.mtime_nsec()),
        })
    }
}

/// The facts in the files of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    /// Which of its files exist.
    has: [bool; 3],
    audio_codec: Option<String>,
    audio_red: bool,
    video_codec: Option<String>,
    pub(crate) duration: Option<Duration>,
    bytes: u64,
}

impl CompleteRecording {
    /// Reads the files of a recording in `folder`. `description` is the file that describes it, if
    /// any. It blocks.
    pub(crate) fn look(folder: &Path, nfo: Nfo, description: Option<(PathBuf, Stamp)>) -> Self {
        let key = nfo.key.clone();
        // The stamps are taken before reading, so that later changes are noticed.
        let stamp = |name: &str| {
            let path = find(folder, name).ok()?;
            let stamp = Stamp::of(&path)?;
            Some((path, stamp))
        };
        let files = nfo.files.all();
        let stamps = Stamps {
            description,
            files: files.map(|name| (name.to_owned(), stamp(name))).collect(),
        };
        Self {
            facts: Facts::read(folder, &nfo.files),
            stamps: Mutex::new(stamps),
            key: key.unwrap_or_else(random_key),
            nfo,
            hold: Hold::default(),
            viewers: AtomicUsize::new(0),
        }
    }

    /// Returns the path of its description, if there is one.
    pub(crate) fn description(&self) -> Option<PathBuf> {
        let stamps = self.stamps();
        stamps.description.as_ref().map(|(path, _)| path.clone())
    }

    /// Whether its description, with this stamp now, and its files in `folder` are unchanged since
    /// they were read. It blocks.
    pub(crate) fn is_current(&self, folder: &Path, description: Stamp) -> bool {
        let stamps = self.stamps();
        let is_same = |(name, stamp): &(String, Option<(PathBuf, Stamp)>)| match stamp {
            Some((path, stamp)) => Stamp::of(path) == Some(*stamp),
            None => find(folder, name).is_err(),
        };
        let described = stamps.description.as_ref().map(|(_, stamp)| *stamp);
        described == Some(description) && stamps.files.iter().all(is_same)
    }

    /// Takes newer stamps. The facts are unchanged.
    pub(crate) fn is_still(&self, now: Self) {
        *self.stamps() = now.stamps.into_inner().unwrap_or_default();
    }

    fn stamps(&self) -> MutexGuard<'_, Stamps> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another one is equal, apart from the stamps.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.nfo == other.nfo && self.facts == other.facts
    }

    /// Returns its entry in a list, with the addresses of its files if they are served.
    pub(crate) fn to_json(&self, serve: bool) -> Value {
        let Self { nfo, facts, .. } = self;
        let [audio, video, data] = facts.has;
        let url = |file: &str| format!("{BASE}{}/{}", self.key, encoded(file));
        let urls = nfo.files.named();
        let urls = urls.fold(Object::new(), |urls, (medium, file)| {
            urls.with(medium, url(file))
        });
        let parts: Vec<String> = nfo.files.parts.iter().map(|file| url(file)).collect();
        Object::new()
            .with("id", nfo.id)
            .with("is_private", nfo.is_private)
            .with("name", nfo.name.as_str())
            .with("date", nfo.date.as_str())
            .with("audio", audio)
            .with_some("audio_codec", facts.audio_codec.as_deref())
            .with_some("audio_red", facts.audio_red.then_some(true))
            .with("video", video)
            .with_some("video_codec", facts.video_codec.as_deref())
            .with("data", data)
            .with_some("duration", facts.duration.map(millis))
            .with("bytes", facts.bytes)
            .with_some("urls", serve.then(|| Value::from(urls)))
            .with_some(
                "parts",
                Some(parts).filter(|parts| serve && !parts.is_empty()),
            )
            .into()
    }
}

impl Facts {
    fn read(folder: &Path, files: &MediaFiles) -> Self {
        let all = [&files.audio, &files.video, &files.data];
        let path = |name: &Option<String>| find(folder, name.as_deref()?).ok();
        let paths = all.map(path);
        let has = paths.each_ref().map(Option::is_some);
        let mut different: Vec<PathBuf> = Vec::new();
        let parts = files.parts.iter();
        let parts = parts.filter_map(|name| find(folder, name).ok());
        for path in paths.into_iter().flatten().chain(parts) {
            if !different.contains(&path) {
                different.push(path);
            }
        }
        let len = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
        let mut facts = Facts {
            has,
            bytes: different.iter().map(len).sum(),
            ..Facts::default()
        };
        let Ok((playback, _)) = Playback::open(&different) else {
            return facts;
        };
        facts.duration = playback.duration();
        for track in playback.tracks() {
            let codec = Some(track.codec.clone());
            match track.medium {
                Medium::Audio => (facts.audio_codec, facts.audio_red) = (codec, track.red),
                Medium::Video => facts.video_codec = codec,
                Medium::Data => {}
            }
        }
        facts
    }
}

/// Opens the files of a recording in `folder` for playing, with a warning about those that cannot
/// be played. It blocks.
pub(crate) fn open(
    folder: &Path,
    files: &MediaFiles,
) -> Result<(Playback, Option<String>), FileError> {
    let parts = files.parts.iter().map(|name| ("part", name.as_str()));
    let named: Vec<_> = files.named().chain(parts).collect();
    let mut problems = Vec::new();
    let mut paths = Vec::new();
    for (medium, name) in &named {
        match find(folder, name) {
            Ok(path) => paths.push((*medium, path)),
            Err(error) => problems.push(format!("{medium}: {error}")),
        }
    }
    let only: Vec<_> = paths.iter().map(|(_, path)| path.clone()).collect();
    let (playback, unreadable) = Playback::open(&only)?;
    for wrong in unreadable {
        let medium = paths.get(wrong.file).map_or("file", |(medium, _)| medium);
        // An unused data channel is no reason for a warning.
        if medium == "data" && matches!(wrong.error, FileError::Empty) {
            continue;
        }
        problems.push(format!("{medium}: {}", wrong.error));
    }
    let warning = (!problems.is_empty()).then(|| format!("Not played: {}", problems.join("; ")));
    Ok((playback, warning))
}

/// Returns the path of this file in the folder. Links are followed, but not out of the folder. As
/// in Janus, names may lack `.mjr`.
pub(crate) fn find(folder: &Path, name: &str) -> Result<PathBuf, FileError> {
    let folders = Folders::new(vec![folder.to_owned()]);
    let find = |name: &str| {
        let path = folder.join(name);
        folders.find(path.to_str().unwrap_or_default())
    };
    match find(name) {
        Err(FileError::Io(_)) if !name.ends_with(".mjr") => find(&format!("{name}.mjr")),
        found => found,
    }
}

/// A client that plays a recording. A pause ends with the last of them.
#[derive(Debug)]
pub(crate) struct Viewing(pub(crate) Arc<CompleteRecording>);

impl Viewing {
    pub(crate) fn new(recorded: Arc<CompleteRecording>) -> Self {
        recorded.viewers.fetch_add(1, Relaxed);
        Viewing(recorded)
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        if self.0.viewers.fetch_sub(1, Relaxed) == 1 {
            self.0.hold.set(false);
        }
    }
}

/// Returns 128 random bits.
pub(crate) fn random_key() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Returns a time in ms, as clients read it.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The characters that are escaped in an address (RFC 3986 section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns a name for use in an address.
fn encoded(name: &str) -> PercentEncode<'_> {
    utf8_percent_encode(name, ENCODED)
}
