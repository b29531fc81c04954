//! A file in the manifest of its session.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portunus_files::manifest::{self, FileEnd};
use portunus_files::mjr::UnixMicros;

use super::{News, Participant, Place};
use crate::shared::Shared;
use crate::{Completed, Format, Whose};

/// A file in the manifest of its session.
#[derive(Debug)]
pub(crate) struct Entry {
    of: Participant,
    /// Its index among the participant's files.
    index: usize,
}

impl Entry {
    /// Adds a file to the manifest. Returns `None` if there are too many.
    pub(crate) fn begin(
        of: &Participant,
        path: &Path,
        format: Format,
        part: u32,
        fill: impl FnOnce(&mut manifest::File),
    ) -> Option<Self> {
        let state = &of.session.held.state;
        state.open();
        let manifest = state.path();
        let mut inner = state.lock();
        let folder = manifest.as_deref().ok().and_then(Path::parent);
        let file = folder.and_then(|folder| path.strip_prefix(folder).ok());
        let name = file.or_else(|| path.file_name().map(Path::new));
        let mut file = manifest::File {
            file: name.unwrap_or(path).to_string_lossy().into_owned(),
            format: format.extension().to_owned(),
            part,
            ..manifest::File::default()
        };
        fill(&mut file);
        let display = of.display.as_deref();
        let index = inner.manifest.add_file(&of.id, display, file)?;
        inner.news = News::Change;
        Some(Self {
            of: of.clone(),
            index,
        })
    }

    /// Whether the path of the manifest is known, or it is known that there is none.
    pub(crate) fn has_place(&self) -> bool {
        let state = self.of.session.held.state.lock();
        !matches!(state.place, Place::None | Place::Making)
    }

    /// Changes the entry of the file. `is_news`: the manifest is to be written soon.
    pub(crate) fn update(&self, is_news: bool, change: impl FnOnce(&mut manifest::File)) {
        let mut inner = self.of.session.held.state.lock();
        let inner = &mut *inner;
        let began = inner.manifest.started_us;
        let offset = |started| manifest::offset_ms(UnixMicros(began), UnixMicros(started));
        let mut is_longer = false;
        let is_there = inner.manifest.change_file(&self.of.id, self.index, |file| {
            let before = (file.bytes, file.duration_ms, file.started_us);
            change(file);
            file.offset_ms = file.started_us.map(offset);
            is_longer = before != (file.bytes, file.duration_ms, file.started_us);
        });
        let news = match (is_there, is_news) {
            (true, true) => News::Change,
            (true, false) if is_longer => News::Longer,
            _ => News::None,
        };
        inner.news = inner.news.max(news);
    }
}

/// The owner of a file: a participant of a session, or the owner of the recorder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) participant: Option<&'a Participant>,
    pub(crate) whose: Option<&'a Whose>,
}

/// The facts about a file that has ended.
#[derive(Debug)]
pub(crate) struct FileDone {
    pub(crate) path: PathBuf,
    pub(crate) end: FileEnd,
    /// The reason, if it failed.
    pub(crate) error: Option<String>,
    pub(crate) duration: Duration,
    pub(crate) bytes: u64,
}

/// Notes the end of a file in its manifest, and notifies subscribers.
pub(crate) fn complete(
    entry: Option<Entry>,
    owner: Owner<'_>,
    shared: &Arc<Shared>,
    done: FileDone,
) -> Completed {
    let FileDone {
        path,
        end,
        error,
        duration,
        bytes,
    } = done;
    if let Some(entry) = &entry {
        entry.update(true, |file| {
            file.complete = end != FileEnd::Failed;
            file.end = Some(end);
            file.error = error;
            file.duration_ms = duration.as_secs_f64() * 1_000.0;
            file.bytes = bytes;
        });
    }
    let Owner {
        participant: of,
        whose,
    } = owner;
    let spec = of.map(|of| &of.session.held.state.spec);
    let completed = Completed {
        file: path,
        manifest: of.and_then(|of| of.session.manifest_path()),
        plugin: spec.map(|spec| spec.plugin).or(whose.map(|it| it.plugin)),
        room: match spec {
            Some(spec) => spec.room.clone(),
            None => whose.and_then(|it| it.room.clone()),
        },
        participant: of.map(|of| of.id.clone()),
        duration,
        bytes,
        end,
    };
    shared.completed(completed.clone());
    completed
}
