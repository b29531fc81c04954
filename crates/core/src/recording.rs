//! Recording what a client sends.

use portunus_record::{Format, RecordError, RecordedMedia, Recording, RecordingSpec};
use portunus_rtp::Mid;
use portunus_sdp::Kind;
use serde_json::Value;

use crate::{Handle, Object};

impl Handle {
    /// Checks that recordings of this name could be made; folder and name are as in [`RecordingSpec`].
    pub fn check_recording(&self, dir: Option<&str>, name: &str) -> Result<(), RecordError> {
        self.recorder().check(dir, name)
    }

    /// Records what the client sends on m-line `mid`, with its gate `open` or not; none if there is no PeerConnection or
    /// it cannot be. The client is told by `failed` if it cannot, now or later, and the recording is over then.
    pub fn record(
        &self,
        mid: Mid,
        open: bool,
        spec: RecordingSpec,
        failed: impl FnOnce(&RecordError) -> Value + Send + 'static,
    ) -> Option<Recording> {
        let track = self.track(mid)?;
        match self.recorder().start(self.media(), track, open, spec) {
            Ok(recording) => {
                let (outcome, handle) = (recording.outcome(), self.clone());
                tokio::spawn(async move {
                    if let Err(error) = outcome.ended().await {
                        handle.push(None, failed(&error), None);
                    }
                });
                Some(recording)
            }
            Err(error) => {
                tracing::warn!(handle = %self.id(), "not recorded: {error}");
                self.push(None, failed(&error), None);
                None
            }
        }
    }
}

/// The recordings of a client that has one file for each kind of media: the first m-line of each.
#[derive(Debug)]
pub struct ClientRecording {
    recordings: Vec<(Kind, Recording)>,
}

/// An m-line that a client sends on.
#[derive(Debug, Clone)]
pub struct SentMedia {
    /// The m-line.
    pub mid: Mid,
    /// What it carries.
    pub kind: Kind,
    /// The same, for recorders.
    pub media: RecordedMedia,
}

impl ClientRecording {
    /// Records the first of each kind of `media` into `NAME-audio.mjr`, `NAME-video.mjr` and `NAME-data.mjr`; gates are
    /// as `open` says. None if nothing can be recorded. `failed` makes what the client is told of a kind of media that
    /// cannot be.
    pub fn start(
        handle: &Handle,
        name: &str,
        media: &[SentMedia],
        open: impl Fn(Kind) -> bool,
        failed: fn(&'static str, &RecordError) -> Value,
    ) -> Option<Self> {
        let mut recordings = Vec::new();
        for kind in [Kind::Audio, Kind::Video, Kind::Data] {
            let Some(sent) = media.iter().find(|sent| sent.kind == kind) else {
                continue;
            };
            let medium = sent.media.medium().as_str();
            let spec = RecordingSpec {
                dir: None,
                name: format!("{name}-{medium}"),
                media: sent.media.clone(),
                format: Format::Mjr,
                of: None,
            };
            let failed = move |error: &RecordError| failed(medium, error);
            if let Some(recording) = handle.record(sent.mid, open(kind), spec, failed) {
                recordings.push((kind, recording));
            }
        }
        (!recordings.is_empty()).then_some(Self { recordings })
    }

    /// Opens and closes the gates.
    pub fn set_open(&mut self, open: impl Fn(Kind) -> bool) {
        for (kind, recording) in &mut self.recordings {
            recording.set_open(open(*kind));
        }
    }

    /// Whether nothing is recorded any more.
    pub fn is_over(&self) -> bool {
        self.recordings
            .iter()
            .all(|(_, recording)| recording.is_over())
    }

    /// The names of the files by kind, for administrators.
    pub fn to_json(&self) -> Value {
        let running = self.recordings.iter().filter(|(_, it)| !it.is_over());
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
}
