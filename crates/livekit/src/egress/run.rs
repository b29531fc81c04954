//! An egress from its start to its end.

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use livekit_protocol as lk;
use livekit_protocol::{EgressStatus, stream_info};
use portunus_record::{Completed, Recorder};
use portunus_sdp::CodecName;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::conversion::Conversion;
use super::file_name::{Making, Values};
use super::plan::Plan;
use super::recordings::{Recorded, Recordings};
use super::source::{Selection, Source, SourceTrack};
use super::stream_url::StreamUrl;
use super::streams::{Stream, StreamMeans};
use super::{Egresses, Means, nanos};
use crate::hall::Hall;

/// How long further tracks are waited for when the first is there.
const GATHERING: Duration = Duration::from_millis(500);

/// How often the outputs are looked at.
const CHECKING: Duration = Duration::from_millis(500);

/// A command to an egress that runs.
#[derive(Debug)]
pub(super) enum Command {
    Stop,
    AddStream(StreamUrl),
    RemoveStream(StreamUrl),
    Layout(String),
}

/// An egress that runs.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: String,
    pub(super) hall: Weak<Hall>,
    pub(super) plan: Plan,
    pub(super) values: Values,
    pub(super) egresses: Egresses,
    pub(super) means: Means,
    pub(super) commands: mpsc::Receiver<Command>,
}

/// The outputs of an egress.
#[derive(Debug, Default)]
struct Outputs {
    file: Option<File>,
    streams: Vec<Stream>,
    /// Why a stream has failed.
    failed: Option<String>,
}

/// A file that is being recorded.
#[derive(Debug)]
struct File {
    recordings: Recordings,
    /// The name without an extension, relative to the folder of files.
    name: String,
    making: Making,
}

impl Run {
    /// Serves the egress to its end.
    pub(super) async fn serve(mut self, changes: watch::Receiver<()>) {
        let ended = self.work(changes).await;
        let error = ended.err();
        if let Some(error) = &error {
            tracing::warn!(egress = self.id, "an egress has failed: {error}");
        }
        self.egresses.update(&self.id, |info| {
            info.ended_at = nanos();
            match error {
                None => info.set_status(EgressStatus::EgressComplete),
                Some(error) => {
                    info.set_status(EgressStatus::EgressFailed);
                    info.error = error;
                }
            }
        });
    }

    async fn work(&mut self, mut changes: watch::Receiver<()>) -> Result<(), String> {
        let mut outputs = Outputs::default();
        for url in self.plan.streams.clone() {
            outputs.streams.push(self.start_stream(url));
        }
        let mut is_active = false;
        let mut checks = interval(CHECKING);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while let Some(mut selection) = self.select() {
            if !is_active && !selection.tracks.is_empty() {
                sleep(GATHERING).await;
                let Some(again) = self.select() else { break };
                selection = again;
            }
            if is_active && !selection.is_there {
                break;
            }
            self.follow(&mut outputs, &selection.tracks)?;
            if !is_active && !selection.tracks.is_empty() {
                is_active = true;
                self.activate(&outputs);
            }
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        break;
                    }
                }
                command = self.commands.recv() => match command {
                    Some(Command::Stop) | None => break,
                    Some(command) => self.command(command, &mut outputs).await,
                },
                _ = checks.tick() => self.check(&mut outputs).await?,
            }
        }
        self.egresses.update(&self.id, |info| {
            info.set_status(EgressStatus::EgressEnding);
        });
        self.finish(outputs).await
    }

    /// Returns the tracks that there are now, or `None` once the room has ended.
    fn select(&self) -> Option<Selection> {
        let hall = self.hall.upgrade()?;
        let is_over = hall.room.lock().is_destroyed();
        (!is_over).then(|| self.plan.source.select(&hall))
    }

    fn start_stream(&self, url: StreamUrl) -> Stream {
        let means = StreamMeans {
            media: self.means.media.clone(),
            ffmpeg: self.means.ffmpeg.clone(),
            encoding: self.plan.encoding,
            restarts: self.means.config.stream_restarts,
        };
        Stream::start(means, url)
    }

    /// Has the outputs take these tracks.
    fn follow(&mut self, outputs: &mut Outputs, tracks: &[SourceTrack]) -> Result<(), String> {
        for stream in &outputs.streams {
            stream.follow(tracks);
        }
        let Some(wish) = self.plan.file.clone() else {
            return Ok(());
        };
        if let Some(file) = &mut outputs.file {
            return file.recordings.follow(tracks);
        }
        let Some(first) = tracks.first() else {
            return Ok(());
        };
        self.values.track_id.clone_from(&first.sid);
        self.values.track_type = first.kind.name().to_owned();
        self.values.track_source = first.source.to_ascii_lowercase();
        self.values.publisher_identity.clone_from(&first.identity);
        let name = wish.name(&self.values);
        let (media, recorder) = (self.means.media.clone(), self.means.recorder.clone());
        let mut file = match &self.plan.source {
            Source::Room { audio_only, .. } => {
                let extension = wish.container.composed(*audio_only).unwrap_or("mp4");
                let making = Making {
                    format: portunus_record::Format::Matroska,
                    extension,
                    converts: true,
                };
                let work = self.work_folder();
                let recordings = Recordings::of_room(recorder, media, work, &self.plan.room);
                File {
                    recordings,
                    name,
                    making,
                }
            }
            Source::Tracks(_) | Source::Participant { .. } => {
                let codecs: Vec<CodecName> = tracks.iter().map(|track| track.codec).collect();
                let making = wish.container.making(&codecs);
                let recorded = match making.converts {
                    true => format!("{}/tracks", self.work_folder()),
                    false => name.clone(),
                };
                File {
                    recordings: Recordings::together(recorder, media, recorded, making.format),
                    name,
                    making,
                }
            }
        };
        file.recordings.follow(tracks)?;
        outputs.file = Some(file);
        Ok(())
    }

    /// Returns the folder for files that another is made of.
    fn work_folder(&self) -> String {
        format!("work-{}", self.id)
    }

    fn activate(&self, outputs: &Outputs) {
        let file = outputs.file.as_ref();
        let file = file.map(|file| format!("{}.{}", file.name, file.making.extension));
        self.egresses.update(&self.id, |info| {
            info.set_status(EgressStatus::EgressActive);
            let started_at = nanos();
            info.started_at = started_at;
            if let Some(filename) = file {
                let file = lk::FileInfo {
                    filename,
                    started_at,
                    ..lk::FileInfo::default()
                };
                set_files(info, vec![file]);
            }
            for stream in &mut info.stream_results {
                stream.started_at = started_at;
            }
        });
    }

    async fn command(&mut self, command: Command, outputs: &mut Outputs) {
        match command {
            Command::Stop => {}
            Command::AddStream(url) => {
                let stream = self.start_stream(url.clone());
                outputs.streams.push(stream);
                self.egresses.update(&self.id, |info| {
                    info.stream_results.push(started(&url));
                });
            }
            Command::RemoveStream(url) => {
                let index = outputs.streams.iter().position(|it| it.url == url);
                let Some(index) = index else { return };
                let mut stream = outputs.streams.remove(index);
                if let Some(ended) = stream.stop().await {
                    self.note_ended(&url, &ended);
                }
            }
            Command::Layout(layout) => {
                if let Source::Room { layout: own, .. } = &mut self.plan.source {
                    *own = layout;
                }
            }
        }
    }

    /// Looks at the outputs. Fails if nothing can be put out any more.
    async fn check(&self, outputs: &mut Outputs) -> Result<(), String> {
        let file = outputs.file.as_ref();
        for outcome in file.map(|file| file.recordings.ended()).unwrap_or_default() {
            outcome.ended().await.map_err(|error| error.to_string())?;
        }
        let before = outputs.streams.len();
        let mut running = Vec::new();
        for mut stream in outputs.streams.drain(..) {
            match stream.outcome().await {
                None => running.push(stream),
                Some(ended) => {
                    self.note_ended(&stream.url, &ended);
                    outputs.failed = ended.err().or(outputs.failed.take());
                }
            }
        }
        outputs.streams = running;
        let is_last = before > 0 && outputs.streams.is_empty() && self.plan.file.is_none();
        match outputs.failed.clone() {
            Some(error) if is_last => Err(error),
            _ => Ok(()),
        }
    }

    fn note_ended(&self, url: &StreamUrl, ended: &Result<(), String>) {
        let shown = url.shown();
        self.egresses.update(&self.id, |info| {
            let active = i32::from(stream_info::Status::Active);
            let mut streams = info.stream_results.iter_mut();
            let Some(stream) = streams.find(|it| it.url == shown && it.status == active) else {
                return;
            };
            stream.ended_at = nanos();
            if stream.started_at > 0 {
                stream.duration = stream.ended_at.saturating_sub(stream.started_at);
            }
            match ended {
                Ok(()) => stream.set_status(stream_info::Status::Finished),
                Err(error) => {
                    stream.set_status(stream_info::Status::Failed);
                    stream.error.clone_from(error);
                }
            }
        });
    }

    /// Ends the outputs, and makes the file.
    async fn finish(&self, outputs: Outputs) -> Result<(), String> {
        for mut stream in outputs.streams {
            if let Some(ended) = stream.stop().await {
                self.note_ended(&stream.url, &ended);
            }
        }
        let Some(file) = outputs.file else {
            return match self.plan.file.is_some() {
                true => Err("there was nothing to record".to_owned()),
                false => Ok(()),
            };
        };
        let recorded = file.recordings.finish().await?;
        if recorded.files.is_empty() {
            return Err("there was nothing to record".to_owned());
        }
        let folder = self.means.recorder.folder().to_owned();
        let results = match file.making.converts {
            true => {
                let to = target(&self.means.recorder, &file.name, file.making.extension).await?;
                let files = self.make(&recorded, &to).await?;
                let work = folder.join(self.work_folder());
                if let Err(error) = tokio::fs::remove_dir_all(&work).await {
                    tracing::warn!(folder = %work.display(), "cannot be removed: {error}");
                }
                files
            }
            false => {
                let mut results = Vec::new();
                for completed in recorded.files {
                    results.push(renamed(completed, file.making.extension).await?);
                }
                results
            }
        };
        // Recorded files are named without links.
        let real = tokio::fs::canonicalize(&folder).await;
        let folders = [real.unwrap_or_else(|_| folder.clone()), folder];
        let infos = results.into_iter().map(|made| made.info(&folders));
        let infos: Vec<lk::FileInfo> = infos.collect();
        self.egresses
            .update(&self.id, |info| set_files(info, infos));
        Ok(())
    }

    /// Makes the file of what is recorded. A recording of several parts becomes several files.
    async fn make(&self, recorded: &Recorded, to: &Path) -> Result<Vec<Made>, String> {
        let conversion = Conversion {
            ffmpeg: &self.means.ffmpeg,
            composer: self.means.composer.as_deref(),
            encoding: self.plan.encoding,
        };
        if let Source::Room { layout, .. } = &self.plan.source {
            let manifest = recorded.manifest.as_deref();
            let manifest = manifest.ok_or("manifests are turned off (recording.manifest)")?;
            conversion.compose(manifest, layout, to).await?;
            let longest = recorded.files.iter().map(|it| it.duration).max();
            let made = Made::at(to.to_owned(), longest.unwrap_or_default()).await?;
            return Ok(vec![made]);
        }
        let mut made = Vec::new();
        for (number, part) in (1..).zip(&recorded.files) {
            let to = match number {
                1 => to.to_owned(),
                number => numbered(to, number),
            };
            conversion.convert(&part.file, &to).await?;
            made.push(Made::at(to, part.duration).await?);
        }
        Ok(made)
    }
}

/// A file that is complete.
#[derive(Debug, PartialEq)]
struct Made {
    path: PathBuf,
    duration: Duration,
    bytes: u64,
}

impl Made {
    async fn at(path: PathBuf, duration: Duration) -> Result<Self, String> {
        let metadata = tokio::fs::metadata(&path).await;
        let metadata = metadata.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Made {
            bytes: metadata.len(),
            path,
            duration,
        })
    }

    /// Describes it, with its name relative to one of these folders.
    fn info(&self, folders: &[PathBuf]) -> lk::FileInfo {
        let mut relative = folders.iter().map(|folder| self.path.strip_prefix(folder));
        let shown = relative.find_map(Result::ok).unwrap_or(&self.path);
        let number = |value: u128| i64::try_from(value).unwrap_or(i64::MAX);
        let duration = number(self.duration.as_nanos());
        let ended_at = nanos();
        lk::FileInfo {
            filename: shown.to_string_lossy().into_owned(),
            location: self.path.to_string_lossy().into_owned(),
            started_at: ended_at.saturating_sub(duration),
            ended_at,
            duration,
            size: number(self.bytes.into()),
        }
    }
}

/// Gives a recorded file the extension that was asked for.
async fn renamed(completed: Completed, extension: &str) -> Result<Made, String> {
    let (from, is_ogg) = (&completed.file, extension == "ogg");
    let is_renamed = is_ogg && from.extension().is_some_and(|it| it == "opus");
    let path = match is_renamed {
        true => from.with_extension(extension),
        false => from.clone(),
    };
    if is_renamed {
        let moved = tokio::fs::rename(from, &path).await;
        moved.map_err(|error| format!("{} cannot be renamed: {error}", from.display()))?;
    }
    Ok(Made {
        path,
        duration: completed.duration,
        bytes: completed.bytes,
    })
}

/// Returns the path of a file that a program makes. Makes its folder.
async fn target(recorder: &Recorder, name: &str, extension: &str) -> Result<PathBuf, String> {
    let checked = recorder.check_folder(None, name).await;
    checked.map_err(|error| error.to_string())?;
    let path = recorder.folder().join(format!("{name}.{extension}"));
    match tokio::fs::try_exists(&path).await {
        Ok(false) => Ok(path),
        Ok(true) => Err(format!("there is a file {name}.{extension} already")),
        Err(error) => Err(format!("{name}.{extension}: {error}")),
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{number}.{extension}"))
}

/// Returns the description of a stream that begins.
pub(super) fn started(url: &StreamUrl) -> lk::StreamInfo {
    lk::StreamInfo {
        url: url.shown(),
        started_at: nanos(),
        ..lk::StreamInfo::default()
    }
}

/// Sets the files of an egress, where clients of former versions look, too.
fn set_files(info: &mut lk::EgressInfo, files: Vec<lk::FileInfo>) {
    info.result = files.first().cloned().map(lk::egress_info::Result::File);
    info.file_results = files;
}
