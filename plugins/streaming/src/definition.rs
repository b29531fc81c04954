//! What the nodes of a cluster tell each other of a mountpoint.

use portunus_core::Mid;
use portunus_core::sdp::Kind;
use portunus_relay::Offer;
use serde::{Deserialize, Deserializer, Serialize};

use crate::spec::{DataType, MediaKind, MediaSpec, RelayedSpec, StreamCodec};

/// The most streams of a mountpoint.
const MAX_STREAMS: usize = 511;

/// A mountpoint as its node describes it. Secrets and tokens stay there, and so does the pin: others
/// can check one, and cannot read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The name.
    pub(crate) name: String,
    /// The name for people.
    #[serde(default)]
    pub(crate) description: String,
    /// Opaque text for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<String>,
    /// It is not in lists, but for administrators.
    #[serde(default)]
    pub(crate) is_private: bool,
    /// What a pin is checked against ([`Access::sealed`](portunus_resources::Access::sealed)). `None`
    /// means that anybody may watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pin: Option<String>,
    /// Whether requests that manage it need a secret.
    #[serde(default)]
    pub(crate) has_secret: bool,
    /// Whether it is relayed to viewers.
    #[serde(default)]
    pub(crate) enabled: bool,
    /// Whether all its codecs are known.
    #[serde(default)]
    pub(crate) described: bool,
    /// Media is encrypted end to end.
    #[serde(default)]
    pub(crate) e2ee: bool,
    /// Viewers may set a playout delay.
    #[serde(default)]
    pub(crate) playout_delay: bool,
    /// The id of abs-capture-time in its packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) abs_capture_time: Option<u8>,
    /// The audio and video streams.
    #[serde(default)]
    pub(crate) streams: Vec<StreamDefinition>,
    /// The data streams. Versions that cannot take them skip this member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) data: Vec<DataDefinition>,
}

/// A data stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DataDefinition {
    /// Its index among all streams of the mountpoint.
    #[serde(default)]
    pub(crate) index: usize,
    /// The m-line's identification towards viewers.
    pub(crate) mid: String,
    /// For people.
    #[serde(default)]
    pub(crate) label: String,
    /// Whether messages are bytes; otherwise they are text.
    #[serde(default)]
    pub(crate) is_binary: bool,
    /// Whether new viewers get the last message.
    #[serde(default)]
    pub(crate) keeps_last: bool,
    /// Whether messages come now.
    #[serde(default)]
    pub(crate) is_fed: bool,
}

/// An audio or video stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamDefinition {
    /// The m-line's identification towards viewers.
    pub(crate) mid: String,
    /// Whether it is video; otherwise it is audio.
    #[serde(default)]
    pub(crate) is_video: bool,
    /// For people.
    #[serde(default)]
    pub(crate) label: String,
    /// The stream and track in offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) msid: Option<(String, String)>,
    /// The codec by its name in the API. `None` while it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) codec: Option<String>,
    /// The payload type for viewers.
    #[serde(default)]
    pub(crate) pt: u8,
    /// Format parameters in offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fmtp: Option<String>,
    /// The number of audio channels, if it is not the codec's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) channels: Option<u8>,
    /// It has simulcast encodings.
    #[serde(default)]
    pub(crate) simulcast: bool,
    /// It has spatial layers.
    #[serde(default)]
    pub(crate) svc: bool,
    /// Whether packets come now.
    #[serde(default)]
    pub(crate) is_fed: bool,
    /// The source. `None` while there is none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_offer"
    )]
    pub(crate) offer: Option<Offer>,
}

/// The text is not the definition of a mountpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the definition of a mountpoint cannot be read: {0}")]
pub struct DefinitionError(String);

impl Definition {
    /// Reads a definition. Unknown members are skipped.
    pub fn parse(value: &[u8]) -> Result<Self, DefinitionError> {
        let parsed: Self =
            serde_json::from_slice(value).map_err(|error| DefinitionError(error.to_string()))?;
        let count = parsed.streams.len().saturating_add(parsed.data.len());
        if count > MAX_STREAMS {
            return Err(DefinitionError(format!("{count} streams")));
        }
        parsed.media().map(|_| parsed.clone())
    }

    /// Returns the text that [`Definition::parse`] reads.
    pub fn to_value(&self) -> Vec<u8> {
        // The type has no maps with other keys than texts, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the source of such a mountpoint on another node than `node`.
    pub(crate) fn to_spec(&self, node: &str) -> Result<RelayedSpec, DefinitionError> {
        Ok(RelayedSpec {
            node: node.to_owned(),
            media: self.media()?,
            e2ee: self.e2ee,
            playoutdelay_ext: self.playout_delay,
            abs_capture_time: self.abs_capture_time,
        })
    }

    /// Returns the streams, without what may change of them.
    fn media(&self) -> Result<Vec<MediaSpec>, DefinitionError> {
        let mut media: Vec<MediaSpec> = Vec::with_capacity(self.streams.len());
        for stream in &self.streams {
            media.push(MediaSpec {
                label: stream.label.clone(),
                msid: stream.msid.clone(),
                ..MediaSpec::new(stream.kind(), free_mid(&stream.mid, &media)?)
            });
        }
        for stream in &self.data {
            let spec = MediaSpec {
                label: stream.label.clone(),
                datatype: match stream.is_binary {
                    true => DataType::Binary,
                    false => DataType::Text,
                },
                buffermsg: stream.keeps_last,
                ..MediaSpec::new(MediaKind::Data, free_mid(&stream.mid, &media)?)
            };
            media.insert(stream.index.min(media.len()), spec);
        }
        Ok(media)
    }
}

/// Returns a mid that no other stream has.
fn free_mid(text: &str, media: &[MediaSpec]) -> Result<Mid, DefinitionError> {
    let is_free = |mid: &Mid| media.iter().all(|known| known.mid != *mid);
    let mid = Mid::new(text).filter(is_free);
    mid.ok_or_else(|| DefinitionError(format!("the mid {text:?}")))
}

impl StreamDefinition {
    fn kind(&self) -> MediaKind {
        match self.is_video {
            true => MediaKind::Video,
            false => MediaKind::Audio,
        }
    }

    /// Returns the codec, or `None` if this node does not know it.
    pub(crate) fn known_codec(&self) -> Option<StreamCodec> {
        StreamCodec::from_name(self.codec.as_deref()?, Kind::from(self.kind()))
    }
}

/// Reads an offer. One that this version cannot use counts as absent.
fn known_offer<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Offer>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(from)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::{Value, json};

    use super::*;

    fn parse(value: &Value) -> Result<Definition, DefinitionError> {
        Definition::parse(value.to_string().as_bytes())
    }

    #[test]
    fn a_definition_is_the_same_when_it_was_written_and_read() {
        let written = json!({
            "name": "n", "description": "d", "enabled": true, "later": 1,
            "pin": "1234",
            "streams": [
                { "mid": "a", "codec": "opus", "pt": 111, "is_fed": true,
                  "offer": { "id": 3, "description": { "codec": "opus", "encodings": 1 } } },
                { "mid": "v", "is_video": true, "codec": "later",
                  "offer": { "id": 4, "description": { "codec": "later", "encodings": 1 } } },
            ],
            "data": [{ "index": 1, "mid": "d", "is_binary": true, "keeps_last": true }],
        });
        let read = parse(&written).unwrap();
        assert_eq!(Definition::parse(&read.to_value()).unwrap(), read);
        let known: Vec<_> = read
            .streams
            .iter()
            .map(|stream| (stream.known_codec(), stream.offer.is_some()))
            .collect();
        assert_eq!(known, [(Some(StreamCodec::OPUS), true), (None, false)]);
        let spec = read.to_spec("a").unwrap();
        let kinds: Vec<_> = spec.media.iter().map(|media| media.kind).collect();
        assert_eq!(kinds, [MediaKind::Audio, MediaKind::Data, MediaKind::Video]);
    }

    #[test]
    fn malformed_definitions_are_refused() {
        let twice = json!([{ "mid": "a" }, { "mid": "a" }]);
        let many: Vec<_> = (0..512)
            .map(|mid| json!({ "mid": mid.to_string() }))
            .collect();
        for wrong in [
            json!([]),
            json!({ "description": "without a name" }),
            json!({ "name": "n", "streams": twice }),
            json!({ "name": "n", "streams": [{ "mid": "" }] }),
            json!({ "name": "n", "streams": many }),
            json!({ "name": "n", "streams": [{ "mid": "a" }], "data": [{ "mid": "a" }] }),
            json!({ "name": "n", "data": many }),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
    }
}
