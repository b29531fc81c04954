//! Tracks: m-lines of publishers with the ids and the descriptions of LiveKit.

use livekit_protocol::{
    AddTrackRequest, AudioTrackFeature, BackupCodecPolicy, SimulcastCodec, SimulcastCodecInfo,
    TrackInfo, TrackSource, TrackType, encryption, video_layer,
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
    /// Its second codec, if the publisher can send one.
    pub(crate) backup: Option<Backup>,
    /// Whether a first subscriber was reported to the publisher.
    pub(crate) subscribed: bool,
}

/// A second codec of a track, for those who do not accept the first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backup {
    /// The codec. It has a `cid` once the publisher sends it.
    pub(crate) codec: SimulcastCodec,
    /// The m-line of its publisher. `None` before it was offered.
    pub(crate) mid: Option<Mid>,
    /// Whether somebody does not accept the first codec.
    pub(crate) is_needed: bool,
}

impl Track {
    pub(crate) fn new(request: AddTrackRequest) -> Self {
        let second = request.simulcast_codecs.get(1);
        let named = second.filter(|codec| !codec.codec.is_empty());
        let backup = named.map(|codec| Backup {
            codec: codec.clone(),
            ..Backup::default()
        });
        Track {
            sid: IdKind::Track.random(),
            mid: None,
            request,
            backup,
            subscribed: false,
        }
    }

    /// Returns its m-lines.
    pub(crate) fn mids(&self) -> impl Iterator<Item = Mid> {
        self.mid
            .into_iter()
            .chain(self.backup.as_ref().and_then(|it| it.mid))
    }

    /// Returns the codec that its publisher has announced for an m-line.
    pub(crate) fn codec_of(&self, mid: Mid) -> Option<&SimulcastCodec> {
        let backup = self.backup.as_ref().filter(|it| it.mid == Some(mid));
        match backup {
            Some(backup) => Some(&backup.codec),
            None => self.request.simulcast_codecs.first(),
        }
    }

    /// Takes the second codec, which its publisher is about to offer.
    pub(crate) fn add_codec(&mut self, request: &AddTrackRequest) {
        let codec = request.simulcast_codecs.first().cloned();
        let mut codec = codec.unwrap_or_default();
        if codec.cid.is_empty() {
            codec.cid.clone_from(&request.cid);
        }
        if codec.layers.is_empty() {
            codec.layers.clone_from(&request.layers);
        }
        let backup = self.backup.get_or_insert_default();
        if backup.codec.cid != codec.cid {
            backup.mid = None;
        }
        if codec.codec.is_empty() {
            codec.codec.clone_from(&backup.codec.codec);
        }
        backup.codec = codec;
    }

    /// Returns whether all get the second codec as soon as somebody needs it.
    pub(crate) fn regresses(&self) -> bool {
        self.request.backup_codec_policy() != BackupCodecPolicy::Simulcast
    }

    /// Returns whether its sound is stereo.
    pub(crate) fn is_stereo(&self) -> bool {
        let stereo = i32::from(AudioTrackFeature::TfStereo);
        self.request.stereo || self.request.audio_features.contains(&stereo)
    }

    /// Returns a track of a publisher of another door, which describes it no further.
    /// `nth` counts the streams of its kind. The id follows from that of the publisher's session.
    pub(crate) fn foreign(stream: &Stream, nth: usize, publisher: &str) -> Self {
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
            sid: IdKind::Track.derived((publisher, stream.mid.as_str())),
            mid: Some(stream.mid),
            ..Track::new(request)
        }
    }

    /// Returns a track of a publisher at another node, which this door describes there.
    pub(crate) fn elsewhere(info: &TrackInfo) -> Self {
        let codecs = info.codecs.iter().map(|codec| SimulcastCodec {
            codec: codec_of(&codec.mime_type).to_ascii_lowercase(),
            cid: codec.cid.clone(),
            layers: codec.layers.clone(),
            video_layer_mode: codec.video_layer_mode,
        });
        let request = AddTrackRequest {
            r#type: info.r#type,
            source: info.source,
            name: info.name.clone(),
            muted: info.muted,
            width: info.width,
            height: info.height,
            disable_dtx: info.disable_dtx,
            layers: info.layers.clone(),
            simulcast_codecs: codecs.collect(),
            stereo: info.stereo,
            disable_red: info.disable_red,
            encryption: info.encryption,
            stream: info.stream.clone(),
            backup_codec_policy: info.backup_codec_policy,
            audio_features: info.audio_features.clone(),
            packet_trailer_features: info.packet_trailer_features.clone(),
            ..AddTrackRequest::default()
        };
        let mut track = Track::new(request);
        track.sid.clone_from(&info.sid);
        track.mid = Mid::new(&info.mid);
        if let (Some(backup), Some(codec)) = (&mut track.backup, info.codecs.get(1)) {
            backup.mid = Mid::new(&codec.mid);
        }
        track
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
    pub(crate) fn stream(&self) -> &str {
        if !self.request.stream.is_empty() {
            return &self.request.stream;
        }
        match self.request.source() {
            TrackSource::Camera | TrackSource::Microphone => "camera",
            TrackSource::ScreenShare | TrackSource::ScreenShareAudio => "screen",
            TrackSource::Unknown => "unknown",
        }
    }

    /// Returns how its layers are sent: as its client has said, or as its codec is sent usually.
    fn layer_mode(&self, codec: Option<CodecName>) -> video_layer::Mode {
        let told = self.request.simulcast_codecs.first();
        match told.map(|codec| codec.video_layer_mode()) {
            Some(mode) if mode != video_layer::Mode::Unused => mode,
            _ if matches!(codec, Some(CodecName::Vp9 | CodecName::Av1)) => {
                video_layer::Mode::MultipleSpatialLayersPerStream
            }
            _ => video_layer::Mode::OneSpatialLayerPerStream,
        }
    }

    /// Returns when its client sends backup codecs. Sound has none, which is written so.
    fn backup_codec_policy(&self) -> BackupCodecPolicy {
        match self.kind() {
            Kind::Audio => BackupCodecPolicy::Simulcast,
            Kind::Video | Kind::Data => self.request.backup_codec_policy(),
        }
    }

    /// Returns its description, with the state of its `stream` if it is negotiated.
    pub(crate) fn info(&self, stream: Option<&Stream>) -> TrackInfo {
        let request = &self.request;
        let codec = stream.and_then(|stream| stream.format.codec);
        let is_redundant = stream.is_some_and(|stream| stream.format.red);
        let mime_type = match (codec, request.simulcast_codecs.first()) {
            (Some(_), _) if is_redundant => "audio/red".to_owned(),
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
        for (is_set, feature) in [
            (request.stereo, AudioTrackFeature::TfStereo),
            (request.disable_dtx, AudioTrackFeature::TfNoDtx),
        ] {
            if is_set && !audio_features.contains(&feature.into()) {
                audio_features.push(feature.into());
            }
        }
        let backup = self.backup.as_ref().map(|backup| SimulcastCodecInfo {
            mime_type: named(self.kind(), &backup.codec.codec),
            mid: backup
                .mid
                .map_or_else(String::new, |mid| mid.as_str().to_owned()),
            cid: backup.codec.cid.clone(),
            layers: backup.codec.layers.clone(),
            video_layer_mode: backup.codec.video_layer_mode,
            ..SimulcastCodecInfo::default()
        });
        let primary = SimulcastCodecInfo {
            mime_type: mime_type.clone(),
            mid: mid.clone().unwrap_or_default(),
            cid: request.cid.clone(),
            layers: layers.clone(),
            video_layer_mode: self.layer_mode(codec).into(),
            ..SimulcastCodecInfo::default()
        };
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
            codecs: std::iter::once(primary).chain(backup).collect(),
            layers,
            mime_type,
            mid: mid.unwrap_or_default(),
            stereo: self.is_stereo(),
            disable_red: request.disable_red,
            encryption: request.encryption,
            stream: self.stream().to_owned(),
            audio_features,
            backup_codec_policy: self.backup_codec_policy().into(),
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
