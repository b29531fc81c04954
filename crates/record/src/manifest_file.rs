//! The file of a manifest: written anew when something has changed, once a second at most, and less often if it is long.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::OFlags;
use thiserror::Error;

use crate::RecordError;
use crate::disk::{Disk, Job, Round, Turn};
use crate::file::hold;
use crate::session::{News, SessionState};
use crate::shared::Name;

/// How often it is written if something has changed.
const CHANGES: Duration = Duration::from_secs(1);
/// How often it is written if files have become longer.
const LENGTHS: Duration = Duration::from_secs(10);
/// One that is long is written less often: so many bytes a second.
const PACE: u64 = 64 << 10;
/// Names that are tried if others are taken.
pub(crate) const NAMES: u32 = 1_000;

/// Why there is no file.
#[derive(Debug, Error)]
pub(crate) enum NoManifest {
    #[error(transparent)]
    Name(#[from] RecordError),
    #[error("its folder cannot be made: {0}")]
    Folder(#[from] io::Error),
    #[error("all names like it are taken")]
    Taken,
}

/// A manifest, as its disk's thread sees it.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    state: Arc<SessionState>,
    name: Name,
    disk: Disk,
    written: Option<Instant>,
    /// The file as it was written last, which is locked as long as it goes on.
    held: Option<File>,
    /// What it is not written again before, so that it does not keep the disk busy.
    pause: Duration,
    /// It could not be written, and that was told.
    has_failed: bool,
}

/// Finds a name that no other file has, and makes its folder. It blocks.
pub(crate) fn make(state: &SessionState) -> Result<(Name, Disk), NoManifest> {
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

/// A name with a number at its end, but for the first.
pub(crate) fn numbered(name: &str, number: u32) -> String {
    match number {
        0 | 1 => name.to_owned(),
        number => format!("{name}-{number}"),
    }
}

impl ManifestFile {
    pub(crate) fn new(state: Arc<SessionState>, name: Name, disk: Disk) -> Self {
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

/// Puts a file with these bytes in the place of what is there, all at once.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let temporary = PathBuf::from(format!("{}.tmp", path.display()));
    let mut options = OpenOptions::new();
    // What a link leads to is not ours to empty.
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
