//! Recordings of a call: audio and video of the client and of the far end.

use portunus_core::media::SourceRef;
use portunus_core::record::{
    Format, JointRecording, JointSpec, Participant, RecordedMedia, Recording, RecordingSpec,
    TrackSpec,
};
use portunus_core::sdp::Kind;
use portunus_core::{Object, RecordingNews};
use serde::Deserialize;
use serde_json::Value;

use crate::side::first_codec;
use crate::{CallError, CallMedia};

/// The action of a recording request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum RecordingAction {
    Start,
    Stop,
    Pause,
    Resume,
}

impl RecordingAction {
    /// Returns the action with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let named = [
            ("start", Self::Start),
            ("stop", Self::Stop),
            ("pause", Self::Pause),
            ("resume", Self::Resume),
        ];
        let found = named
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, action)| action)
    }
}

/// The selection of the four streams of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Sides {
    /// Audio of the client.
    pub audio: bool,
    /// Video of the client.
    pub video: bool,
    /// Audio of the far end.
    pub peer_audio: bool,
    /// Video of the far end.
    pub peer_video: bool,
}

/// The selection of the senders of keyframes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct KeyframeRequest {
    /// The client.
    pub user: bool,
    /// The far end.
    pub peer: bool,
}

impl Sides {
    /// Whether any stream is selected.
    pub const fn is_any(self) -> bool {
        self.audio || self.video || self.peer_audio || self.peer_video
    }

    fn all(self) -> impl Iterator<Item = Stream> {
        let streams = [
            (self.audio, Stream::new(Who::Client, Kind::Audio)),
            (self.video, Stream::new(Who::Client, Kind::Video)),
            (self.peer_audio, Stream::new(Who::Far, Kind::Audio)),
            (self.peer_video, Stream::new(Who::Far, Kind::Video)),
        ];
        streams
            .into_iter()
            .filter(|(is_wanted, _)| *is_wanted)
            .map(|(_, stream)| stream)
    }
}

/// A request about recordings.
#[derive(Debug, Clone)]
pub struct RecordingRequest {
    /// The action.
    pub action: RecordingAction,
    /// The streams.
    pub sides: Sides,
    /// The start of the files' names, if the client gives one.
    pub filename: Option<String>,
    /// The start of the files' names otherwise.
    pub default_name: String,
    /// The format of the files. `None` for the configured one.
    pub format: Option<Format>,
    /// Makes the event for the client.
    pub tell: fn(Object) -> Value,
}

/// The sender of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Client,
    Far,
}

/// A stream of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) who: Who,
    pub(crate) kind: Kind,
}

impl Stream {
    pub(crate) const fn new(who: Who, kind: Kind) -> Self {
        Stream { who, kind }
    }

    const fn medium(self) -> &'static str {
        match self.kind {
            Kind::Video => "video",
            Kind::Audio | Kind::Data => "audio",
        }
    }

    /// Returns the name for administrators.
    const fn name(self) -> &'static str {
        match (self.who, self.kind) {
            (Who::Client, Kind::Video) => "video",
            (Who::Client, _) => "audio",
            (Who::Far, Kind::Video) => "video-peer",
            (Who::Far, _) => "audio-peer",
        }
    }
}

/// The recordings of a call.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    /// Recordings with a file for each stream.
    each: Vec<(Stream, Recording)>,
    /// Recordings with a file for each side.
    joint: Vec<(Who, JointRecording)>,
    /// The participants in manifests.
    of: Option<Participant>,
}

impl Recordings {
    /// Returns the files of running recordings, by stream.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let each = self.each.iter().filter(|(_, it)| !it.is_over());
        let members = each.fold(Object::new(), |members, (stream, recording)| {
            members.with(stream.name(), recording.file_name())
        });
        let joint = self.joint.iter().filter(|(_, it)| !it.is_over());
        let mut is_any = self.each.iter().any(|(_, it)| !it.is_over());
        let members = joint.fold(members, |members, (who, recording)| {
            is_any = true;
            let name = match who {
                Who::Client => "files",
                Who::Far => "files-peer",
            };
            members.with(name, recording.file_names())
        });
        is_any.then(|| members.into())
    }

    fn sweep(&mut self) {
        self.each.retain(|(_, it)| !it.is_over());
        self.joint.retain(|(_, it)| !it.is_over());
    }
}

impl CallMedia {
    /// Starts, stops, pauses or resumes recordings. Absent streams, and running recordings, are
    /// skipped.
    pub fn record(&mut self, request: &RecordingRequest) -> Result<(), CallError> {
        self.recordings.sweep();
        let streams: Vec<Stream> = request.sides.all().collect();
        match request.action {
            RecordingAction::Start => self.start_recordings(&streams, request),
            RecordingAction::Stop => {
                self.stop_recordings(&streams);
                Ok(())
            }
            RecordingAction::Pause => {
                self.set_recordings_open(&streams, false);
                Ok(())
            }
            RecordingAction::Resume => {
                self.set_recordings_open(&streams, true);
                Ok(())
            }
        }
    }

    fn start_recordings(
        &mut self,
        streams: &[Stream],
        request: &RecordingRequest,
    ) -> Result<(), CallError> {
        let base = request.filename.as_deref();
        let name = base.unwrap_or(&request.default_name);
        self.handle.check_recording(None, name)?;
        let format = request.format.unwrap_or(self.handle.recording_format());
        let of = match &self.recordings.of {
            Some(of) => of.clone(),
            None => self.handle.recorded_alone(name),
        };
        self.recordings.of = Some(of.clone());
        for stream in streams {
            if self.is_recorded(*stream) {
                continue;
            }
            let Some((from, media)) = self.source(*stream).zip(self.recorded_media(*stream)) else {
                continue;
            };
            match format {
                Format::Mjr => {
                    let spec = RecordingSpec {
                        dir: None,
                        name: format!("{name}{}", suffix(*stream, base.is_some())),
                        media,
                        format,
                        of: Some(of.clone()),
                    };
                    let (tell, medium) = (request.tell, stream.medium());
                    let tell =
                        move |news: RecordingNews<'_>| tell(news.event().with("media", medium));
                    if let Some(started) = self.handle.record_source(from, true, spec, tell) {
                        self.recordings.each.push((*stream, started));
                    }
                }
                _ => {
                    let track = TrackSpec {
                        key: stream.medium().to_owned(),
                        media,
                        from,
                        open: true,
                    };
                    let spec = JointSpec {
                        dir: None,
                        name: format!("{name}-{}", side_name(stream.who, base.is_some())),
                        format,
                        of: Some(of.clone()),
                        tracks: vec![track],
                    };
                    self.join_recording(stream.who, spec, request.tell);
                }
            }
            if stream.kind == Kind::Video {
                let is_client = stream.who == Who::Client;
                self.request_keyframe(is_client, !is_client);
            }
        }
        Ok(())
    }

    /// Records a stream together with the other one of its side, if that is recorded, or else as
    /// `spec` says.
    fn join_recording(&mut self, who: Who, spec: JointSpec, tell: fn(Object) -> Value) {
        let running = self.recordings.joint.iter_mut();
        let mut running = running.filter(|(side, _)| *side == who);
        if let Some((_, recording)) = running.next() {
            for track in spec.tracks {
                recording.add(track);
            }
            return;
        }
        let tell = move |news: RecordingNews<'_>| tell(news.event());
        if let Some(started) = self.handle.record_jointly(spec, tell) {
            self.recordings.joint.push((who, started));
        }
    }

    fn is_recorded(&self, stream: Stream) -> bool {
        let each = self.recordings.each.iter().any(|(it, _)| *it == stream);
        let has = |(who, recording): &(Who, JointRecording)| {
            *who == stream.who && recording.keys().any(|key| key == stream.medium())
        };
        each || self.recordings.joint.iter().any(has)
    }

    fn stop_recordings(&mut self, streams: &[Stream]) {
        let recordings = &mut self.recordings;
        recordings.each.retain(|(it, _)| !streams.contains(it));
        for (who, recording) in &mut recordings.joint {
            for stream in streams.iter().filter(|stream| stream.who == *who) {
                recording.remove(stream.medium());
            }
        }
        let has_tracks = |recording: &JointRecording| recording.keys().next().is_some();
        recordings.joint.retain(|(_, it)| has_tracks(it));
    }

    fn set_recordings_open(&mut self, streams: &[Stream], open: bool) {
        for (_, recording) in self
            .recordings
            .each
            .iter_mut()
            .filter(|(it, _)| streams.contains(it))
        {
            recording.set_open(open);
        }
        for (who, recording) in &mut self.recordings.joint {
            for stream in streams.iter().filter(|stream| stream.who == *who) {
                recording.set_open(stream.medium(), open);
            }
        }
    }

    /// Ends the recordings of the client.
    pub(crate) fn end_recordings_of_client(&mut self) {
        let recordings = &mut self.recordings;
        recordings.each.retain(|(it, _)| it.who != Who::Client);
        recordings.joint.retain(|(who, _)| *who != Who::Client);
    }

    /// Returns the source of a stream, once there is one.
    pub(crate) fn source(&self, stream: Stream) -> Option<SourceRef> {
        let agreed = self.session.agreed_on(stream.kind)?;
        match stream.who {
            Who::Client => self.handle.track(agreed.mid).map(SourceRef::from),
            Who::Far => self.side(stream.kind).map(crate::side::Side::source),
        }
    }

    fn recorded_media(&self, stream: Stream) -> Option<RecordedMedia> {
        let agreed = self.session.agreed_on(stream.kind)?;
        let spec = match (stream.who, &agreed.transcoding) {
            (Who::Client, Some(transcoding)) => &transcoding.browser,
            (Who::Far, Some(transcoding)) => &transcoding.far.spec,
            (_, None) => &first_codec(agreed)?.spec,
        };
        let media = RecordedMedia::codec(spec.codec_name()?);
        let mid = Some(agreed.mid.as_str().to_owned());
        Some(media.with_fmtp(spec.fmtp.clone()).with_mid(mid))
    }
}

/// Returns the end of the name of a stream's file.
fn suffix(stream: Stream, is_named: bool) -> String {
    format!("-{}-{}", side_name(stream.who, is_named), stream.medium())
}

/// Returns the part of file names that says whose stream it is.
fn side_name(who: Who, is_named: bool) -> &'static str {
    match who {
        Who::Client if is_named => "user",
        Who::Client => "own",
        Who::Far => "peer",
    }
}
