//! Requests for egresses, checked.

use livekit_protocol as lk;
use livekit_protocol::egress_info::Request;

use super::encoding::Encoding;
use super::file_name::FileWish;
use super::source::Source;
use super::stream_url::StreamUrl;
use crate::services::{Answer, Code, ServiceError};

/// The most URLs of an egress.
pub(super) const MAX_STREAMS: usize = 16;

/// What an egress does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) room: String,
    pub(super) source: Source,
    pub(super) file: Option<FileWish>,
    pub(super) streams: Vec<StreamUrl>,
    pub(super) encoding: Encoding,
}

/// The outputs of a request.
#[derive(Debug, Default)]
struct Outputs<'a> {
    files: Vec<&'a lk::EncodedFileOutput>,
    streams: Vec<&'a lk::StreamOutput>,
    has_segments: bool,
    has_images: bool,
}

/// Checks a request.
pub(crate) fn plan(request: &Request) -> Answer<Plan> {
    match request {
        Request::RoomComposite(request) => of_room(request),
        Request::Participant(request) => of_participant(request),
        Request::TrackComposite(request) => of_tracks(request),
        Request::Track(request) => of_track(request),
        Request::Web(_) => Err(missing("egress of web pages")),
        Request::Egress(_) => Err(missing("StartEgress")),
        Request::Replay(_) => Err(missing("replay")),
    }
}

fn of_room(request: &lk::RoomCompositeEgressRequest) -> Answer<Plan> {
    use lk::room_composite_egress_request::{Options, Output};
    if !request.custom_base_url.is_empty() {
        return Err(missing("a template of your own"));
    }
    if request.audio_only && request.video_only {
        return Err(wrong("audio_only and video_only exclude each other"));
    }
    let mut outputs = Outputs {
        files: request.file_outputs.iter().collect(),
        streams: request.stream_outputs.iter().collect(),
        has_segments: !request.segment_outputs.is_empty(),
        has_images: !request.image_outputs.is_empty(),
    };
    // SDKs name an output here and in the list, for older servers.
    match &request.output {
        Some(Output::File(file)) if outputs.files.is_empty() => outputs.files.push(file),
        Some(Output::Stream(stream)) if outputs.streams.is_empty() => outputs.streams.push(stream),
        Some(Output::Segments(_)) => outputs.has_segments = true,
        Some(Output::File(_) | Output::Stream(_)) | None => {}
    }
    let encoding = match &request.options {
        Some(Options::Preset(preset)) => of_preset(*preset)?,
        Some(Options::Advanced(options)) => Encoding::of_options(options)?,
        None => Encoding::default(),
    };
    if !outputs.streams.is_empty() {
        return Err(missing("a stream of a whole room"));
    }
    let source = Source::Room {
        audio_only: request.audio_only,
        video_only: request.video_only,
        layout: request.layout.clone(),
    };
    let plan = outputs.plan(&request.room_name, source, encoding)?;
    let file = plan.file.as_ref();
    if file.is_some_and(|it| it.container.composed(request.audio_only).is_none()) {
        return Err(missing("MP3 of a whole room"));
    }
    Ok(plan)
}

fn of_participant(request: &lk::ParticipantEgressRequest) -> Answer<Plan> {
    use lk::participant_egress_request::Options;
    if request.identity.is_empty() {
        return Err(wrong("identity is required"));
    }
    let outputs = Outputs {
        files: request.file_outputs.iter().collect(),
        streams: request.stream_outputs.iter().collect(),
        has_segments: !request.segment_outputs.is_empty(),
        has_images: !request.image_outputs.is_empty(),
    };
    let encoding = match &request.options {
        Some(Options::Preset(preset)) => of_preset(*preset)?,
        Some(Options::Advanced(options)) => Encoding::of_options(options)?,
        None => Encoding::default(),
    };
    let source = Source::Participant {
        identity: request.identity.clone(),
        screen_share: request.screen_share,
    };
    outputs.plan(&request.room_name, source, encoding)
}

fn of_tracks(request: &lk::TrackCompositeEgressRequest) -> Answer<Plan> {
    use lk::track_composite_egress_request::{Options, Output};
    if request.audio_track_id.is_empty() && request.video_track_id.is_empty() {
        return Err(wrong("audio_track_id or video_track_id is required"));
    }
    let mut outputs = Outputs {
        files: request.file_outputs.iter().collect(),
        streams: request.stream_outputs.iter().collect(),
        has_segments: !request.segment_outputs.is_empty(),
        has_images: !request.image_outputs.is_empty(),
    };
    // SDKs name an output here and in the list, for older servers.
    match &request.output {
        Some(Output::File(file)) if outputs.files.is_empty() => outputs.files.push(file),
        Some(Output::Stream(stream)) if outputs.streams.is_empty() => outputs.streams.push(stream),
        Some(Output::Segments(_)) => outputs.has_segments = true,
        Some(Output::File(_) | Output::Stream(_)) | None => {}
    }
    let encoding = match &request.options {
        Some(Options::Preset(preset)) => of_preset(*preset)?,
        Some(Options::Advanced(options)) => Encoding::of_options(options)?,
        None => Encoding::default(),
    };
    let ids = [&request.audio_track_id, &request.video_track_id];
    let ids = ids.into_iter().filter(|id| !id.is_empty()).cloned();
    outputs.plan(&request.room_name, Source::Tracks(ids.collect()), encoding)
}

fn of_track(request: &lk::TrackEgressRequest) -> Answer<Plan> {
    use lk::track_egress_request::Output;
    if request.track_id.is_empty() {
        return Err(wrong("track_id is required"));
    }
    let file = match &request.output {
        Some(Output::File(file)) if file.output.is_some() => return Err(missing("uploads")),
        Some(Output::File(file)) => file.filepath.as_str(),
        Some(Output::WebsocketUrl(_)) => return Err(missing("a stream by WebSocket")),
        None => return Err(wrong("an output is required")),
    };
    let source = Source::Tracks(vec![request.track_id.clone()]);
    let file_type = lk::EncodedFileType::DefaultFiletype;
    Ok(Plan {
        room: request.room_name.clone(),
        file: Some(FileWish::new(file, file_type, source.default_name())),
        source,
        streams: Vec::new(),
        encoding: Encoding::default(),
    })
}

impl Outputs<'_> {
    fn plan(self, room: &str, source: Source, encoding: Encoding) -> Answer<Plan> {
        if self.has_segments {
            return Err(missing("segments (HLS)"));
        }
        if self.has_images {
            return Err(missing("images"));
        }
        let file = match self.files.as_slice() {
            [] => None,
            [file] if file.output.is_some() => return Err(missing("uploads")),
            [file] => Some(FileWish::new(
                &file.filepath,
                file.file_type(),
                source.default_name(),
            )),
            [..] => return Err(wrong("there is one file output at most")),
        };
        let mut streams = Vec::new();
        for output in &self.streams {
            let protocol = output.protocol();
            for url in &output.urls {
                streams.push(StreamUrl::new(url, protocol)?);
            }
        }
        if file.is_none() && streams.is_empty() {
            return Err(wrong("an output is required"));
        }
        if streams.len() > MAX_STREAMS {
            return Err(wrong("there are 16 URLs at most"));
        }
        Ok(Plan {
            room: room.to_owned(),
            source,
            file,
            streams,
            encoding,
        })
    }
}

fn of_preset(preset: i32) -> Answer<Encoding> {
    let preset = lk::EncodingOptionsPreset::try_from(preset);
    let preset = preset.map_err(|_| wrong("there is no such preset"))?;
    Ok(Encoding::of_preset(preset))
}

fn missing(what: &str) -> ServiceError {
    ServiceError::unimplemented(format!("{what}: not implemented"))
}

fn wrong(text: &'static str) -> ServiceError {
    ServiceError::new(Code::InvalidArgument, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> lk::EncodedFileOutput {
        lk::EncodedFileOutput {
            filepath: path.to_owned(),
            ..Default::default()
        }
    }

    fn code(request: Request) -> Result<(), Code> {
        plan(&request).map(drop).map_err(|error| error.code())
    }

    #[test]
    fn an_egress_needs_an_output_that_there_is() {
        let tracks = lk::TrackCompositeEgressRequest {
            audio_track_id: "TR_1".to_owned(),
            ..Default::default()
        };
        let with = |change: &dyn Fn(&mut lk::TrackCompositeEgressRequest)| {
            let mut request = tracks.clone();
            change(&mut request);
            code(Request::TrackComposite(request))
        };
        assert_eq!(with(&|_| {}), Err(Code::InvalidArgument));
        assert_eq!(with(&|it| it.file_outputs = vec![file("a")]), Ok(()));
        let two = vec![file("a"), file("b")];
        assert_eq!(
            with(&|it| it.file_outputs.clone_from(&two)),
            Err(Code::InvalidArgument)
        );
        let uploaded = lk::EncodedFileOutput {
            output: Some(lk::encoded_file_output::Output::S3(lk::S3Upload::default())),
            ..file("a")
        };
        assert_eq!(
            with(&|it| it.file_outputs = vec![uploaded.clone()]),
            Err(Code::Unimplemented)
        );
        assert_eq!(
            with(&|it| it.segment_outputs = vec![Default::default()]),
            Err(Code::Unimplemented)
        );
        let stream = |url: &str| lk::StreamOutput {
            urls: vec![url.to_owned()],
            ..Default::default()
        };
        assert_eq!(
            with(&|it| it.stream_outputs = vec![stream("rtmp://h/a/k")]),
            Ok(())
        );
        assert_eq!(
            with(&|it| it.stream_outputs = vec![stream("file:///etc/passwd")]),
            Err(Code::InvalidArgument)
        );
    }

    #[test]
    fn what_is_not_there_is_unimplemented() {
        let web = Request::Web(lk::WebEgressRequest::default());
        assert_eq!(code(web), Err(Code::Unimplemented));
        let track = Request::Track(lk::TrackEgressRequest {
            track_id: "TR_1".to_owned(),
            output: Some(lk::track_egress_request::Output::WebsocketUrl(
                "wss://h".to_owned(),
            )),
            ..Default::default()
        });
        assert_eq!(code(track), Err(Code::Unimplemented));
        let room = Request::RoomComposite(lk::RoomCompositeEgressRequest {
            stream_outputs: vec![lk::StreamOutput {
                urls: vec!["rtmp://h/a/k".to_owned()],
                ..Default::default()
            }],
            ..Default::default()
        });
        assert_eq!(code(room), Err(Code::Unimplemented));
    }
}
