//! What publishers send, into files.

use portunus_core::record::{
    Format, RecordError, RecordedMedia, Recording, RecordingSpec, file_safe, stamped,
};
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{Handle, Object};
use portunus_resources::Id;
use serde_json::Value;

use super::{Origin, Publications, Stream, medium};
use crate::refusal::Refusal;
use crate::roster::RecordSettings;

impl Publications {
    /// Checks that recordings of this name could be made.
    pub(crate) fn check_recording(
        &self,
        dir: Option<&str>,
        name: Option<&str>,
    ) -> Result<(), Refusal> {
        let checked = self.recorder.check(dir, name.unwrap_or("videoroom"));
        checked.map_err(|error| Refusal::Recording(error.to_string()))
    }

    /// Begins, ends and gates the recordings of a participant, so that they are as they should be. One that failed is
    /// begun anew only if that is asked for.
    pub(crate) fn record(
        &mut self,
        (room, id): (&Id, &Id),
        settings: &RecordSettings,
        dir: Option<&str>,
        anew: bool,
    ) {
        let Some(publication) = self.by_feed.get_mut(id) else {
            return;
        };
        let name = || {
            let room = file_safe(&room.to_string());
            stamped(&format!(
                "videoroom-{room}-user-{}",
                file_safe(&id.to_string())
            ))
        };
        let name = settings.name.clone().unwrap_or_else(name);
        for stream in &mut publication.streams {
            if !settings.on || stream.disabled {
                stream.recording = None;
                continue;
            }
            let open = stream.is_open();
            if let Some(recording) = &mut stream.recording
                && !(anew && recording.is_over())
            {
                recording.set_open(open);
                continue;
            }
            let Some(content) = stream.content() else {
                continue;
            };
            let spec = RecordingSpec {
                dir: dir.map(str::to_owned),
                name: format!("{name}-{}-{}", medium(stream.kind), stream.index),
                media: content.with_encryption(publication.e2ee),
                format: Format::Mjr,
                of: None,
            };
            stream.recording = match &publication.origin {
                Origin::Client(handle) => start(room, (handle, settings.told_why), stream, spec),
                // Nobody is there to be told of a failure but the log.
                origin => origin.source(stream.mid).and_then(|source| {
                    let started = self.recorder.start(&self.media, source, open, spec);
                    let failed =
                        |error: &RecordError| tracing::warn!(%room, %id, "not recorded: {error}");
                    started.inspect_err(failed).ok()
                }),
            };
        }
    }
}

fn start(
    room: &Id,
    (handle, told_why): (&Handle, bool),
    stream: &Stream,
    spec: RecordingSpec,
) -> Option<Recording> {
    let event = Object::new()
        .with("videoroom", "event")
        .with("room", room.to_json())
        .with("event", "recording_failed")
        .with("mid", stream.mid.as_str())
        .with("type", medium(stream.kind));
    let failed = move |error: &RecordError| -> Value {
        let reason = match told_why {
            true => error.to_string(),
            false => "the server cannot record this".to_owned(),
        };
        event.with("reason", reason).into()
    };
    handle.record(stream.mid, stream.is_open(), spec, failed)
}

impl Stream {
    /// What is in a recording of it.
    fn content(&self) -> Option<RecordedMedia> {
        let description = self.description.clone();
        if self.kind == Kind::Data {
            return Some(RecordedMedia::data(true).with_description(description));
        }
        let codec = self.codec?;
        let parameter = |name: &str, value: &Option<String>| {
            let value = value.as_ref()?;
            Some(format!("{name}={value}"))
        };
        let fmtp = match codec {
            CodecName::H264 => parameter("profile-level-id", &self.h264_profile),
            CodecName::Vp9 => parameter("profile-id", &self.vp9_profile),
            CodecName::Opus => self.opus.fmtp(),
            _ => self.fmtp.clone(),
        };
        let content = RecordedMedia::codec(codec).with_fmtp(fmtp);
        Some(content.with_description(description))
    }
}
