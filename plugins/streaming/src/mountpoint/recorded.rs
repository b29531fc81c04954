//! Recordings of a mountpoint's streams.

use portunus_core::Ssrc;
use portunus_core::media::MediaPlane;
use portunus_core::record::{Format, Outcome, RecordedMedia, Recorder, Recording, RecordingSpec};
use portunus_core::sdp::CodecName;
use portunus_resources::Id;

use super::{Mountpoint, Stream, lock};
use crate::refusal::Refusal;
use crate::spec::{DataType, MediaKind, StreamCodec};

impl Mountpoint {
    /// Records stream number `index`.
    pub(crate) fn start_recording(
        &self,
        recorder: &Recorder,
        index: usize,
        name: String,
    ) -> Result<Outcome, Refusal> {
        let Some(stream) = self.streams.get(index) else {
            return Err(Refusal::CannotRecord("there is no such stream".to_owned()));
        };
        // As Janus has it, files of a mountpoint tell whose they are; an id that is text has no number.
        let ssrc = match self.id {
            Id::Number(id) => Some(Ssrc(id as u32)),
            Id::Text(_) => None,
        };
        let marked = |media: RecordedMedia| media.with_encryption(self.is_e2ee()).with_ssrc(ssrc);
        stream.record(recorder, &self.media, name, marked)
    }

    /// Ends the recording of stream number `index`, if there is one.
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

    /// Whether anything is recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.streams
            .iter()
            .any(|stream| stream.recorded().is_some())
    }
}

impl Stream {
    /// The file that it is recorded into now.
    pub(crate) fn recorded(&self) -> Option<String> {
        let recording = lock(&self.recording);
        let running = recording.as_ref().filter(|it| !it.is_over());
        running.map(Recording::file_name)
    }

    fn record(
        &self,
        recorder: &Recorder,
        media: &MediaPlane,
        name: String,
        marked: impl FnOnce(RecordedMedia) -> RecordedMedia,
    ) -> Result<Outcome, Refusal> {
        let mid = self.mid();
        let mut slot = lock(&self.recording);
        if slot.as_ref().is_some_and(|recording| !recording.is_over()) {
            let reason = format!("Stream {} is being recorded already", mid.as_str());
            return Err(Refusal::Invalid(reason));
        }
        let source = self.live().source;
        let (Some(source), Some(content)) = (source, self.content()) else {
            let reason = format!("nothing comes of stream {}", mid.as_str());
            return Err(Refusal::CannotRecord(reason));
        };
        let label = Some(&self.spec.label).filter(|label| !label.is_empty());
        let spec = RecordingSpec {
            dir: None,
            name,
            media: marked(content.with_description(label.cloned())),
            format: Format::Mjr,
            of: None,
        };
        let recording = recorder.start(media, source, true, spec);
        let recording = recording.map_err(|error| Refusal::CannotRecord(error.to_string()))?;
        let outcome = recording.outcome();
        *slot = Some(recording);
        Ok(outcome)
    }

    /// What is in the recording; none as long as nobody has said it.
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
