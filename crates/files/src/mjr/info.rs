//! The header of a recording.

use serde_json::{Map, Value};

use super::{MjrError, UnixMicros};

/// The longest header that tools read, in bytes: `janus-pp-rec` refuses longer ones.
pub const MAX_INFO: usize = 1_499;

/// The header of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The medium.
    pub medium: Medium,
    /// Janus's name of the codec (`opus`, `vp8`, …), or `text` or `binary` for data.
    pub codec: String,
    /// The format parameters of the SDP.
    pub fmtp: Option<String>,
    /// The publisher's description.
    pub description: Option<String>,
    /// The header extensions of packets: ids (1 to 14) and URIs.
    pub extensions: Vec<(u8, String)>,
    /// The time of its creation.
    pub created: UnixMicros,
    /// The time of its first frame.
    pub first_frame: UnixMicros,
    /// The payload type of redundant audio (RFC 2198).
    pub red: Option<u8>,
    /// Whether it is encrypted end to end, so that only receivers can play it.
    pub encrypted: bool,
}

/// The medium of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Medium {
    Audio,
    Video,
    Data,
}

impl Medium {
    /// Returns the word in names of files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Medium::Audio => "audio",
            Medium::Video => "video",
            Medium::Data => "data",
        }
    }

    const fn letter(self) -> &'static str {
        match self {
            Medium::Audio => "a",
            Medium::Video => "v",
            Medium::Data => "d",
        }
    }

    fn from_letter(letter: &str) -> Option<Self> {
        [Medium::Audio, Medium::Video, Medium::Data]
            .into_iter()
            .find(|medium| medium.letter() == letter)
    }
}

impl Info {
    /// Returns a header for `codec` without optional members.
    pub fn new(medium: Medium, codec: impl Into<String>, created: UnixMicros) -> Self {
        Self {
            medium,
            codec: codec.into(),
            fmtp: None,
            description: None,
            extensions: Vec::new(),
            created,
            first_frame: created,
            red: None,
            encrypted: false,
        }
    }

    /// Reads a header from [`Info::to_json`].
    pub fn from_json(json: &[u8]) -> Result<Self, MjrError> {
        let members: Map<String, Value> = serde_json::from_slice(json)?;
        let text = |name: &'static str| match members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(MjrError::Member(name)),
        };
        let number = |name: &'static str| match members.get(name) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or(MjrError::Member(name)),
        };
        let medium = text("t")?.as_deref().and_then(Medium::from_letter);
        let red = number("or")?.map(u8::try_from).transpose();
        Ok(Self {
            medium: medium.ok_or(MjrError::Member("t"))?,
            codec: text("c")?.ok_or(MjrError::Member("c"))?,
            fmtp: text("f")?,
            description: text("d")?,
            extensions: extensions(members.get("x"))?,
            created: UnixMicros(number("s")?.unwrap_or(0)),
            first_frame: UnixMicros(number("u")?.unwrap_or(0)),
            red: red.map_err(|_| MjrError::Member("or"))?,
            encrypted: members.get("e").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    /// Returns the header as JSON of at most [`MAX_INFO`] bytes. Members that do not fit are left
    /// out, the ones that people chose first.
    pub fn to_json(&self) -> String {
        let mut members = self.members();
        let mut json = Value::Object(members.clone()).to_string();
        for name in ["d", "x", "f"] {
            if json.len() <= MAX_INFO {
                break;
            }
            members.shift_remove(name);
            json = Value::Object(members.clone()).to_string();
        }
        json
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                members.insert(name.to_owned(), value);
            }
        };
        add("t", Some(self.medium.letter().into()));
        add("c", Some(self.codec.as_str().into()));
        add("f", self.fmtp.as_deref().map(Value::from));
        add("d", self.description.as_deref().map(Value::from));
        let extensions = self.extensions.iter();
        let extensions: Map<_, _> = extensions
            .map(|(id, uri)| (id.to_string(), uri.as_str().into()))
            .collect();
        add("x", (!extensions.is_empty()).then_some(extensions.into()));
        add("s", Some(self.created.0.into()));
        add("u", Some(self.first_frame.0.into()));
        add("or", self.red.map(Value::from));
        add("e", self.encrypted.then_some(true.into()));
        members
    }
}

fn extensions(value: Option<&Value>) -> Result<Vec<(u8, String)>, MjrError> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let wrong = || MjrError::Member("x");
    let members = value.as_object().ok_or_else(wrong)?;
    let extension = |(id, uri): (&String, &Value)| {
        let id = id.parse().map_err(|_| wrong())?;
        Ok((id, uri.as_str().ok_or_else(wrong)?.to_owned()))
    };
    members.iter().map(extension).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn members_have_the_names_and_the_order_of_the_format() {
        let mut info = Info::new(Medium::Video, "vp9", UnixMicros(17));
        info.first_frame = UnixMicros(18);
        info.fmtp = Some("profile-id=2".to_owned());
        info.description = Some("Screen".to_owned());
        info.extensions = vec![(3, "urn:3gpp:video-orientation".to_owned())];
        info.encrypted = true;
        assert_eq!(
            info.to_json(),
            r#"{"t":"v","c":"vp9","f":"profile-id=2","d":"Screen","x":{"3":"urn:3gpp:video-orientation"},"s":17,"u":18,"e":true}"#
        );
        assert_eq!(Info::from_json(info.to_json().as_bytes()).unwrap(), info);
    }

    #[test]
    fn a_long_name_is_left_out_rather_than_the_recording_spoilt() {
        let mut info = Info::new(Medium::Audio, "opus", UnixMicros(1));
        info.red = Some(63);
        info.description = Some("a".repeat(2_000));
        info.fmtp = Some("useinbandfec=1".to_owned());
        let read = Info::from_json(info.to_json().as_bytes()).unwrap();
        info.description = None;
        assert_eq!(read, info);
    }

    #[test]
    fn what_lacks_kind_or_codec_is_refused() {
        for json in [
            "{}",
            r#"{"t":"a"}"#,
            r#"{"t":"x","c":"opus"}"#,
            r#"{"t":"a","c":7}"#,
            r#"{"t":"a","c":"opus","s":-1}"#,
            r#"{"t":"a","c":"opus","x":{"one":"urn"}}"#,
            r#"{"t":"a","c":"opus","or":300}"#,
            "[]",
            "",
        ] {
            assert!(Info::from_json(json.as_bytes()).is_err(), "{json}");
        }
    }
}
