//! The folder of the recordings: complete ones, and those that are being made.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use portunus_core::{PublicFile, replace_file};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::complete_recording::{CompleteRecording, Stamp, find};
use crate::nfo::{MAX_NFO, Nfo};

/// The limit of known recordings.
const MAX_RECORDINGS: usize = 10_000;

/// The suffix of the description of a recording that is being made. After a crash it becomes the
/// real description.
const UNFINISHED: &str = "nfo.recording";

/// The suffix of files that are about to replace others.
const ASIDE: &str = ".new";

/// The limit of parts of a recording, which is that of the recorder.
const MAX_PARTS: u32 = 1_000;

/// The time for which a list waits for recordings that are just ending.
const SETTLES: Duration = Duration::from_secs(3);

/// After a scan of the folder, the next one waits this many times as long as the scan took, at most
/// [`LONGEST_REST`]. So repeated requests do not keep the server busy.
const REST: u32 = 9;
const LONGEST_REST: Duration = Duration::from_secs(2);

/// The interval between attempts to write a description that could not be written.
const AGAIN: Duration = Duration::from_secs(10);

/// The recordings of a folder.
#[derive(Debug)]
pub(crate) struct Shelf {
    folder: PathBuf,
    /// The suffix of files that are being written, without the dot.
    temporary: String,
    entries: Mutex<Entries>,
    /// Locked for scans and changes of the folder.
    scanning: tokio::sync::Mutex<()>,
    /// The number of scans that have started.
    looks: AtomicU64,
    /// Locked by the one request that waits for the next scan, on behalf of all.
    next_look: tokio::sync::Mutex<NextLook>,
    /// The number of recordings that are just ending.
    ending: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct NextLook {
    not_before: Option<Instant>,
    /// The last scan that was completed.
    done: u64,
}

#[derive(Debug, Default)]
struct Entries {
    complete: BTreeMap<u64, Arc<CompleteRecording>>,
    running: BTreeSet<u64>,
    /// The descriptions of complete recordings that could not be written yet.
    unwritten: BTreeMap<u64, Nfo>,
    /// Whether a task tries to write them.
    tries_again: bool,
}

/// The reserved id of a recording that is being made.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) id: u64,
    shelf: Arc<Shelf>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shelf.entries().running.remove(&self.id);
    }
}

/// Counts a recording as ending until it is dropped.
struct Ending(Arc<Shelf>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ending.send_modify(|ending| *ending -= 1);
    }
}

impl Shelf {
    /// Returns the shelf of a folder. `temporary` is the suffix of files that are being written, or
    /// empty.
    pub(crate) fn new(folder: PathBuf, temporary: &str) -> Self {
        Self {
            folder,
            temporary: temporary.to_owned(),
            entries: Mutex::default(),
            scanning: tokio::sync::Mutex::default(),
            looks: AtomicU64::new(0),
            next_look: tokio::sync::Mutex::default(),
            ending: watch::Sender::new(0),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Repairs what a crashed server has left, and scans the folder.
    pub(crate) async fn open(&self) {
        let (folder, temporary) = (self.folder.clone(), self.temporary.clone());
        let _ = spawn_blocking(move || take_up(&folder, &temporary)).await;
        self.scan().await;
    }

    /// Scans the folder: adds new recordings, removes missing ones, and keeps unchanged ones.
    /// Requests that come meanwhile share the next scan.
    pub(crate) async fn scan(&self) {
        let before = self.looks.load(Ordering::SeqCst);
        let mut next = self.next_look.lock().await;
        if next.done > before {
            // That scan started after this request.
            return;
        }
        if let Some(not_before) = next.not_before {
            sleep_until(not_before).await;
        }
        let this = self.looks.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        let began = Instant::now();
        self.look().await;
        let rest = began.elapsed().saturating_mul(REST).min(LONGEST_REST);
        *next = NextLook {
            not_before: Some(Instant::now() + rest),
            done: this,
        };
    }

    async fn look(&self) {
        let _one = self.scanning.lock().await;
        self.write_down().await;
        let folder = self.folder.clone();
        let known = self.entries().complete.clone();
        let read = spawn_blocking(move || (read_folder(&folder, &known), known)).await;
        if let Ok((found, known)) = read {
            let mut entries = self.entries();
            let Entries {
                complete,
                running,
                unwritten,
                ..
            } = &mut *entries;
            *complete = found;
            complete.retain(|id, _| !running.contains(id));
            // Recordings without a written description are known here only.
            for id in unwritten.keys() {
                if let Some(recorded) = known.get(id) {
                    complete.entry(*id).or_insert_with(|| Arc::clone(recorded));
                }
            }
        }
    }

    /// Writes the descriptions that could not be written yet. Returns false if some still cannot.
    /// The caller holds the lock of the folder.
    async fn write_down(&self) -> bool {
        let unwritten = self.entries().unwritten.clone();
        if unwritten.is_empty() {
            return true;
        }
        let folder = self.folder.clone();
        let write = move || {
            let descriptions = unwritten.into_values();
            let written = descriptions.map(|nfo| (nfo.id, add(&folder, nfo)));
            written.collect::<Vec<_>>()
        };
        let written = spawn_blocking(write).await.unwrap_or_default();
        let mut entries = self.entries();
        for (id, added) in written {
            let Ok(recorded) = added else {
                continue;
            };
            entries.unwritten.remove(&id);
            let before = entries.complete.get(&id);
            match (recorded, before) {
                (Some(now), Some(before)) if before.is_like(&now) => before.is_still(now),
                (Some(now), _) => drop(entries.complete.insert(id, Arc::new(now))),
                (None, _) => drop(entries.complete.remove(&id)),
            }
            info!(recording = id, "its description is written now");
        }
        entries.unwritten.is_empty()
    }

    /// Lists all recordings by id, once none is just ending.
    pub(crate) async fn list(&self) -> Vec<Arc<CompleteRecording>> {
        self.settle().await;
        self.entries().complete.values().cloned().collect()
    }

    /// Returns the recording with this id, if it is complete.
    pub(crate) async fn get(&self, id: u64) -> Option<Arc<CompleteRecording>> {
        self.settle().await;
        self.entries().complete.get(&id).cloned()
    }

    /// Returns the file of this name of the recording with this key.
    pub(crate) fn file(&self, key: &str, name: &str) -> Option<PublicFile> {
        let entries = self.entries();
        let mut complete = entries.complete.values();
        let recorded = complete.find(|it| it.key == key)?;
        let is_own = recorded.nfo.files.all().any(|file| file == name);
        let (folder, name) = (self.folder.clone(), name.to_owned());
        is_own.then(|| PublicFile::sought(move || find(&folder, &name).ok()))
    }

    /// Waits for recordings that are just ending, but not for a disk that hangs.
    async fn settle(&self) {
        let mut ending = self.ending.subscribe();
        let _ = timeout(SETTLES, ending.wait_for(|ending| *ending == 0)).await;
    }

    /// Reserves this id, or a random one. Returns `None` if it is taken.
    pub(crate) fn reserve(self: &Arc<Self>, id: Option<u64>) -> Option<Reserved> {
        let mut entries = self.entries();
        let is_free =
            |id: &u64| !entries.complete.contains_key(id) && !entries.running.contains(id);
        let id = match id {
            Some(id) => Some(id).filter(is_free),
            // JavaScript numbers have 53 bits.
            None => std::iter::repeat_with(|| rand::random_range(1..1 << 53)).find(is_free),
        }?;
        entries.running.insert(id);
        Some(Reserved {
            id,
            shelf: Arc::clone(self),
        })
    }

    /// Writes the description of a recording that starts, for the case of a crash. Fails if its id
    /// has a description.
    pub(crate) async fn begin(&self, nfo: &Nfo) -> io::Result<()> {
        let (id, text) = (nfo.id, nfo.to_text());
        let folder = self.folder.clone();
        let written = spawn_blocking(move || {
            if described(&folder, id).try_exists()? {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            replace_file(&unfinished(&folder, id), &text)
        });
        written.await.map_err(io::Error::other)?
    }

    /// Rewrites the description of a recording that goes on. `nfo` returns `None` if it has ended.
    pub(crate) async fn change(&self, nfo: impl FnOnce() -> Option<Nfo>) {
        // The end of a recording removes the file under this lock, before or after this.
        let _one = self.scanning.lock().await;
        let Some(nfo) = nfo() else {
            return;
        };
        let path = unfinished(&self.folder, nfo.id);
        let changed = spawn_blocking(move || replace_file(&path, &nfo.to_text())).await;
        if let Ok(Err(error)) = changed {
            warn!(%error, "what has come to a recording would be lost by a crash");
        }
    }

    /// Ends a recording. `ended` returns its description, which is then written and listed.
    pub(crate) fn finish(
        self: &Arc<Self>,
        reserved: Reserved,
        ended: impl Future<Output = Nfo> + Send + 'static,
    ) {
        self.ending.send_modify(|ending| *ending += 1);
        let ending = Ending(Arc::clone(self));
        tokio::spawn(async move {
            let nfo = ended.await;
            let folder = ending.0.folder.clone();
            // A scan meanwhile may see it or not; the list is the same afterwards.
            let one = ending.0.scanning.lock().await;
            let added = spawn_blocking(move || add(&folder, nfo)).await;
            if let Ok(added) = added {
                ending.0.added(reserved.id, added);
            }
            drop(one);
            drop(reserved);
            drop(ending);
        });
    }

    /// Lists a new recording. If its description could not be written, that is tried again.
    fn added(self: &Arc<Self>, id: u64, added: Result<Option<CompleteRecording>, Unwritten>) {
        let mut entries = self.entries();
        match added {
            Ok(Some(recorded)) => drop(entries.complete.insert(id, Arc::new(recorded))),
            Ok(None) => info!(recording = id, "nothing was recorded"),
            Err(Unwritten {
                error,
                nfo,
                recorded,
            }) => {
                warn!(recording = id, %error, "its description cannot be written so far");
                entries.complete.insert(id, Arc::new(*recorded));
                entries.unwritten.insert(id, *nfo);
                if !std::mem::replace(&mut entries.tries_again, true) {
                    tokio::spawn(try_again(Arc::downgrade(self)));
                }
            }
        }
    }

    /// Removes the description of a recording that was not made.
    pub(crate) async fn withdraw(&self, id: u64) {
        let path = unfinished(&self.folder, id);
        let _ = spawn_blocking(move || fs::remove_file(path)).await;
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn described(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id}.nfo"))
}

fn unfinished(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id}.{UNFINISHED}"))
}

/// Tries to write descriptions until all are written.
async fn try_again(shelf: Weak<Shelf>) {
    loop {
        sleep(AGAIN).await;
        let Some(shelf) = shelf.upgrade() else {
            return;
        };
        let _one = shelf.scanning.lock().await;
        if shelf.write_down().await {
            let mut entries = shelf.entries();
            // Another one may have been added.
            entries.tries_again = !entries.unwritten.is_empty();
            if !entries.tries_again {
                return;
            }
        }
    }
}

/// A recording whose description could not be written.
struct Unwritten {
    error: io::Error,
    nfo: Box<Nfo>,
    recorded: Box<CompleteRecording>,
}

/// Writes the description of a recording whose files are complete. Returns `None` if no file can be
/// played.
fn add(folder: &Path, mut nfo: Nfo) -> Result<Option<CompleteRecording>, Unwritten> {
    nfo.files = nfo.files.only(|name| find(folder, name).is_ok());
    let has_media = nfo.files.audio.is_some() || nfo.files.video.is_some();
    let path = described(folder, nfo.id);
    let removed = || match fs::remove_file(unfinished(folder, nfo.id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    let written = match has_media {
        true => replace_file(&path, &nfo.to_text()).and_then(|()| removed()),
        false => removed(),
    };
    let described = Stamp::of(&path).filter(|_| written.is_ok());
    let look = |nfo| CompleteRecording::look(folder, nfo, described.map(|stamp| (path, stamp)));
    match written {
        Ok(()) => Ok(has_media.then(|| look(nfo))),
        Err(error) => Err(Unwritten {
            error,
            nfo: Box::new(nfo.clone()),
            recorded: Box::new(look(nfo)),
        }),
    }
}

/// Describes recordings that a crash interrupted, and cleans up.
fn take_up(folder: &Path, temporary: &str) {
    let described: BTreeSet<String> = entries_of(folder)
        .filter(|entry| entry.path().extension().is_some_and(|it| it == "nfo"))
        .filter_map(|entry| read_nfo(&entry.path()))
        .flat_map(|nfo| nfo.files.all().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for entry in entries_of(folder) {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_str().unwrap_or_default();
        let of_nfo = name.strip_suffix(ASIDE);
        if of_nfo.is_some_and(|name| name.ends_with(".nfo") || name.ends_with(UNFINISHED)) {
            let _ = fs::remove_file(&path);
            continue;
        }
        let nfo = name.ends_with(UNFINISHED).then(|| read_nfo(&path));
        if let Some(mut nfo) = nfo.flatten() {
            info!(recording = nfo.id, "the server did not see its end");
            let is_other = |name: &str| described.contains(name);
            nfo.files.parts = parts_of(folder, temporary, &nfo, is_other);
            for name in nfo.files.all() {
                complete_name(folder, temporary, name);
            }
            if let Err(Unwritten { error, .. }) = add(folder, nfo) {
                warn!(%error, "a recording cannot be listed");
            }
        }
    }
}

/// Returns the files that continue a container, without those of other recordings.
fn parts_of(
    folder: &Path,
    temporary: &str,
    nfo: &Nfo,
    is_other: impl Fn(&str) -> bool,
) -> Vec<String> {
    const EXTENSIONS: [&str; 3] = ["webm", "mkv", "mp4"];
    let mut containers = nfo.files.named().filter_map(|(_, name)| {
        let (stem, extension) = name.rsplit_once('.')?;
        EXTENSIONS.contains(&extension).then_some(stem)
    });
    let Some(stem) = containers.next() else {
        return Vec::new();
    };
    let is_there = |name: &String| {
        let named = [name.clone(), format!("{name}.{temporary}")];
        !is_other(name) && named.iter().any(|name| find(folder, name).is_ok())
    };
    let parts = (2..MAX_PARTS).map_while(|number| {
        let names = EXTENSIONS.iter();
        let mut names = names.map(|extension| format!("{stem}-{number}.{extension}"));
        names.find(is_there)
    });
    parts.collect()
}

/// Renames a file that was being written when the server ended.
fn complete_name(folder: &Path, temporary: &str, name: &str) {
    let aside = format!("{name}.{temporary}");
    if !temporary.is_empty()
        && find(folder, name).is_err()
        && let Ok(path) = find(folder, &aside)
        && let Err(error) = fs::rename(path, folder.join(name))
    {
        warn!(file = name, %error, "what was being recorded cannot be named");
    }
}

fn read_folder(
    folder: &Path,
    known: &BTreeMap<u64, Arc<CompleteRecording>>,
) -> BTreeMap<u64, Arc<CompleteRecording>> {
    let described = known.values();
    let described: HashMap<PathBuf, &Arc<CompleteRecording>> = described
        .filter_map(|it| Some((it.description()?, it)))
        .collect();
    let mut found = BTreeMap::new();
    for entry in entries_of(folder) {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "nfo") {
            continue;
        }
        let stamp = Stamp::of(&path);
        let as_it_was = described.get(&path);
        let as_it_was =
            as_it_was.filter(|it| stamp.is_some_and(|stamp| it.is_current(folder, stamp)));
        let recorded = match as_it_was {
            Some(recorded) => Arc::clone(recorded),
            None => {
                let Some(nfo) = read_nfo(&path) else {
                    continue;
                };
                let id = nfo.id;
                let now = CompleteRecording::look(folder, nfo, stamp.map(|stamp| (path, stamp)));
                match known.get(&id).filter(|before| before.is_like(&now)) {
                    Some(before) => {
                        before.is_still(now);
                        Arc::clone(before)
                    }
                    None => Arc::new(now),
                }
            }
        };
        if found.len() >= MAX_RECORDINGS {
            warn!("more than {MAX_RECORDINGS} recordings: the rest is not listed");
            break;
        }
        let id = recorded.nfo.id;
        if found.insert(id, recorded).is_some() {
            warn!(recording = id, "two descriptions have this number");
        }
    }
    found
}

/// Returns the entries of the folder, or none if it does not exist yet.
fn entries_of(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(Result::ok)
}

fn read_nfo(path: &Path) -> Option<Nfo> {
    let file = path.metadata().ok().filter(|file| file.is_file())?;
    let bytes = match file.len() <= MAX_NFO as u64 {
        true => fs::read(path).ok()?,
        false => return skip(path, &"too long"),
    };
    match Nfo::parse(&bytes) {
        Ok(nfo) => Some(nfo),
        Err(error) => skip(path, &error),
    }
}

fn skip(path: &Path, error: &dyn std::fmt::Display) -> Option<Nfo> {
    let file = path.file_name().unwrap_or_default();
    warn!(?file, %error, "a description of a recording is left out");
    None
}

#[cfg(test)]
mod tests;
