//! What another node has to know of a source.

use portunus_media::ingest::RtpIngest;
use portunus_rtp::{ExtensionKind, ExtensionMap};
use portunus_sdp::CodecName;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The extensions that are passed on: those about the media, and not about its way here.
const PASSED: [ExtensionKind; 6] = [
    ExtensionKind::AudioLevel,
    ExtensionKind::VideoOrientation,
    ExtensionKind::PlayoutDelay,
    ExtensionKind::DependencyDescriptor,
    ExtensionKind::AbsCaptureTime,
    ExtensionKind::VideoLayersAllocation,
];

/// The id of a source that a node offers. A node uses none twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceId(pub u64);

/// A source that a node offers to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its id at the node that offers it.
    pub id: SourceId,
    /// Its format.
    pub description: SourceDescription,
}

/// The format of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDescription {
    /// The codec, by its name in the API.
    #[serde(serialize_with = "write_codec", deserialize_with = "read_codec")]
    pub codec: CodecName,
    /// The number of simulcast encodings, 1 to 3.
    pub encodings: u8,
    /// The format parameters, if a receiver cannot decode the packets without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fmtp: Option<String>,
    /// The media is encrypted end to end.
    #[serde(default)]
    pub opaque: bool,
    /// The ids of the header extensions. Those that a node does not know are left out there.
    #[serde(default)]
    pub extensions: Vec<ExtensionId>,
    /// The worker that the source lives on. The node that offers it sets this.
    #[serde(default)]
    pub worker: u16,
}

/// The id of a header extension in the packets of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionId {
    /// The URI of the extension.
    pub uri: String,
    /// The id, 1 to 255.
    pub id: u8,
}

impl SourceDescription {
    /// Returns the description of a source with one encoding and no extensions.
    pub fn new(codec: CodecName) -> Self {
        Self {
            codec,
            encodings: 1,
            fmtp: None,
            opaque: false,
            extensions: Vec::new(),
            worker: 0,
        }
    }

    /// Sets the extensions about the media, as its publisher has negotiated them.
    #[must_use]
    pub fn with_extensions(mut self, ids: &ExtensionMap) -> Self {
        let passed = ids.iter().filter(|(kind, _)| PASSED.contains(kind));
        let named = passed.map(|(kind, id)| ExtensionId {
            uri: kind.uri().to_owned(),
            id,
        });
        self.extensions = named.collect();
        self
    }

    /// Returns the media of an ingest that takes the source.
    pub(crate) fn media(&self) -> RtpIngest {
        let mut extensions = ExtensionMap::default();
        for ExtensionId { uri, id } in &self.extensions {
            let kind = ExtensionKind::from_uri(uri).filter(|kind| PASSED.contains(kind));
            if let Some(kind) = kind {
                extensions.set(kind, *id);
            }
        }
        let (codec, clock_rate) = (self.codec.codec(), self.codec.clock_rate());
        RtpIngest {
            opaque: self.opaque,
            ..RtpIngest::of_node(codec, clock_rate, extensions)
        }
    }
}

fn write_codec<S: Serializer>(codec: &CodecName, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(codec.name())
}

fn read_codec<'de, D: Deserializer<'de>>(from: D) -> Result<CodecName, D::Error> {
    let name = String::deserialize(from)?;
    let unknown = || serde::de::Error::custom(format!("there is no codec {name}"));
    CodecName::from_name(&name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    #[test]
    fn an_offer_is_the_same_when_it_was_written_and_read() {
        let mut ids = ExtensionMap::default();
        ids.set(ExtensionKind::Mid, 1);
        ids.set(ExtensionKind::AudioLevel, 2);
        let offer = Offer {
            id: SourceId(7),
            description: SourceDescription {
                fmtp: Some("useinbandfec=1".to_owned()),
                ..SourceDescription::new(CodecName::Opus).with_extensions(&ids)
            },
        };
        let text = serde_json::to_string(&offer).unwrap();
        assert_eq!(serde_json::from_str::<Offer>(&text).unwrap(), offer);
        let extensions = &offer.description.extensions;
        assert_eq!(extensions.len(), 1, "the mid is not about the media");
        let media = offer.description.media();
        assert_eq!(media.extensions.id(ExtensionKind::AudioLevel), Some(2));
    }

    #[test]
    fn what_a_node_does_not_know_of_an_offer_is_left_out() {
        let text = r#"{"id": 1, "later": 1, "description": {"codec": "vp8", "encodings": 3,
            "extensions": [{"uri": "urn:later", "id": 4}]}}"#;
        let offer: Offer = serde_json::from_str(text).unwrap();
        let media = offer.description.media();
        assert_eq!(media.extensions.iter().count(), 0);
        assert!(serde_json::from_str::<Offer>(&text.replace("vp8", "vp7")).is_err());
    }
}
