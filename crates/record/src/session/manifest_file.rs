//! The file of a manifest. After changes it is written at most once a second, and less often if it
//! is long.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::OFlags;
use thiserror::Error;

use super::{News, SessionState};
use crate::RecordError;
use crate::disk::{Disk, Job, Round, Turn};
use crate::new_file::hold;
use crate::place::{NAMES, numbered};
use crate::shared::Name;

/// The interval between writes of changes.
const CHANGES: Duration = Duration::from_secs(1);
/// The interval between writes if files have only become longer.
const LENGTHS: Duration = Duration::from_secs(10);
/// The most bytes a second that are written of a long manifest.
const PACE: u64 = 64 << 10;

/// The reason why there is no file.
#[derive(Debug, Error)]
pub(super) enum NoManifest {
    #[error(transparent)]
    Name(#[from] RecordError),
    #[error("its folder cannot be made: {0}")]
    Folder(#[from] io::Error),
    #[error("all names like it are taken")]
    Taken,
}

/// A manifest on its disk's thread.
#[derive(Debug)]
pub(super) struct ManifestFile {
    state: Arc<SessionState>,
    name: Name,
    disk: Disk,
    written: Option<Instant>,
    /// The file of the last write. It stays locked until the end.
    held: Option<File>,
    /// The shortest time until the next write, so that the disk is not kept busy.
    pause: Duration,
    /// Whether a failure was logged.
    has_failed: bool,
}

/// Finds a free name, and makes its folder. It blocks.
pub(super) fn make(state: &SessionState) -> Result<(Name, Disk), NoManifest> {
    let (dir, name) = (state.spec.dir.as_deref(), &state.spec.name);
    let overwrite = state.shared.config.overwrite;
    for number in 1..=NAMES {
        let name = numbered(name, number);
        let path = state.places.file(dir, &name, "json")?;
        let path = state.places.make_folder(&path)?;
        let is_there = !overwrite && path.symlink_metadata().is_ok();
        if let Some(name) = (!is_there)
            .then(|| Name::take(&state.shared, &path))
            .flatten()
        {
            let folder = path.parent().unwrap_or(Path::new("."));
            return Ok((name, state.shared.disks.of(folder)?));
        }
    }
    Err(NoManifest::Taken)
}

impl ManifestFile {
    pub(super) fn new(state: Arc<SessionState>, name: Name, disk: Disk) -> Self {
        Self {
            state,
            name,
            disk,
            written: None,
            held: None,
            pause: CHANGES,
            has_failed: false,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.disk.wait();
        match replace(&self.name.path, bytes) {
            Ok(file) => self.held = Some(file),
            Err(error) if !std::mem::replace(&mut self.has_failed, true) => {
                let file = self.name.path.display();
                tracing::error!(%file, "the manifest cannot be written: {error}");
            }
            Err(_) => {}
        }
    }
}

impl Job for ManifestFile {
    fn turn(&mut self, round: &mut Round) -> Turn {
        let is_over = self.state.control.is_stopped();
        let passed = |written| round.now.saturating_duration_since(written);
        let passed = self.written.map_or(Duration::MAX, passed);
        let json = {
            let mut inner = self.state.lock();
            let is_due = match inner.news {
                News::None => false,
                News::Longer => passed >= LENGTHS.max(self.pause),
                News::Change => passed >= self.pause,
            };
            if is_over {
                inner.manifest.end(SystemTime::now().into());
            }
            (is_due || is_over).then(|| {
                inner.news = News::None;
                inner.manifest.to_json()
            })
        };
        if let Some(json) = json {
            self.write(&json);
            self.pause = CHANGES.max(Duration::from_secs(json.len() as u64 / PACE));
            self.written = Some(round.now);
        }
        match is_over {
            true => Turn::Ended,
            false => Turn::GoesOn,
        }
    }

    fn is_ending(&self) -> bool {
        self.state.control.is_stopped()
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let temporary = PathBuf::from(format!("{}.tmp", path.display()));
    let mut options = OpenOptions::new();
    // The target of a link must not be emptied.
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    options.write(true).create_new(true).custom_flags(flags);
    let opened = match options.open(&temporary) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(&temporary)?;
            options.open(&temporary)
        }
        opened => opened,
    };
    let written = opened.and_then(|mut file| {
        hold(&file);
        file.write_all(bytes).map(|()| file)
    });
    let renamed = written.and_then(|file| fs::rename(&temporary, path).map(|()| file));
    if renamed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    renamed
}
