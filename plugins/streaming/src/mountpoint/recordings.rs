//! Recordings of a mountpoint's streams.

use std::sync::{Arc, Mutex, MutexGuard};

use portunus_core::Ssrc;
use portunus_core::record::{
    Format, JointRecording, JointSpec, Outcome, Participant, RecordedMedia, Recorder, Recording,
    RecordingSpec, SessionSpec, TrackSpec,
};
use portunus_core::sdp::CodecName;
use portunus_resources::Id;

use super::{Mountpoint, Stream, lock};
use crate::config::PACKAGE;
use crate::refusal::Refusal;
use crate::spec::{DataType, MediaKind, StreamCodec};

/// The recording of a stream.
#[derive(Debug)]
pub(super) enum StreamRecording {
    /// Into a file of its own.
    Alone(Recording),
    /// A file shared with other streams.
    Shared(SharedTrack),
}

/// A stream's part of a shared file. Dropping it ends the part. The last part ends the file.
#[derive(Debug)]
pub(super) struct SharedTrack {
    recording: Arc<Mutex<JointRecording>>,
    key: String,
}

impl Drop for SharedTrack {
    fn drop(&mut self) {
        lock(&self.recording).remove(&self.key);
    }
}

impl StreamRecording {
    /// Returns the name of the file in use.
    fn file_name(&self) -> Option<String> {
        match self {
            StreamRecording::Alone(recording) => {
                (!recording.is_over()).then(|| recording.file_name())
            }
            StreamRecording::Shared(shared) => {
                let recording = lock(&shared.recording);
                (!recording.is_over()).then(|| recording.file_names().into_iter().next())?
            }
        }
    }
}

impl Mountpoint {
    /// Returns the manifest's entry for recordings that start together.
    pub(crate) fn recorded_as(&self, recorder: &Recorder, name: &str) -> Participant {
        let description = self.details().description.clone();
        let session = recorder.session(SessionSpec {
            plugin: PACKAGE,
            dir: None,
            name: name.to_owned(),
            room: Some(self.id.to_string()),
            description: Some(description).filter(|it| !it.is_empty()),
        });
        Participant {
            session,
            id: self.id.to_string(),
            display: Some(self.name.clone()).filter(|name| !name.is_empty()),
        }
    }

    /// Records stream number `index` into a file of its own, in Janus's format.
    pub(crate) fn start_recording(
        &self,
        recorder: &Recorder,
        index: usize,
        name: String,
        of: Participant,
    ) -> Result<Outcome, Refusal> {
        let stream = self.stream(index)?;
        let mut slot = stream.free()?;
        let track = stream.track(|media| self.marked(media))?;
        let spec = RecordingSpec {
            dir: None,
            name,
            media: track.media,
            format: Format::Mjr,
            of: Some(of),
        };
        let recording = recorder.start(&self.media, track.from, true, spec);
        let recording = recording.map_err(|error| Refusal::CannotRecord(error.to_string()))?;
        let outcome = recording.outcome();
        *slot = Some(StreamRecording::Alone(recording));
        Ok(outcome)
    }

    /// Records streams into one file, as many as fit.
    pub(crate) fn start_shared_recording(
        &self,
        recorder: &Recorder,
        streams: &[usize],
        name: String,
        format: Format,
        of: Participant,
    ) -> Result<Outcome, Refusal> {
        let mut slots = Vec::new();
        let mut tracks = Vec::new();
        for index in streams {
            let stream = self.stream(*index)?;
            slots.push((stream.mid(), stream.free()?));
            tracks.push(stream.track(|media| self.marked(media))?);
        }
        let spec = JointSpec {
            dir: None,
            name,
            format,
            of: Some(of),
            tracks,
        };
        let recording = recorder.joint(&self.media, spec);
        let recording = recording.map_err(|error| Refusal::CannotRecord(error.to_string()))?;
        let outcome = recording.outcome();
        let recording = Arc::new(Mutex::new(recording));
        for (mid, mut slot) in slots {
            *slot = Some(StreamRecording::Shared(SharedTrack {
                recording: Arc::clone(&recording),
                key: mid.as_str().to_owned(),
            }));
        }
        Ok(outcome)
    }

    fn stream(&self, index: usize) -> Result<&Stream, Refusal> {
        let missing = || Refusal::CannotRecord("there is no such stream".to_owned());
        self.streams.get(index).ok_or_else(missing)
    }

    /// Adds the mountpoint's id to a recording, as Janus does. An id that is a text has no number.
    fn marked(&self, media: RecordedMedia) -> RecordedMedia {
        let ssrc = match self.id {
            Id::Number(id) => Some(Ssrc(id as u32)),
            Id::Text(_) => None,
        };
        media.with_encryption(self.is_e2ee()).with_ssrc(ssrc)
    }

    /// Ends the recording of stream `index`, if there is one.
    pub(crate) fn stop_recording(&self, index: usize) {
        if let Some(stream) = self.streams.get(index) {
            drop(lock(&stream.recording).take());
        }
    }

    /// Ends all recordings.
    pub(crate) fn stop_recordings(&self) {
        for index in 0..self.streams.len() {
            self.stop_recording(index);
        }
    }

    /// Returns whether a stream is recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.streams
            .iter()
            .any(|stream| stream.recorded().is_some())
    }
}

impl Stream {
    /// Returns the name of the file that records the stream.
    pub(crate) fn recorded(&self) -> Option<String> {
        lock(&self.recording).as_ref()?.file_name()
    }

    /// Returns the slot of its recording. Fails if it is recorded.
    fn free(&self) -> Result<MutexGuard<'_, Option<StreamRecording>>, Refusal> {
        let slot = lock(&self.recording);
        match slot.as_ref().and_then(StreamRecording::file_name) {
            Some(_) => Err(Refusal::Invalid(format!(
                "Stream {} is being recorded already",
                self.mid().as_str()
            ))),
            None => Ok(slot),
        }
    }

    /// Returns the specification of its recording.
    fn track(
        &self,
        marked: impl FnOnce(RecordedMedia) -> RecordedMedia,
    ) -> Result<TrackSpec, Refusal> {
        let mid = self.mid();
        let source = self.live().source;
        let (Some(source), Some(content)) = (source, self.content()) else {
            let reason = format!("nothing comes of stream {}", mid.as_str());
            return Err(Refusal::CannotRecord(reason));
        };
        let label = Some(&self.spec.label).filter(|label| !label.is_empty());
        let content = content.with_mid(Some(mid.as_str().to_owned()));
        Ok(TrackSpec {
            key: mid.as_str().to_owned(),
            media: marked(content.with_description(label.cloned())),
            from: source,
            open: true,
        })
    }

    /// Returns the content of its recording, or `None` while its codec is unknown.
    fn content(&self) -> Option<RecordedMedia> {
        if self.kind() == MediaKind::Data {
            return Some(RecordedMedia::data(self.spec.datatype == DataType::Text));
        }
        let live = self.live();
        let content = match live.codec? {
            StreamCodec::Plain(codec) => RecordedMedia::codec(codec),
            StreamCodec::Red => RecordedMedia::codec(CodecName::Opus).with_red(true),
        };
        Some(content.with_fmtp(live.fmtp.clone()))
    }
}
