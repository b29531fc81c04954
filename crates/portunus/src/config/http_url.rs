//! URLs of HTTP in the configuration.

use std::str::FromStr;

use portunus_core::configuration;
use reqwest::Url;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A URL with `http://` or `https://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpUrl(pub(crate) Url);

impl FromStr for HttpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected an http:// or https:// URL".to_owned();
        let url = Url::parse(text).map_err(|_| expected())?;
        match url.scheme() {
            "http" | "https" => Ok(HttpUrl(url)),
            _ => Err(expected()),
        }
    }
}

impl<'de> Deserialize<'de> for HttpUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        configuration::text(from, "a URL", str::parse)
    }
}

impl Serialize for HttpUrl {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.as_str())
    }
}
