//! Recordings of a client's media.

use std::sync::Arc;
use std::time::Duration;

use portunus_media::SourceRef;
use portunus_record::{
    Completed, Format, JointRecording, JointSpec, Participant, RecordError, RecordedMedia,
    Recorder, Recording, RecordingSpec, SessionSpec, TrackSpec,
};
use portunus_rtp::Mid;
use portunus_sdp::Kind;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;

use crate::events::EventBus;
use crate::{Handle, Object};

/// News of a recording for its client.
#[derive(Debug, Clone, Copy)]
pub enum RecordingNews<'a> {
    /// It cannot be recorded, or the recording has failed.
    Failed(&'a RecordError),
    /// A file is complete.
    Done(&'a Completed),
}

impl RecordingNews<'_> {
    /// Returns the members of an event about it, without the address.
    pub fn event(&self) -> Object {
        match self {
            RecordingNews::Failed(error) => Object::new()
                .with("event", "recording_failed")
                .with("reason", error.to_string()),
            RecordingNews::Done(completed) => {
                let name = completed.file.file_name().unwrap_or_default();
                Object::new()
                    .with("event", "recording_done")
                    .with("file", name.to_string_lossy())
                    .with("duration_ms", millis(completed.duration))
                    .with("bytes", completed.bytes)
                    .with("end", completed.end.name())
            }
        }
    }
}

/// Makes the event for the client.
type Tell = Arc<dyn Fn(RecordingNews<'_>) -> Value + Send + Sync>;

impl Handle {
    /// Checks that recordings with this name can be written. Folder and name are as in
    /// [`RecordingSpec`].
    pub fn check_recording(&self, dir: Option<&str>, name: &str) -> Result<(), RecordError> {
        self.recorder().check(dir, name)
    }

    /// The default format of files.
    pub fn recording_format(&self) -> Format {
        self.recorder().format()
    }

    /// The client as the only participant of a recording, with files of this name.
    pub fn recorded_alone(&self, name: &str) -> Participant {
        let session = self.recorder().session(SessionSpec {
            plugin: self.package(),
            dir: None,
            name: name.to_owned(),
            room: None,
            description: None,
        });
        Participant {
            session,
            id: self.id().to_string(),
            display: None,
        }
    }

    /// Records the media of m-line `mid`, with an `open` or closed gate. Returns `None` if there is
    /// no PeerConnection or it cannot be recorded. `tell` makes the events for the client: of
    /// failures, which end the recording, and of complete files unless they are in Janus's format.
    pub fn record(
        &self,
        mid: Mid,
        open: bool,
        spec: RecordingSpec,
        tell: impl Fn(RecordingNews<'_>) -> Value + Send + Sync + 'static,
    ) -> Option<Recording> {
        self.record_source(self.track(mid)?, open, spec, tell)
    }

    /// As [`Handle::record`], for any source, such as the other side of a call.
    pub fn record_source(
        &self,
        from: impl Into<SourceRef>,
        open: bool,
        spec: RecordingSpec,
        tell: impl Fn(RecordingNews<'_>) -> Value + Send + Sync + 'static,
    ) -> Option<Recording> {
        let (tell, format): (Tell, _) = (Arc::new(tell), spec.format);
        let started = self.recorder().start(self.media(), from, open, spec);
        let recording = self.report_failure(started, &tell)?;
        self.report_end(recording.outcome(), &tell);
        if format != Format::Mjr {
            let handle = self.clone();
            recording.on_complete(move |completed| {
                handle.push(None, tell(RecordingNews::Done(completed)), None);
            });
        }
        Some(recording)
    }

    /// Records several m-lines together, as [`Handle::record`] does.
    pub fn record_jointly(
        &self,
        spec: JointSpec,
        tell: impl Fn(RecordingNews<'_>) -> Value + Send + Sync + 'static,
    ) -> Option<JointRecording> {
        let (tell, format): (Tell, _) = (Arc::new(tell), spec.format);
        let started = self.recorder().joint(self.media(), spec);
        let mut recording = self.report_failure(started, &tell)?;
        self.report_end(recording.outcome(), &tell);
        if format != Format::Mjr {
            let handle = self.clone();
            recording.on_complete(move |completed| {
                handle.push(None, tell(RecordingNews::Done(completed)), None);
            });
        }
        Some(recording)
    }

    fn report_failure<T>(&self, started: Result<T, RecordError>, tell: &Tell) -> Option<T> {
        let failed = |error: &RecordError| {
            tracing::warn!(handle = %self.id(), "not recorded: {error}");
            self.push(None, tell(RecordingNews::Failed(error)), None);
        };
        started.inspect_err(failed).ok()
    }

    fn report_end(&self, outcome: portunus_record::Outcome, tell: &Tell) {
        let (handle, tell) = (self.clone(), Arc::clone(tell));
        tokio::spawn(async move {
            if let Some(error) = outcome.failed().await {
                handle.push(None, tell(RecordingNews::Failed(&error)), None);
            }
        });
    }

    /// An m-line of the client for a joint recording.
    pub fn recorded_track(&self, mid: Mid, media: RecordedMedia, open: bool) -> Option<TrackSpec> {
        Some(TrackSpec {
            key: mid.as_str().to_owned(),
            media,
            from: self.track(mid)?.into(),
            open,
        })
    }
}

/// The recordings of a client: one file, or one for each kind of media.
#[derive(Debug)]
pub struct ClientRecording {
    files: Files,
}

#[derive(Debug)]
enum Files {
    Each(Vec<(Kind, Recording)>),
    Joint {
        recording: Box<JointRecording>,
        kinds: Vec<(Kind, String)>,
    },
}

/// The properties of a client's recording.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// The format of files, or `None` for the configured one.
    pub format: Option<Format>,
    /// The participant in the manifest.
    pub of: Option<Participant>,
}

/// An m-line that a client sends.
#[derive(Debug, Clone)]
pub struct SentMedia {
    /// The m-line.
    pub mid: Mid,
    /// Its kind.
    pub kind: Kind,
    /// Its kind for recorders.
    pub media: RecordedMedia,
}

impl ClientRecording {
    /// Records the first m-line of each kind in `media`: in Janus's format into `NAME-audio.mjr`,
    /// `NAME-video.mjr` and `NAME-data.mjr`, else into `NAME.webm` or as the format requires.
    /// `open` gives the gates. Returns `None` if nothing can be recorded. `tell` makes the events
    /// for the client, of a kind of media if they are about one.
    pub fn start(
        handle: &Handle,
        name: &str,
        media: &[SentMedia],
        open: impl Fn(Kind) -> bool,
        tell: fn(Object) -> Value,
        wish: Wish,
    ) -> Option<Self> {
        let format = wish.format.unwrap_or_else(|| handle.recording_format());
        let kinds = [Kind::Audio, Kind::Video, Kind::Data].into_iter();
        let first = |kind| media.iter().find(|sent| sent.kind == kind);
        let first: Vec<&SentMedia> = kinds.filter_map(first).collect();
        let files = match format {
            Format::Mjr => Self::each(handle, name, &first, &open, tell, wish.of),
            _ => Self::joint(handle, name, &first, &open, tell, format, wish.of),
        };
        Some(Self { files: files? })
    }

    fn each(
        handle: &Handle,
        name: &str,
        media: &[&SentMedia],
        open: &impl Fn(Kind) -> bool,
        tell: fn(Object) -> Value,
        of: Option<Participant>,
    ) -> Option<Files> {
        let mut recordings = Vec::new();
        for sent in media {
            let medium = sent.media.medium().as_str();
            let spec = RecordingSpec {
                dir: None,
                name: format!("{name}-{medium}"),
                media: sent.media.clone(),
                format: Format::Mjr,
                of: of.clone(),
            };
            let tell = move |news: RecordingNews<'_>| tell(news.event().with("media", medium));
            if let Some(recording) = handle.record(sent.mid, open(sent.kind), spec, tell) {
                recordings.push((sent.kind, recording));
            }
        }
        (!recordings.is_empty()).then_some(Files::Each(recordings))
    }

    fn joint(
        handle: &Handle,
        name: &str,
        media: &[&SentMedia],
        open: &impl Fn(Kind) -> bool,
        tell: fn(Object) -> Value,
        format: Format,
        of: Option<Participant>,
    ) -> Option<Files> {
        let track = |sent: &&SentMedia| {
            let track = handle.recorded_track(sent.mid, sent.media.clone(), open(sent.kind))?;
            Some((sent.kind, track))
        };
        let tracks: Vec<(Kind, TrackSpec)> = media.iter().filter_map(track).collect();
        if tracks.is_empty() {
            return None;
        }
        let key = |(kind, track): &(Kind, TrackSpec)| (*kind, track.key.clone());
        let kinds = tracks.iter().map(key).collect();
        let spec = JointSpec {
            dir: None,
            name: name.to_owned(),
            format,
            of,
            tracks: tracks.into_iter().map(|(_, track)| track).collect(),
        };
        let recording = Box::new(handle.record_jointly(spec, move |news| tell(news.event()))?);
        Some(Files::Joint { recording, kinds })
    }

    /// Opens and closes the gates.
    pub fn set_open(&mut self, open: impl Fn(Kind) -> bool) {
        match &mut self.files {
            Files::Each(recordings) => {
                for (kind, recording) in recordings {
                    recording.set_open(open(*kind));
                }
            }
            Files::Joint { recording, kinds } => {
                for (kind, key) in kinds {
                    recording.set_open(key, open(*kind));
                }
            }
        }
    }

    /// Whether the recording has ended.
    pub fn is_over(&self) -> bool {
        match &self.files {
            Files::Each(recordings) => recordings.iter().all(|(_, it)| it.is_over()),
            Files::Joint { recording, .. } => recording.is_over(),
        }
    }

    /// Returns the names of the files for operators, by kind if each kind has its own.
    pub fn to_json(&self) -> Value {
        match &self.files {
            Files::Each(recordings) => {
                let running = recordings.iter().filter(|(_, it)| !it.is_over());
                let members = running.fold(Object::new(), |members, (kind, recording)| {
                    let kind = match kind {
                        Kind::Audio => "audio",
                        Kind::Video => "video",
                        Kind::Data => "data",
                    };
                    members.with(kind, recording.file_name())
                });
                members.into()
            }
            Files::Joint { recording, .. } => {
                Object::new().with("files", recording.file_names()).into()
            }
        }
    }
}

/// Returns why recordings of a room cannot be written into one of these folders, or `None` if they
/// can. Logs the reason. So the maker of a room learns it before a client joins.
pub async fn recording_fault(
    recorder: &Recorder,
    room: &str,
    dirs: &[Option<String>],
) -> Option<String> {
    for dir in dirs {
        if let Err(error) = recorder.check_folder(dir.as_deref(), "room").await {
            tracing::warn!(room, "nothing of the room can be recorded: {error}");
            return Some(error.to_string());
        }
    }
    None
}

/// Publishes complete files of recordings as events, for as long as the recorder exists.
pub async fn publish_recordings(recorder: Recorder, events: EventBus) {
    let mut completed = recorder.completed();
    drop(recorder);
    loop {
        match completed.recv().await {
            Ok(completed) => {
                if let Some(plugin) = completed.plugin {
                    events.of_plugin(plugin).notify(|| recorded(&completed));
                }
            }
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!("events of {missed} complete recordings are lost");
            }
            Err(RecvError::Closed) => return,
        }
    }
}

fn recorded(completed: &Completed) -> Value {
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    Object::new()
        .with("event", "recorded")
        .with("file", path(&completed.file))
        .with_some("manifest", completed.manifest.as_deref().map(path))
        .with_some("room", completed.room.clone())
        .with_some("id", completed.participant.clone())
        .with("duration_ms", millis(completed.duration))
        .with("bytes", completed.bytes)
        .with("end", completed.end.name())
        .into()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
