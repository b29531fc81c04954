//! Session descriptions as JSON, for other nodes.

use portunus_core::sdp::{
    Attribute, Bandwidth, CodecSpec, Description, Direction, Extmap, Kind, Media, Msid, Origin,
};
use portunus_core::{Mid, Pt};
use serde::{Deserialize, Serialize};

/// A [`Description`]. Only codecs that cross to other nodes are there: no telephone events and no
/// comfort noise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Described {
    /// The user name, the session id and the address of the `o=` line.
    origin: (String, String, String),
    version: u64,
    name: String,
    attributes: Vec<(String, Option<String>)>,
    media: Vec<DescribedMedia>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DescribedMedia {
    kind: String,
    mid: String,
    rejected: bool,
    direction: String,
    proto: String,
    format: String,
    codecs: Vec<DescribedCodec>,
    extensions: Vec<(u8, Option<String>, String)>,
    msid: Option<(String, String)>,
    bandwidth: Option<(String, u64)>,
    attributes: Vec<(String, Option<String>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DescribedCodec {
    pt: u8,
    name: String,
    clock_rate: u32,
    channels: u8,
    fmtp: Option<String>,
    feedback: Vec<String>,
}

impl Described {
    pub(crate) fn of(description: &Description) -> Self {
        let Origin {
            username,
            session_id,
            version,
            address,
        } = &description.origin;
        Described {
            origin: (username.clone(), session_id.clone(), address.clone()),
            version: *version,
            name: description.name.clone(),
            attributes: pairs(&description.attributes),
            media: description.media.iter().map(described).collect(),
        }
    }

    /// Returns the description, or `None` if a part of it is malformed.
    pub(crate) fn description(self) -> Option<Description> {
        let (username, session_id, address) = self.origin;
        let media = self.media.into_iter().map(DescribedMedia::media);
        Some(Description {
            origin: Origin {
                username,
                session_id,
                version: self.version,
                address,
            },
            name: self.name,
            attributes: attributes(self.attributes),
            media: media.collect::<Option<_>>()?,
        })
    }
}

fn pairs(attributes: &[Attribute]) -> Vec<(String, Option<String>)> {
    let attributes = attributes.iter();
    let pairs = attributes.map(|attribute| (attribute.name.clone(), attribute.value.clone()));
    pairs.collect()
}

fn attributes(pairs: Vec<(String, Option<String>)>) -> Vec<Attribute> {
    let attributes = pairs.into_iter();
    let attributes = attributes.map(|(name, value)| Attribute { name, value });
    attributes.collect()
}

fn described(media: &Media) -> DescribedMedia {
    let crosses = |codec: &&CodecSpec| codec.codec_name().is_some() || codec.is_red();
    let codecs = media.codecs.iter().filter(crosses);
    let codecs = codecs.map(|codec| DescribedCodec {
        pt: codec.pt.0,
        name: codec.name.clone(),
        clock_rate: codec.clock_rate,
        channels: codec.channels,
        fmtp: codec.fmtp.clone(),
        feedback: codec.feedback.clone(),
    });
    let extensions = media.extensions.iter().map(|extmap| {
        let direction = extmap.direction.map(|it| it.as_str().to_owned());
        (extmap.id, direction, extmap.uri.clone())
    });
    let msid = media.msid.as_ref();
    let bandwidth = media.bandwidth.as_ref();
    DescribedMedia {
        kind: media.kind.name().to_owned(),
        mid: media.mid.as_str().to_owned(),
        rejected: media.rejected,
        direction: media.direction.as_str().to_owned(),
        proto: media.proto.clone(),
        format: media.format.clone(),
        codecs: codecs.collect(),
        extensions: extensions.collect(),
        msid: msid.map(|it| (it.stream.clone(), it.track.clone())),
        bandwidth: bandwidth.map(|it| (it.modifier.clone(), it.value)),
        attributes: pairs(&media.attributes),
    }
}

impl DescribedMedia {
    fn media(self) -> Option<Media> {
        let kinds = [Kind::Audio, Kind::Video, Kind::Data];
        let kind = kinds.into_iter().find(|kind| kind.name() == self.kind)?;
        let codecs = self.codecs.into_iter().map(|codec| CodecSpec {
            pt: Pt(codec.pt),
            name: codec.name,
            clock_rate: codec.clock_rate,
            channels: codec.channels,
            fmtp: codec.fmtp,
            feedback: codec.feedback,
        });
        let extensions = self.extensions.into_iter();
        let extensions = extensions.map(|(id, direction, uri)| Extmap {
            id,
            direction: direction.and_then(|it| Direction::from_name(&it)),
            uri,
        });
        Some(Media {
            kind,
            mid: Mid::new(&self.mid)?,
            rejected: self.rejected,
            direction: Direction::from_name(&self.direction)?,
            proto: self.proto,
            format: self.format,
            codecs: codecs.collect(),
            extensions: extensions.collect(),
            msid: self.msid.map(|(stream, track)| Msid { stream, track }),
            bandwidth: self
                .bandwidth
                .map(|(modifier, value)| Bandwidth { modifier, value }),
            attributes: attributes(self.attributes),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use portunus_core::ExtensionKind;
    use portunus_core::sdp::{CodecName, MediaOffer, OfferOptions};

    use super::*;

    #[test]
    fn a_description_is_the_same_when_it_was_written_and_read() {
        let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
        audio.add_codec(CodecName::Opus, None, None);
        audio.add_red(Pt(63), Pt(111));
        audio.extensions.push((ExtensionKind::AudioLevel, 1));
        let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
        video.add_codec(CodecName::Vp8, None, None);
        let mut description = Description::offer(OfferOptions {
            name: "Call".to_owned(),
            media: vec![
                audio,
                video,
                MediaOffer::new(Kind::Data, Direction::SendRecv),
            ],
            ..OfferOptions::default()
        });
        description.media[1].bandwidth = Some(Bandwidth {
            modifier: "TIAS".to_owned(),
            value: 128_000,
        });
        let text = serde_json::to_string(&Described::of(&description)).unwrap();
        let again: Described = serde_json::from_str(&text).unwrap();
        assert_eq!(again.description(), Some(description));
        let wrong = text.replace("\"video\"", "\"smell\"");
        let wrong: Described = serde_json::from_str(&wrong).unwrap();
        assert_eq!(wrong.description(), None);
    }
}
