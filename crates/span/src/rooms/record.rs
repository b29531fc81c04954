//! A participant of a video room as other nodes know it, as JSON.
//!
//! Later versions may add members, which earlier ones skip.

use std::sync::Arc;

use portunus_relay::Offer;
use portunus_room::{ExtensionIds, Profile, Stream, StreamFormat};
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind, OfferedFlags};
use serde::{Deserialize, Serialize};

/// The most m-lines of a publication.
const MAX_STREAMS: usize = portunus_room::MAX_STREAMS;

/// A participant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PersonRecord {
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display: Option<String>,
    /// Other data, as a text that only doors understand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<String>,
    /// The publication, once its media is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) publication: Option<PublicationRecord>,
    /// What its door tells the same door at other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The number of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<u64>,
    /// Whether it has begun to publish, and its media is not up yet.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) connecting: bool,
}

/// A publication whose media is up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PublicationRecord {
    /// Whether it is encrypted end to end.
    pub(crate) e2ee: bool,
    /// Its m-lines, by their index.
    pub(crate) streams: Vec<StreamRecord>,
}

/// An m-line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamRecord {
    /// `audio`, `video` or `data`.
    kind: String,
    /// Its identification.
    mid: String,
    /// Whether it was rejected, or is not sent any more.
    #[serde(default, skip_serializing_if = "is_false")]
    disabled: bool,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Whether its publisher does not send it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) paused: bool,
    /// Whether a moderator has muted it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) moderated: bool,
    /// Its format. `None` for data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<FormatRecord>,
    /// Its source. `None` while there is no media, and for data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) offer: Option<Offer>,
}

/// The format of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct FormatRecord {
    codec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<u8>,
    #[serde(skip_serializing_if = "is_false")]
    fec: bool,
    #[serde(skip_serializing_if = "is_false")]
    dtx: bool,
    #[serde(skip_serializing_if = "is_false")]
    stereo: bool,
    #[serde(skip_serializing_if = "is_false")]
    red: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fmtp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    h264_profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vp9_profile: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    simulcast: bool,
    #[serde(skip_serializing_if = "is_false")]
    svc: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_level: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    video_orientation: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    playout_delay: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependency_descriptor: Option<u8>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// It is not the expected JSON.
    #[error("the record of a participant is malformed: {0}")]
    Malformed(String),
    /// It has too many streams.
    #[error("the record of a participant has {0} streams")]
    Streams(usize),
}

impl PersonRecord {
    /// Reads a record.
    pub(crate) fn parse(value: &[u8]) -> Result<Self, RecordError> {
        let read: Result<Self, _> = serde_json::from_slice(value);
        let record = read.map_err(|error| RecordError::Malformed(error.to_string()))?;
        match record.streams().len() {
            count if count > MAX_STREAMS => Err(RecordError::Streams(count)),
            _ => Ok(record),
        }
    }

    /// Returns the value of the item.
    pub(crate) fn to_value(&self) -> Vec<u8> {
        // The type has no maps with other keys than texts, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the record without the part that may be too long.
    pub(crate) fn shorter(&self) -> Self {
        PersonRecord {
            metadata: None,
            ..self.clone()
        }
    }

    pub(crate) fn profile(&self) -> Profile {
        Profile {
            display: self.display.clone(),
            metadata: self.metadata.clone(),
        }
    }

    pub(crate) fn note(&self) -> Option<Arc<str>> {
        self.note.as_deref().map(Arc::from)
    }

    /// Returns its streams. They are empty without a publication.
    pub(crate) fn streams(&self) -> &[StreamRecord] {
        let publication = self.publication.as_ref();
        publication.map_or(&[], |publication| &publication.streams)
    }
}

impl StreamRecord {
    /// Returns the record of a stream of this node.
    pub(crate) fn new(stream: &Stream, offer: Option<Offer>) -> Self {
        let has_format = stream.kind != Kind::Data && !stream.disabled;
        StreamRecord {
            kind: stream.kind.name().to_owned(),
            mid: stream.mid.as_str().to_owned(),
            disabled: stream.disabled,
            description: stream.description.clone(),
            paused: !stream.is_sent(),
            moderated: stream.is_moderated(),
            format: has_format.then(|| FormatRecord::new(&stream.format)),
            offer,
        }
    }

    /// Returns its identification, or `None` if that is malformed.
    pub(crate) fn mid(&self) -> Option<Mid> {
        Mid::new(&self.mid)
    }

    /// Returns the stream at an index, or `None` if this node does not know its kind.
    pub(crate) fn stream(&self, index: usize) -> Option<Stream> {
        let kind = [Kind::Audio, Kind::Video, Kind::Data];
        let kind = kind.into_iter().find(|kind| kind.name() == self.kind)?;
        let mut stream = Stream::new(kind, self.mid()?, index);
        let format = self.format.as_ref().map(FormatRecord::format);
        let format = format.unwrap_or_default();
        // A codec that this node does not know cannot be received here.
        let is_known = kind == Kind::Data || format.codec.is_some();
        stream.disabled = self.disabled || !is_known;
        stream.description.clone_from(&self.description);
        stream.format = format;
        Some(stream)
    }
}

impl FormatRecord {
    fn new(format: &StreamFormat) -> Self {
        let ids = format.extensions;
        FormatRecord {
            codec: format.codec.map(|codec| codec.name().to_owned()),
            channels: format.channels,
            fec: format.opus.fec,
            dtx: format.opus.dtx,
            stereo: format.opus.stereo,
            red: format.red,
            fmtp: format.fmtp.clone(),
            h264_profile: format.h264_profile.clone(),
            vp9_profile: format.vp9_profile.clone(),
            simulcast: format.simulcast,
            svc: format.svc,
            audio_level: ids.audio_level,
            video_orientation: ids.video_orientation,
            playout_delay: ids.playout_delay,
            dependency_descriptor: ids.dependency_descriptor,
        }
    }

    fn format(&self) -> StreamFormat {
        StreamFormat {
            codec: self.codec.as_deref().and_then(CodecName::from_name),
            channels: self.channels,
            opus: OfferedFlags {
                fec: self.fec,
                dtx: self.dtx,
                stereo: self.stereo,
            },
            red: self.red,
            fmtp: self.fmtp.clone(),
            h264_profile: self.h264_profile.clone(),
            vp9_profile: self.vp9_profile.clone(),
            simulcast: self.simulcast,
            svc: self.svc,
            extensions: ExtensionIds {
                audio_level: self.audio_level,
                video_orientation: self.video_orientation,
                playout_delay: self.playout_delay,
                dependency_descriptor: self.dependency_descriptor,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn record() -> PersonRecord {
        let mut stream = Stream::new(Kind::Video, Mid::new("1").unwrap(), 0);
        stream.disabled = false;
        stream.description = Some("camera".to_owned());
        stream.format = StreamFormat {
            codec: Some(CodecName::Vp8),
            simulcast: true,
            ..StreamFormat::default()
        };
        PersonRecord {
            display: Some("Ada".to_owned()),
            metadata: None,
            publication: Some(PublicationRecord {
                e2ee: false,
                streams: vec![StreamRecord::new(&stream, None)],
            }),
            note: None,
            session: Some(7),
            connecting: false,
        }
    }

    #[test]
    fn a_record_is_the_same_when_it_was_written_and_read() {
        let record = record();
        let again = PersonRecord::parse(&record.to_value()).unwrap();
        assert_eq!(again, record);
        let stream = again.streams().first().unwrap().stream(0).unwrap();
        assert_eq!(stream.format.codec, Some(CodecName::Vp8));
        assert!(stream.format.simulcast && !stream.disabled);
        assert_eq!(stream.description.as_deref(), Some("camera"));
    }

    #[test]
    fn what_a_node_does_not_know_is_left_out() {
        let text = String::from_utf8(record().to_value()).unwrap();
        let later = text.replace("vp8", "vp12").replace('{', "{\"later\":1,");
        let record = PersonRecord::parse(later.as_bytes()).unwrap();
        assert!(
            record
                .streams()
                .first()
                .unwrap()
                .stream(0)
                .unwrap()
                .disabled
        );
        let smell = text.replace("video", "smell");
        let record = PersonRecord::parse(smell.as_bytes()).unwrap();
        assert!(record.streams().first().unwrap().stream(0).is_none());
        assert!(PersonRecord::parse(b"7").is_err());
    }
}
