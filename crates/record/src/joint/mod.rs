//! Joint recordings: all tracks of a participant, in one file if the format allows it.

mod container;
mod note;
mod part;
mod writer;

use std::collections::HashMap;
use std::sync::Arc;

use portunus_media::{MediaPlane, SourceRef};
use portunus_sdp::CodecName;

use crate::control::Listener;
use crate::place::numbered;
use crate::{
    Completed, Format, Medium, Outcome, Participant, RecordError, RecordedMedia, Recorder,
    Recording, RecordingSpec,
};
use container::ContainerRecording;

/// The description of a joint recording.
#[derive(Debug, Clone)]
pub struct JointSpec {
    /// The folder, as a client or the configuration names it. `None`: the recorder's own.
    pub dir: Option<String>,
    /// The name of the file without its extension. It may contain folders, which are made if
    /// missing.
    pub name: String,
    /// The format of the files. Tracks that a container cannot hold are recorded in Janus's format.
    pub format: Format,
    /// The owner, for the manifest.
    pub of: Option<Participant>,
    /// The first tracks.
    pub tracks: Vec<TrackSpec>,
}

/// A source that is recorded with others.
#[derive(Debug, Clone)]
pub struct TrackSpec {
    /// The name of the track in the recording: its m-line.
    pub key: String,
    /// The content of the source.
    pub media: RecordedMedia,
    /// The source.
    pub from: SourceRef,
    /// Whether its gate is open.
    pub open: bool,
}

/// A recording of several sources. Dropping it ends it; packets so far are written.
#[derive(Debug)]
pub struct JointRecording {
    recorder: Recorder,
    media: MediaPlane,
    spec: JointSpec,
    /// The shared files: one, unless that has ended or is full.
    together: Vec<ContainerRecording>,
    /// The number of shared files so far.
    count: u32,
    /// The files with one track each.
    alone: Vec<Alone>,
    /// The number of files so far, by name.
    names: HashMap<String, u32>,
    /// The keys of tracks that were added after a failure.
    late: Vec<String>,
    listener: Option<Listener>,
}

#[derive(Debug)]
struct Alone {
    key: String,
    medium: Medium,
    recording: Recording,
}

impl Recorder {
    /// Records several sources together until the [`JointRecording`] is dropped or all of them end.
    /// The files are made in the background: see [`JointRecording::outcome`]. Needs tokio's runtime.
    pub fn joint(
        &self,
        media: &MediaPlane,
        spec: JointSpec,
    ) -> Result<JointRecording, RecordError> {
        JointRecording::start(self, media, spec)
    }
}

impl JointRecording {
    pub(crate) fn start(
        recorder: &Recorder,
        media: &MediaPlane,
        mut spec: JointSpec,
    ) -> Result<Self, RecordError> {
        let tracks = std::mem::take(&mut spec.tracks);
        let mut recording = Self {
            recorder: recorder.clone(),
            media: media.clone(),
            spec,
            together: Vec::new(),
            count: 0,
            alone: Vec::new(),
            names: HashMap::new(),
            late: Vec::new(),
            listener: None,
        };
        let is_container = recording.spec.format.is_container();
        let (together, alone): (Vec<_>, Vec<_>) = tracks
            .into_iter()
            .partition(|track| is_container && contained(&track.media).is_some());
        let is_empty = together.is_empty() && alone.is_empty();
        if !together.is_empty() {
            recording.begin(together)?;
        }
        for track in alone {
            recording.add_alone(track)?;
        }
        let is_nothing = recording.together.is_empty() && recording.alone.is_empty();
        if is_nothing && !is_empty {
            return Err(RecordError::Unfit {
                name: recording.spec.name,
                format: recording.spec.format.extension(),
            });
        }
        Ok(recording)
    }

    /// Opens or closes the gate of a track. While it is closed nothing of it is recorded.
    pub fn set_open(&mut self, key: &str, open: bool) {
        for together in &mut self.together {
            together.set_open(key, open);
        }
        for alone in self.alone.iter_mut().filter(|it| it.key == key) {
            alone.recording.set_open(open);
        }
    }

    /// Adds a track. It replaces one with the same key. If the file cannot hold it, it gets a file
    /// of its own. If the file has ended, the next one starts. After a failure nothing more is
    /// recorded.
    pub fn add(&mut self, track: TrackSpec) {
        self.remove(&track.key);
        if let Err(error) = self.add_somewhere(track) {
            tracing::warn!(file = self.spec.name, "a track is not recorded: {error}");
        }
    }

    fn add_somewhere(&mut self, track: TrackSpec) -> Result<(), RecordError> {
        if !self.spec.format.is_container() || contained(&track.media).is_none() {
            return self.add_alone(track);
        }
        if self.together.iter().any(ContainerRecording::has_failed) {
            tracing::warn!(file = self.spec.name, "a track comes after a failure");
            self.late.push(track.key);
            return Ok(());
        }
        for together in &mut self.together {
            // The file may end just now.
            if together.takes(&track.media) && together.add(&track) {
                return Ok(());
            }
        }
        self.together.retain(|it| !it.is_over());
        self.begin(vec![track])
    }

    /// Ends a track.
    pub fn remove(&mut self, key: &str) {
        for together in &mut self.together {
            together.remove(key);
        }
        self.alone.retain(|it| it.key != key);
        self.late.retain(|it| it != key);
    }

    /// Returns the keys of all tracks.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let together = self.together.iter().flat_map(ContainerRecording::keys);
        let alone = self.alone.iter().map(|it| it.key.as_str());
        let late = self.late.iter().map(String::as_str);
        together.chain(alone).chain(late)
    }

    /// Whether all files have ended, with their sources or by a failure.
    pub fn is_over(&self) -> bool {
        self.together.iter().all(ContainerRecording::is_over)
            && self.alone.iter().all(|it| it.recording.is_over())
    }

    /// Returns the names of the files that are being written, without folders.
    pub fn file_names(&self) -> Vec<String> {
        let together = self.together.iter().filter(|it| !it.is_over());
        let together = together.map(ContainerRecording::file_name);
        let alone = self.alone.iter().filter(|it| !it.recording.is_over());
        let alone = alone.map(|it| it.recording.file_name());
        together.chain(alone).collect()
    }

    /// Sets the function that gets each file once it is complete. The writing threads call it, so
    /// it must not block.
    pub fn on_complete(&mut self, listener: impl Fn(&Completed) + Send + Sync + 'static) {
        let listener = Listener(Arc::new(listener));
        for together in &self.together {
            together.listen(listener.clone());
        }
        for alone in &self.alone {
            alone.recording.listen(listener.clone());
        }
        self.listener = Some(listener);
    }

    /// Returns the future outcome of all present files.
    pub fn outcome(&self) -> Outcome {
        let together = self.together.iter().map(ContainerRecording::outcome);
        Outcome::of_all(together.chain(self.alone.iter().map(|it| it.recording.outcome())))
    }

    fn begin(&mut self, tracks: Vec<TrackSpec>) -> Result<(), RecordError> {
        let (recorder, number) = (&self.recorder, self.count + 1);
        let started = ContainerRecording::start(recorder, &self.media, &self.spec, number, tracks)?;
        self.count += 1;
        if let Some(listener) = &self.listener {
            started.listen(listener.clone());
        }
        self.together.push(started);
        Ok(())
    }

    fn add_alone(&mut self, track: TrackSpec) -> Result<(), RecordError> {
        let medium = track.media.medium();
        let format = match self.spec.format {
            Format::OggOpus if !track.media.is_plain(CodecName::Opus) => {
                if let Some(of) = &self.spec.of {
                    of.session.leave_out(of, &track.key);
                }
                return Ok(());
            }
            Format::OggOpus => Format::OggOpus,
            Format::Mjr | Format::WebM | Format::Matroska | Format::Mp4 => Format::Mjr,
        };
        let is_first = !self.alone.iter().any(|it| it.medium == medium);
        let name = &self.spec.name;
        let name = match (format, is_first) {
            (Format::OggOpus, true) => name.clone(),
            (_, true) => format!("{name}-{}", medium.as_str()),
            (_, false) => format!("{name}-{}-{}", medium.as_str(), track.key),
        };
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        // A track that was removed and comes again gets another file.
        let name = numbered(&name, *count);
        let spec = RecordingSpec {
            dir: self.spec.dir.clone(),
            name,
            media: track.media,
            format,
            of: self.spec.of.clone(),
        };
        let recording = self
            .recorder
            .start(&self.media, track.from, track.open, spec)?;
        if let Some(listener) = &self.listener {
            recording.listen(listener.clone());
        }
        self.alone.push(Alone {
            key: track.key,
            medium,
            recording,
        });
        Ok(())
    }
}

/// Returns the codec of a track, if containers can hold it.
fn contained(media: &RecordedMedia) -> Option<CodecName> {
    let codec = media.codec_name()?;
    (Format::Matroska.takes(codec) && media.is_plain(codec)).then_some(codec)
}
