//! `portunus recordings compose`: one film of all files of manifests.

mod ffmpeg;
pub(super) mod options;
mod plan;

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_files::container::{Container, Edits};
use portunus_files::convert::{Sink, to_container};
use portunus_files::manifest::{self, Manifest};
use portunus_files::mjr::UnixMicros;
use portunus_files::summary::{Depth, Summary};

use super::failure::Failure;
use super::files::{self, failed};
use super::progress::Progress;
use super::{convert, text};
use ffmpeg::Output;
use options::ComposeOptions;
use plan::{Plan, Source};

pub(super) fn run(options: &ComposeOptions) -> Result<(), Failure> {
    let Some((out, manifests)) = options.files.split_last() else {
        return Err(Failure::Other("nothing to compose".to_owned()));
    };
    let output = Output::of(out)?;
    files::check_free(out, options.force)?;
    let mut read = Vec::new();
    for path in manifests {
        read.push((path.as_path(), files::manifest(path)?));
    }
    read.sort_by_key(|(_, manifest)| manifest.started_us);
    ffmpeg::check()?;
    let folder = tempfile::tempdir().map_err(|error| Failure::Other(error.to_string()))?;
    let mut people = People::default();
    let mut film = Film::default();
    for (number, (path, manifest)) in read.iter().enumerate() {
        // Files of other folders may have the same names.
        let folder = folder.path().join(number.to_string());
        std::fs::create_dir(&folder).map_err(|error| failed(&folder, error))?;
        let mut sources = Vec::new();
        for participant in &manifest.participants {
            let number = people.number(&participant.id);
            for file in &participant.files {
                match sources_of((path, manifest), (number, file), &folder) {
                    Ok(found) => sources.extend(found),
                    Err(Failure::NoFfmpeg) => return Err(Failure::NoFfmpeg),
                    Err(failure) => eprintln!("portunus: left out: {failure}"),
                }
            }
        }
        film.append(manifest.started_us, sources);
    }
    let made = Plan::new(film.sources, options.layout, options.size, options.fps);
    let plan = made.map_err(|why| match manifests {
        [manifest] => failed(manifest, why),
        _ => Failure::Other(why.to_owned()),
    })?;
    let bar = Progress::new("composing");
    ffmpeg::compose(&plan, output, out, &mut |done| bar.set(done))?;
    drop(bar);
    println!("{}", out.display());
    println!(
        "  {} of {} files",
        text::duration(plan.duration()),
        plan.sources().len()
    );
    Ok(())
}

/// The people in the film, by their ids.
#[derive(Debug, Default)]
struct People {
    ids: Vec<String>,
}

impl People {
    fn number(&mut self, id: &str) -> usize {
        let known = self.ids.iter().position(|known| known == id);
        known.unwrap_or_else(|| {
            self.ids.push(id.to_owned());
            self.ids.len().saturating_sub(1)
        })
    }
}

/// The timeline of several manifests. They follow each other, except that overlapping ones keep
/// their offset. Times are in seconds.
#[derive(Debug, Default)]
struct Film {
    sources: Vec<Source>,
    /// The start of the last manifest: in µs since 1970, and in the film.
    last: Option<(u64, f64)>,
}

impl Film {
    /// Appends a manifest with this start, which is not before that of the last one.
    fn append(&mut self, started_us: u64, sources: Vec<Source>) {
        let end = self.sources.iter().map(|it| it.offset + it.duration);
        let end = end.fold(0.0, f64::max);
        let at = self.last.map_or(0.0, |(last, at)| {
            let since = started_us.saturating_sub(last) as f64 / 1e6;
            (at + since).min(end)
        });
        self.last = Some((started_us, at));
        let moved = sources.into_iter().map(|source| Source {
            offset: source.offset + at,
            ..source
        });
        self.sources.extend(moved);
    }
}

/// A file for ffmpeg. A recording in Janus's format may consist of several.
fn sources_of(
    (manifest_path, manifest): (&Path, &Manifest),
    (participant, file): (usize, &manifest::File),
    folder: &Path,
) -> Result<Vec<Source>, Failure> {
    let is_data = |file: &manifest::File| file.tracks.iter().all(|track| track.kind == "data");
    if file.format == "mjr" && !file.tracks.is_empty() && is_data(file) {
        return Ok(Vec::new());
    }
    let path = files::named(manifest_path, &file.file)?;
    let begun = match file.format.as_str() {
        "mjr" => converted(&path, folder)?,
        _ => {
            let began = file
                .started_us
                .ok_or_else(|| failed(&path, "there is nothing in it"))?;
            vec![(path, UnixMicros(began))]
        }
    };
    let talks = file.tracks.iter().flat_map(|track| &track.talks);
    let talks: Vec<_> = talks
        .map(|(from, to)| (from / 1_000.0, to / 1_000.0))
        .collect();
    let sources = begun.into_iter().map(|(path, began)| {
        let summary = Summary::of(&path, Depth::Ends).map_err(|error| failed(&path, error))?;
        let count = |kind| tracks_of(&summary, file, kind);
        let told = Duration::from_secs_f64((file.duration_ms / 1_000.0).clamp(0.0, 1e7));
        Ok(Source {
            participant,
            videos: (0..count("video")).map(|it| view(file, it)).collect(),
            audios: count("audio"),
            offset: manifest::offset_ms(UnixMicros(manifest.started_us), began) / 1_000.0,
            duration: summary.duration.unwrap_or(told).as_secs_f64(),
            talks: talks.clone(),
            path,
        })
    });
    sources.collect()
}

/// The most tracks of a kind in a file that are shown or heard.
const MOST_TRACKS: usize = 6;

/// Returns how many tracks of a kind a file has. MP4 files are examined for the first only, since
/// the manifest has the number.
fn tracks_of(summary: &Summary, file: &manifest::File, kind: &str) -> usize {
    let found = summary.tracks.iter().filter(|it| it.kind == kind).count();
    let told = file.tracks.iter().filter(|it| it.kind == kind).count();
    let count = match file.format.as_str() {
        "mp4" if found > 0 => found.max(told),
        _ => found,
    };
    count.min(MOST_TRACKS)
}

/// Returns the m-line of a participant's pictures, which is the same in all files.
fn view(file: &manifest::File, place: usize) -> String {
    let mut videos: Vec<_> = file.tracks.iter().filter(|it| it.kind == "video").collect();
    videos.sort_by_key(|track| track.track);
    let mid = videos.get(place).map(|track| track.mid.clone());
    mid.filter(|mid| !mid.is_empty())
        .unwrap_or_else(|| format!("#{place}"))
}

/// Returns a recording in Janus's format as files for ffmpeg, with their starts.
fn converted(path: &Path, folder: &Path) -> Result<Vec<(PathBuf, UnixMicros)>, Failure> {
    let mut recordings = convert::open(&[path.to_owned()])?;
    let mut sink = Parts {
        folder: folder.to_owned(),
        stem: path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        parts: Vec::new(),
        file: None,
    };
    to_container(&mut recordings, Container::Matroska, &mut sink, &mut |_| {})
        .map_err(|error| failed(path, error))?;
    Ok(sink.parts)
}

/// Files in a temporary folder.
struct Parts {
    folder: PathBuf,
    stem: String,
    parts: Vec<(PathBuf, UnixMicros)>,
    file: Option<std::fs::File>,
}

impl Sink for Parts {
    fn begin(&mut self, part: u32, started: UnixMicros) -> io::Result<()> {
        let path = self.folder.join(format!("{}-{part}.mkv", self.stem));
        self.file = Some(std::fs::File::create_new(&path)?);
        self.parts.push((path, started));
        Ok(())
    }

    fn apply(&mut self, edits: &mut Edits) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.seek(SeekFrom::End(0))?;
        file.write_all(&edits.append)?;
        for (at, bytes) in &edits.patches {
            file.seek(SeekFrom::Start(*at))?;
            file.write_all(bytes)?;
        }
        edits.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(offset: f64, duration: f64) -> Source {
        Source {
            path: PathBuf::from("a.webm"),
            participant: 0,
            videos: Vec::new(),
            audios: 1,
            offset,
            duration,
            talks: Vec::new(),
        }
    }

    /// Returns the starts of manifests in the film.
    fn film(manifests: &[(u64, Vec<Source>)]) -> Vec<f64> {
        let mut film = Film::default();
        for (second, sources) in manifests {
            film.append(second * 1_000_000, sources.clone());
        }
        film.sources.iter().map(|it| it.offset).collect()
    }

    #[test]
    fn meetings_are_shown_one_after_the_other_without_the_time_between_them() {
        let meeting = || vec![source(0.0, 60.0), source(10.0, 20.0)];
        let days = [(0, meeting()), (86_400, meeting())];
        assert_eq!(film(&days), [0.0, 10.0, 60.0, 70.0]);
    }

    #[test]
    fn what_was_recorded_at_the_same_time_is_shown_at_the_same_time() {
        let beside = [
            (100, vec![source(0.0, 60.0)]),
            (130, vec![source(0.0, 60.0)]),
            (500, vec![source(1.0, 5.0)]),
        ];
        assert_eq!(film(&beside), [0.0, 30.0, 91.0]);
    }

    #[test]
    fn whoever_comes_again_has_the_same_place() {
        let mut people = People::default();
        let numbers = ["1", "2", "1"].map(|id| people.number(id));
        assert_eq!(numbers, [0, 1, 0]);
    }
}
