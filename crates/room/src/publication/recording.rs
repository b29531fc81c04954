//! Recordings of publishers.

use portunus_media::MediaPlane;
use portunus_record::{
    Format, JointSpec, Participant, RecordError, RecordedMedia, Recorder, RecordingSpec,
    SessionSpec, TrackSpec, WeakSession, file_safe, stamped,
};
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind};

use super::{Origin, Publication, Publications, Stream};
use crate::roster::RecordSettings;
use crate::{PersonId, RecordedClient, Refusal};

/// The parts of the names of recorded files and their manifests that the door chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileNames {
    /// The owner of recordings in the manifest.
    pub owner: &'static str,
    /// The prefix of file names.
    pub prefix: &'static str,
}

impl Publications {
    /// Checks that recordings of this name could be made.
    pub(crate) fn check_recording(
        &self,
        dir: Option<&str>,
        name: Option<&str>,
    ) -> Result<(), Refusal> {
        let checked = self.recorder.check(dir, name.unwrap_or(self.names.prefix));
        checked.map_err(|error| Refusal::Recording(error.to_string()))
    }

    /// Starts, ends and gates the recordings of a participant. Restarts failed ones only if `anew`.
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
            names: self.names,
        };
        let format = settings.format.or(of.format);
        let format = format.unwrap_or_else(|| self.recorder.format());
        let is_each = publication.streams.iter().any(|it| it.recording.is_some());
        let is_joint = publication.recording.is_some() || format != Format::Mjr && !is_each;
        match is_joint {
            true => publication.record_jointly(means, of, settings, format, anew),
            false => publication.record_each(means, of, settings, anew),
        }
    }
}

/// The participant to record, and its room.
pub(crate) struct Recorded<'a> {
    pub(crate) room: &'a str,
    pub(crate) id: &'a PersonId,
    pub(crate) display: Option<&'a str>,
    /// The room's name for people.
    pub(crate) description: &'a str,
    /// The folder.
    pub(crate) dir: Option<&'a str>,
    pub(crate) format: Option<Format>,
}

/// The parts that a recording needs.
struct Means<'a> {
    media: &'a MediaPlane,
    recorder: &'a Recorder,
    recorded: &'a mut WeakSession,
    names: FileNames,
}

impl Means<'_> {
    /// Returns the participant's entry in the room's manifest. The manifest lasts from the first
    /// recording to the last.
    fn participant(&mut self, of: &Recorded<'_>) -> Participant {
        let session = self.recorded.upgrade().unwrap_or_else(|| {
            let (room, prefix) = (of.room.to_owned(), self.names.prefix);
            self.recorder.session(SessionSpec {
                plugin: self.names.owner,
                dir: of.dir.map(str::to_owned),
                name: stamped(&format!("{prefix}-{}", file_safe(&room))),
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
    /// Returns the prefix of file names.
    fn name(&self, names: FileNames, settings: &RecordSettings) -> String {
        let name = || {
            let (room, id) = (file_safe(self.room), file_safe(self.id.as_str()));
            stamped(&format!("{}-{room}-user-{id}", names.prefix))
        };
        settings.name.clone().unwrap_or_else(name)
    }

    /// Returns the parts of the messages about a recording of `stream`, or of all streams.
    fn client(&self, settings: &RecordSettings, stream: Option<(Mid, Kind)>) -> RecordedClient<'_> {
        RecordedClient {
            room: self.room,
            stream,
            told_why: settings.told_why,
        }
    }

    /// Logs a failure that no client hears of.
    fn failed(&self, error: &RecordError) {
        let (room, id) = (self.room, self.id);
        tracing::warn!(%room, %id, "not recorded: {error}");
    }
}

impl Publication {
    /// Returns whether some of it is being recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        let jointly = self.recording.as_ref().is_some_and(|it| !it.is_over());
        let mut each = self.streams.iter().filter_map(|it| it.recording.as_ref());
        jointly || each.any(|it| !it.is_over())
    }

    /// Records each stream into its own file.
    fn record_each(
        &mut self,
        mut means: Means<'_>,
        of: &Recorded<'_>,
        settings: &RecordSettings,
        anew: bool,
    ) {
        let name = of.name(means.names, settings);
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
                name: format!("{name}-{}-{}", stream.kind.name(), stream.index),
                media: content.with_encryption(self.e2ee),
                format: Format::Mjr,
                of: Some(means.participant(of)),
            };
            stream.recording = match &self.origin {
                Origin::Client(connection) => {
                    let client = of.client(settings, Some((stream.mid, stream.kind)));
                    connection.record(stream.mid, open, spec, client)
                }
                origin => origin.source(stream.mid).and_then(|source| {
                    let started = means.recorder.start(means.media, source, open, spec);
                    started.inspect_err(|error| of.failed(error)).ok()
                }),
            };
        }
    }

    /// Records all streams in one file, as many as fit.
    fn record_jointly(
        &mut self,
        mut means: Means<'_>,
        of: &Recorded<'_>,
        settings: &RecordSettings,
        format: Format,
        anew: bool,
    ) {
        self.recording = self.recording.take().filter(|it| !(anew && it.is_over()));
        let e2ee = self.e2ee;
        let origin = &self.origin;
        let track = |stream: &Stream| track(stream, origin, e2ee);
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
            name: of.name(means.names, settings),
            format,
            of: Some(means.participant(of)),
            tracks,
        };
        self.recording = match &self.origin {
            Origin::Client(connection) => {
                connection.record_jointly(spec, of.client(settings, None))
            }
            Origin::Remote(_) | Origin::Relayed(_) | Origin::Dummy => {
                let started = means.recorder.joint(means.media, spec);
                started.inspect_err(|error| of.failed(error)).ok()
            }
        };
    }
}

impl Publication {
    /// Returns a stream as a track to record or to forward. `None` if it is data, is disabled or has
    /// no media.
    pub fn track(&self, stream: &Stream) -> Option<TrackSpec> {
        let is_media = stream.kind != Kind::Data && !stream.disabled;
        track(stream, &self.origin, self.e2ee).filter(|_| is_media)
    }
}

fn track(stream: &Stream, origin: &Origin, e2ee: bool) -> Option<TrackSpec> {
    Some(TrackSpec {
        key: stream.mid.as_str().to_owned(),
        media: stream.content()?.with_encryption(e2ee),
        from: origin.source(stream.mid)?,
        open: stream.is_open(),
    })
}

impl Stream {
    /// Returns the description of the stream for its recording.
    fn content(&self) -> Option<RecordedMedia> {
        let description = self.description.clone();
        let mid = Some(self.mid.as_str().to_owned());
        if self.kind == Kind::Data {
            let data = RecordedMedia::data(true).with_mid(mid);
            return Some(data.with_description(description));
        }
        let format = &self.format;
        let codec = format.codec?;
        let parameter = |name: &str, value: &Option<String>| {
            let value = value.as_ref()?;
            Some(format!("{name}={value}"))
        };
        let fmtp = match codec {
            CodecName::H264 => parameter("profile-level-id", &format.h264_profile),
            CodecName::Vp9 => parameter("profile-id", &format.vp9_profile),
            CodecName::Opus => format.opus.fmtp(),
            _ => format.fmtp.clone(),
        };
        let content = RecordedMedia::codec(codec).with_fmtp(fmtp).with_mid(mid);
        let content = content.with_red(format.red);
        Some(content.with_description(description))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    #[test]
    fn redundant_audio_of_a_publisher_belongs_into_its_recording() {
        let mut stream = Stream::new(Kind::Audio, Mid::new("0").unwrap(), 0);
        stream.format.codec = Some(CodecName::Opus);
        let plain = stream.content().unwrap();
        stream.format.red = true;
        assert_eq!(stream.content(), Some(plain.with_red(true)));
    }
}
