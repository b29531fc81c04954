//! What publishers send, into files.

use portunus_core::media::MediaPlane;
use portunus_core::record::{
    Format, JointSpec, Participant, RecordError, RecordedMedia, Recorder, RecordingSpec,
    SessionSpec, TrackSpec, WeakSession, file_safe, stamped,
};
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{Object, RecordingNews};
use portunus_resources::Id;
use serde_json::Value;

use super::{Origin, Publication, Publications, Stream, medium};
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
    pub(crate) fn record(&mut self, of: &Recorded<'_>, settings: &RecordSettings, anew: bool) {
        let Some(publication) = self.by_feed.get_mut(of.id) else {
            return;
        };
        if !settings.on {
            publication.recording = None;
            for stream in &mut publication.streams {
                stream.recording = None;
            }
            return;
        }
        let means = Means {
            media: &self.media,
            recorder: &self.recorder,
            recorded: &mut self.recorded,
        };
        let format = settings.format.or(of.format);
        let format = format.unwrap_or_else(|| self.recorder.format());
        let is_each = publication.streams.iter().any(|it| it.recording.is_some());
        let is_joint = publication.recording.is_some() || format != Format::Mjr && !is_each;
        match is_joint {
            true => publication.record_jointly(means, of, (settings, format), anew),
            false => publication.record_each(means, of, settings, anew),
        }
    }
}

/// Who is recorded in which room, and how the room wants it.
pub(crate) struct Recorded<'a> {
    pub(crate) room: &'a Id,
    pub(crate) id: &'a Id,
    pub(crate) display: Option<&'a str>,
    /// What the room is called.
    pub(crate) description: &'a str,
    /// The folder.
    pub(crate) dir: Option<&'a str>,
    pub(crate) format: Option<Format>,
}

/// What is recorded with.
struct Means<'a> {
    media: &'a MediaPlane,
    recorder: &'a Recorder,
    recorded: &'a mut WeakSession,
}

impl Means<'_> {
    /// As somebody of whom the room's manifest tells. It begins with whoever is recorded first, and ends with whoever is last.
    fn participant(&mut self, of: &Recorded<'_>) -> Participant {
        let session = self.recorded.upgrade().unwrap_or_else(|| {
            let room = of.room.to_string();
            self.recorder.session(SessionSpec {
                plugin: "janus.plugin.videoroom",
                dir: of.dir.map(str::to_owned),
                name: stamped(&format!("videoroom-{}", file_safe(&room))),
                room: Some(room),
                description: Some(of.description.to_owned()).filter(|it| !it.is_empty()),
            })
        });
        *self.recorded = session.downgrade();
        Participant {
            session,
            id: of.id.to_string(),
            display: of.display.map(str::to_owned),
        }
    }
}

impl Recorded<'_> {
    /// What names of files begin with.
    fn name(&self, settings: &RecordSettings) -> String {
        let name = || {
            let room = file_safe(&self.room.to_string());
            let id = file_safe(&self.id.to_string());
            stamped(&format!("videoroom-{room}-user-{id}"))
        };
        settings.name.clone().unwrap_or_else(name)
    }

    /// What whoever is recorded is told, but for the stream that it is about.
    fn event(&self) -> Object {
        Object::new()
            .with("videoroom", "event")
            .with("room", self.room.to_json())
    }

    /// Where nobody is there to be told of a failure but the log.
    fn failed(&self, error: &RecordError) {
        let (room, id) = (self.room, self.id);
        tracing::warn!(%room, %id, "not recorded: {error}");
    }
}

impl Publication {
    /// A file for each stream.
    fn record_each(
        &mut self,
        mut means: Means<'_>,
        of: &Recorded<'_>,
        settings: &RecordSettings,
        anew: bool,
    ) {
        let name = of.name(settings);
        for stream in &mut self.streams {
            if stream.disabled {
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
                dir: of.dir.map(str::to_owned),
                name: format!("{name}-{}-{}", medium(stream.kind), stream.index),
                media: content.with_encryption(self.e2ee),
                format: Format::Mjr,
                of: Some(means.participant(of)),
            };
            stream.recording = match &self.origin {
                Origin::Client(handle) => {
                    let event = of
                        .event()
                        .with("mid", stream.mid.as_str())
                        .with("type", medium(stream.kind));
                    let tell = told(event, settings.told_why);
                    handle.record(stream.mid, open, spec, tell)
                }
                origin => origin.source(stream.mid).and_then(|source| {
                    let started = means.recorder.start(means.media, source, open, spec);
                    started.inspect_err(|error| of.failed(error)).ok()
                }),
            };
        }
    }

    /// One file for all streams, as far as it has room for them.
    fn record_jointly(
        &mut self,
        mut means: Means<'_>,
        of: &Recorded<'_>,
        (settings, format): (&RecordSettings, Format),
        anew: bool,
    ) {
        self.recording = self.recording.take().filter(|it| !(anew && it.is_over()));
        let e2ee = self.e2ee;
        let origin = &self.origin;
        let track = |stream: &Stream| {
            Some(TrackSpec {
                key: stream.mid.as_str().to_owned(),
                media: stream.content()?.with_encryption(e2ee),
                from: origin.source(stream.mid)?,
                open: stream.is_open(),
            })
        };
        let wanted = self.streams.iter().filter(|stream| !stream.disabled);
        if let Some(recording) = &mut self.recording {
            for stream in &self.streams {
                let key = stream.mid.as_str();
                let is_in = recording.keys().any(|it| it == key);
                match (stream.disabled, is_in) {
                    (true, true) => recording.remove(key),
                    (false, true) => recording.set_open(key, stream.is_open()),
                    (false, false) => {
                        if let Some(track) = track(stream) {
                            recording.add(track);
                        }
                    }
                    (true, false) => {}
                }
            }
            return;
        }
        let tracks: Vec<TrackSpec> = wanted.filter_map(track).collect();
        if tracks.is_empty() {
            return;
        }
        let spec = JointSpec {
            dir: of.dir.map(str::to_owned),
            name: of.name(settings),
            format,
            of: Some(means.participant(of)),
            tracks,
        };
        self.recording = match &self.origin {
            Origin::Client(handle) => {
                handle.record_jointly(spec, told(of.event(), settings.told_why))
            }
            Origin::Remote(_) | Origin::Dummy => {
                let started = means.recorder.joint(means.media, spec);
                started.inspect_err(|error| of.failed(error)).ok()
            }
        };
    }
}

/// Makes what somebody is told of a recording.
fn told(event: Object, told_why: bool) -> impl Fn(RecordingNews<'_>) -> Value + Send + Sync {
    move |news| {
        let reason = match news {
            RecordingNews::Failed(_) if !told_why => Some("the server cannot record this"),
            RecordingNews::Failed(_) | RecordingNews::Done(_) => None,
        };
        let event = event.clone().with_all(news.event());
        event.with_some("reason", reason).into()
    }
}

impl Stream {
    /// What is in a recording of it.
    fn content(&self) -> Option<RecordedMedia> {
        let description = self.description.clone();
        let mid = Some(self.mid.as_str().to_owned());
        if self.kind == Kind::Data {
            let data = RecordedMedia::data(true).with_mid(mid);
            return Some(data.with_description(description));
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
        let content = RecordedMedia::codec(codec).with_fmtp(fmtp).with_mid(mid);
        Some(content.with_description(description))
    }
}
