//! `portunus recordings repair`: files whose server ended early.

use std::fs::{File, TryLockError};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use portunus_files::container;
use portunus_files::manifest::FileEnd;
use portunus_files::mjr::{FrameReader, UnixMicros};
use portunus_files::summary::{Depth, Summary};

use super::failure::Failure;
use super::{files, text};

#[derive(Debug, Args)]
#[command(after_help = REPAIR_HELP)]
pub(crate) struct RepairOptions {
    /// Files, or manifests, of which all incomplete files are meant
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Repair files that were written to within the last 10 s, too
    #[arg(long)]
    force: bool,
}

const REPAIR_HELP: &str = "\
The new file takes the place of the old one once it is whole. What is torn at the end is left out; index, duration and
sizes are written. Never repair a file that a server still writes.";

/// Where files cannot be locked, a file that changed within this time may still be written by a
/// server.
const RECENT: Duration = Duration::from_secs(10);

pub(super) fn run(options: &RepairOptions) -> Result<(), Failure> {
    let mut all_done = true;
    for path in &options.files {
        let done = match files::extension(path) == "json" {
            true => of_manifest(path, options.force),
            false => one(path, options.force).map(|done| {
                println!("{}: {}", done.path.display(), done.told);
            }),
        };
        if let Err(failure) = done {
            if !matches!(failure, Failure::Told) {
                eprintln!("portunus: {failure}");
            }
            all_done = false;
        }
    }
    if all_done { Ok(()) } else { Err(Failure::Told) }
}

/// The outcome for a file.
struct Done {
    /// Its present path.
    path: PathBuf,
    told: String,
    /// Its duration.
    duration: Duration,
}

/// Repairs all incomplete files of a manifest, and updates the manifest.
fn of_manifest(path: &Path, force: bool) -> Result<(), Failure> {
    let mut manifest = files::manifest(path)?;
    let held = File::open(path).map_err(|error| files::failed(path, error))?;
    let is_live = is_written(&held) && !force;
    let mut all_done = true;
    let mut last = 0;
    let incomplete = manifest.participants.iter_mut();
    let incomplete = incomplete
        .flat_map(|it| &mut it.files)
        .filter(|it| !it.complete);
    for file in incomplete {
        let done = files::named(path, &file.file).and_then(|named| one(&named, force));
        match done {
            Ok(done) => {
                println!("{}: {}", done.path.display(), done.told);
                file.complete = true;
                file.end.get_or_insert(FileEnd::Crashed);
                file.duration_ms = done.duration.as_secs_f64() * 1_000.0;
                file.bytes = done.path.metadata().map_or(file.bytes, |it| it.len());
                let micros = u64::try_from(done.duration.as_micros()).unwrap_or(0);
                last = last.max(file.started_us.unwrap_or(0).saturating_add(micros));
            }
            Err(failure) => {
                eprintln!("portunus: {failure}");
                all_done = false;
            }
        }
    }
    if is_live {
        let why = "a server is writing it: what has ended is repaired, and it stays as it is";
        eprintln!("portunus: {}", files::failed(path, why));
        return Err(Failure::Told);
    }
    if all_done && manifest.ended.is_none() && last > 0 {
        manifest.end(UnixMicros(last));
    }
    let mut new = files::temporary(path)?;
    let written = new.write_all(&manifest.to_json());
    written.map_err(|error| files::failed(path, error))?;
    files::keep(new, path)?;
    if all_done { Ok(()) } else { Err(Failure::Told) }
}

fn one(path: &Path, force: bool) -> Result<Done, Failure> {
    let failed = |error: &dyn std::fmt::Display| files::failed(path, error);
    let file = File::open(path).map_err(|error| failed(&error))?;
    if is_written(&file) && !force {
        let why = "a server is writing it: end that first (--force repairs it all the same)";
        return Err(failed(&why));
    }
    // A killed server has not renamed it (`recording.temporary`).
    let name = files::complete_name(path);
    if name != path && name.symlink_metadata().is_ok() {
        let why = format!("{} is there already: rename one of them", name.display());
        return Err(failed(&why));
    }
    let (told, duration) = match files::extension(&name).as_str() {
        "mjr" => mjr(path, file)?,
        "opus" | "ogg" => {
            let summary = Summary::of(path, Depth::Ends).map_err(|error| failed(&error))?;
            let told = "nothing to repair: such files are whole wherever they end";
            (told.to_owned(), summary.duration.unwrap_or_default())
        }
        _ => of_container(path, file)?,
    };
    if name != path {
        std::fs::rename(path, &name).map_err(|error| failed(&error))?;
    }
    Ok(Done {
        path: name,
        told,
        duration,
    })
}

/// Whether a server is writing a file, which it locks meanwhile.
fn is_written(file: &File) -> bool {
    match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => {
            let changed = file.metadata().and_then(|it| it.modified());
            let since = changed.ok().and_then(|changed| changed.elapsed().ok());
            since.is_some_and(|since| since < RECENT)
        }
    }
}

/// Describes the outcome, and the duration.
fn of_container(path: &Path, file: File) -> Result<(String, Duration), Failure> {
    let before = file.metadata().map_or(0, |it| it.len());
    let new = files::temporary(path)?;
    let mut buffered = BufWriter::new(new.as_file());
    let done = container::repair(file, &mut buffered);
    let repaired = done.map_err(|error| files::failed(path, error))?;
    buffered
        .flush()
        .map_err(|error| files::failed(path, error))?;
    drop(buffered);
    let duration = repaired.duration;
    if repaired.was_whole {
        return Ok(("nothing to repair".to_owned(), duration));
    }
    files::keep(new, path)?;
    let told = format!(
        "repaired: {} with {} frames; {} of {before} bytes at its end were torn or are replaced",
        text::duration(duration),
        repaired.frames,
        repaired.cut
    );
    Ok((told, duration))
}

/// Keeps the complete frames.
fn mjr(path: &Path, mut file: File) -> Result<(String, Duration), Failure> {
    let failed = |error: &dyn std::fmt::Display| files::failed(path, error);
    let mut reader = FrameReader::new();
    let mut piece = vec![0; 64 << 10];
    let (mut duration, mut frames) = (Duration::ZERO, 0_u64);
    let damage = loop {
        match reader.next() {
            Ok(Some(frame)) => {
                duration = duration.max(frame.at);
                frames += 1;
            }
            Ok(None) => {
                let read = file.read(&mut piece).map_err(|error| failed(&error))?;
                if read == 0 {
                    break reader.finish().err();
                }
                reader.push(piece.get(..read).unwrap_or_default());
            }
            Err(error) => break Some(error),
        }
    };
    let Some(damage) = damage else {
        return Ok(("nothing to repair".to_owned(), duration));
    };
    if frames == 0 {
        return Err(failed(&damage));
    }
    let kept = reader.position();
    let before = file.metadata().map_or(kept, |it| it.len());
    let source = File::open(path).map_err(|error| failed(&error))?;
    let mut new = files::temporary(path)?;
    let copied = std::io::copy(&mut source.take(kept), new.as_file_mut());
    copied.map_err(|error| failed(&error))?;
    files::keep(new, path)?;
    let told = format!(
        "repaired: {} with {frames} frames; the last {} bytes are left out ({damage})",
        text::duration(duration),
        before.saturating_sub(kept)
    );
    Ok((told, duration))
}
