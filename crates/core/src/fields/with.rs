//! Deserializers for members of types without serde support, as in `#[serde(default,
//! deserialize_with = "portunus_core::with::layer")]`.

pub use portunus_media::layer_number as layer;
use portunus_record::Format;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A string. An empty string counts as absent.
pub fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// The wanted values of a format of recordings.
pub const FORMATS: &str = "mjr, webm, mkv, mp4 or opus";

/// Reads the format of recordings.
pub fn record_format<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Format>, D::Error> {
    let Some(value) = Option::<Value>::deserialize(from)? else {
        return Ok(None);
    };
    let format = value.as_str().and_then(|text| text.parse().ok());
    let wrong = || D::Error::invalid_type(Unexpected::Other("another value"), &FORMATS);
    format.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;
    use crate::Fields;

    #[derive(Debug, PartialEq, Default, Deserialize)]
    struct Wish {
        #[serde(default, deserialize_with = "layer")]
        substream: Option<u8>,
        #[serde(default, deserialize_with = "text")]
        secret: Option<String>,
        #[serde(default, deserialize_with = "record_format")]
        record_format: Option<Format>,
    }

    #[test]
    fn members_of_these_types_are_read_or_refused() {
        let read = |value: Value| {
            let read = Fields(value.as_object().unwrap()).read::<Wish>();
            read.map_err(|error| error.to_string())
        };
        assert_eq!(read(json!({})), Ok(Wish::default()));
        assert_eq!(read(json!({ "secret": "" })), Ok(Wish::default()));
        let all = json!({ "substream": 2, "secret": "s", "record_format": "webm" });
        let wish = Wish {
            substream: Some(2),
            secret: Some("s".to_owned()),
            record_format: "webm".parse().ok(),
        };
        assert_eq!(read(all), Ok(wish));
        for (members, error) in [
            (
                json!({ "substream": 3 }),
                "Invalid value (substream should be 0, 1 or 2)",
            ),
            (
                json!({ "substream": "1" }),
                "Invalid element type (substream should be a positive integer)",
            ),
            (
                json!({ "secret": null }),
                "Invalid element type (secret should be a string)",
            ),
            (
                json!({ "record_format": "avi" }),
                "Invalid element type (record_format should be mjr, webm, mkv, mp4 or opus)",
            ),
            (
                json!({ "record_format": 1 }),
                "Invalid element type (record_format should be mjr, webm, mkv, mp4 or opus)",
            ),
        ] {
            assert_eq!(read(members), Err(error.to_owned()));
        }
    }
}
