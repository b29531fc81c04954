//! Tracks: m-lines of publishers with the ids and the descriptions of LiveKit.

use livekit_protocol::{
    AddTrackRequest, AudioTrackFeature, SimulcastCodecInfo, TrackInfo, TrackSource, TrackType,
    encryption,
};
use portunus_room::Stream;
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind};

use crate::ids::IdKind;

/// A track of a participant.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    /// Its id.
    pub(crate) sid: String,
    /// The m-line of its publisher. `None` before it was offered.
    pub(crate) mid: Option<Mid>,
    /// The publisher's description of it.
    pub(crate) request: AddTrackRequest,
    /// Whether a first subscriber was reported to the publisher.
    pub(crate) subscribed: bool,
}

impl Track {
    pub(crate) fn new(request: AddTrackRequest) -> Self {
        Track {
            sid: IdKind::Track.random(),
            mid: None,
            request,
            subscribed: false,
        }
    }

    /// Returns a track of a publisher of another door, which describes it no further.
    /// `nth` counts the streams of its kind.
    pub(crate) fn foreign(stream: &Stream, nth: usize) -> Self {
        let (kind, source) = match (stream.kind, nth) {
            (Kind::Audio, 0) => (TrackType::Audio, TrackSource::Microphone),
            (Kind::Audio, _) => (TrackType::Audio, TrackSource::ScreenShareAudio),
            (_, 0) => (TrackType::Video, TrackSource::Camera),
            (_, _) => (TrackType::Video, TrackSource::ScreenShare),
        };
        let request = AddTrackRequest {
            r#type: kind.into(),
            source: source.into(),
            name: stream.description.clone().unwrap_or_default(),
            ..AddTrackRequest::default()
        };
        Track {
            mid: Some(stream.mid),
            ..Track::new(request)
        }
    }

    /// Returns the kind of media.
    pub(crate) fn kind(&self) -> Kind {
        match self.request.r#type() {
            TrackType::Audio => Kind::Audio,
            TrackType::Video => Kind::Video,
            TrackType::Data => Kind::Data,
        }
    }

    /// Returns whether it is encrypted end to end.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.request.encryption() != encryption::Type::None
    }

    /// Returns whether silence may be sent discontinuously.
    pub(crate) fn has_dtx(&self) -> bool {
        let no_dtx = i32::from(AudioTrackFeature::TfNoDtx);
        !self.request.disable_dtx && !self.request.audio_features.contains(&no_dtx)
    }

    /// Returns the name of the stream that its receivers play in sync.
    fn stream(&self) -> &str {
        if !self.request.stream.is_empty() {
            return &self.request.stream;
        }
        match self.request.source() {
            TrackSource::Camera | TrackSource::Microphone => "camera",
            TrackSource::ScreenShare | TrackSource::ScreenShareAudio => "screen",
            TrackSource::Unknown => "unknown",
        }
    }

    /// Returns its description, with the state of its `stream` if it is negotiated.
    pub(crate) fn info(&self, stream: Option<&Stream>) -> TrackInfo {
        let request = &self.request;
        let codec = stream.and_then(|stream| stream.format.codec);
        let mime_type = match (codec, request.simulcast_codecs.first()) {
            (Some(codec), _) => mime_type(codec),
            (None, Some(codec)) if !codec.codec.is_empty() => named(self.kind(), &codec.codec),
            (None, Some(_) | None) => String::new(),
        };
        let mid = self.mid.map(|mid| mid.as_str().to_owned());
        let layers = match request.simulcast_codecs.first() {
            Some(codec) if !codec.layers.is_empty() => codec.layers.clone(),
            Some(_) | None => request.layers.clone(),
        };
        let has_layers = layers.len() > 1;
        let simulcast = stream.map_or(has_layers, |stream| stream.format.simulcast);
        let mut audio_features = request.audio_features.clone();
        let stereo = i32::from(AudioTrackFeature::TfStereo);
        if request.stereo && !audio_features.contains(&stereo) {
            audio_features.push(stereo);
        }
        TrackInfo {
            sid: self.sid.clone(),
            r#type: request.r#type,
            name: request.name.clone(),
            muted: stream.map_or(request.muted, |stream| !stream.is_open()),
            width: request.width,
            height: request.height,
            simulcast: simulcast && self.kind() == Kind::Video,
            disable_dtx: request.disable_dtx,
            source: request.source,
            codecs: vec![SimulcastCodecInfo {
                mime_type: mime_type.clone(),
                mid: mid.clone().unwrap_or_default(),
                cid: request.cid.clone(),
                layers: layers.clone(),
                video_layer_mode: request
                    .simulcast_codecs
                    .first()
                    .map_or(0, |codec| codec.video_layer_mode),
                ..SimulcastCodecInfo::default()
            }],
            layers,
            mime_type,
            mid: mid.unwrap_or_default(),
            stereo: request.stereo,
            disable_red: request.disable_red,
            encryption: request.encryption,
            stream: self.stream().to_owned(),
            audio_features,
            backup_codec_policy: request.backup_codec_policy,
            packet_trailer_features: request.packet_trailer_features.clone(),
            ..TrackInfo::default()
        }
    }
}

/// Returns the codec of what clients call one: some SDKs give a media type.
pub(crate) fn codec_of(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, codec)| codec)
}

/// Returns the media type of a codec.
pub(crate) fn mime_type(codec: CodecName) -> String {
    named(codec.kind(), codec.encoding())
}

fn named(kind: Kind, codec: &str) -> String {
    let codec = codec_of(codec);
    match kind {
        Kind::Audio => format!("audio/{codec}"),
        Kind::Video | Kind::Data => format!("video/{}", codec.to_ascii_uppercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_name_codecs_with_and_without_a_kind() {
        for (kind, name, expected) in [
            (Kind::Video, "vp8", "video/VP8"),
            (Kind::Video, "video/VP8", "video/VP8"),
            (Kind::Audio, "audio/opus", "audio/opus"),
            (Kind::Audio, "opus", "audio/opus"),
        ] {
            assert_eq!(named(kind, name), expected);
        }
    }
}
