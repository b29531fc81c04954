//! The URLs that streams are sent to.

use livekit_protocol::StreamProtocol;

use crate::services::{Answer, Code, ServiceError};

/// The longest URL, in bytes.
const MAX_URL: usize = 2_048;

/// The URL of a stream, which has a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct StreamUrl {
    url: String,
    /// ffmpeg's name of the format.
    format: &'static str,
}

impl std::fmt::Debug for StreamUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl StreamUrl {
    /// Checks a URL. The protocol has to be that of the URL, unless it is the default.
    pub(super) fn new(url: &str, protocol: StreamProtocol) -> Answer<Self> {
        let invalid = || {
            let text = "expected a URL such as rtmp://host/app/key, rtmps://… or srt://host:port";
            ServiceError::new(Code::InvalidArgument, text)
        };
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        let (format, own) = match scheme {
            Some("rtmp" | "rtmps") => ("flv", StreamProtocol::Rtmp),
            Some("srt") => ("mpegts", StreamProtocol::Srt),
            _ => return Err(invalid()),
        };
        let is_own = protocol == StreamProtocol::DefaultProtocol || protocol == own;
        let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_own || !is_plain || url.len() > MAX_URL {
            return Err(invalid());
        }
        Ok(StreamUrl {
            url: url.to_owned(),
            format,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) const fn format(&self) -> &'static str {
        self.format
    }

    /// Returns the URL without its secret, which is the last part of the path, or the query.
    pub(super) fn shown(&self) -> String {
        let start = self.url.find("://").map_or(0, |at| at + 3);
        let secret = match self.url.get(start..).and_then(|rest| rest.find('?')) {
            Some(query) => Some(start + query + 1),
            None => self
                .url
                .rfind('/')
                .filter(|at| *at > start)
                .map(|at| at + 1),
        };
        let parts = secret.and_then(|at| self.url.split_at_checked(at));
        let Some((public, secret)) = parts.filter(|(_, secret)| !secret.is_empty()) else {
            return self.url.clone();
        };
        let length = secret.chars().count();
        let (first, last): (String, String) = match length {
            0..=8 => Default::default(),
            _ => (
                secret.chars().take(3).collect(),
                secret.chars().skip(length.saturating_sub(3)).collect(),
            ),
        };
        format!("{public}{{{first}...{last}}}")
    }

    /// Returns a text without the secret of the URL.
    pub(super) fn hide_in(&self, text: &str) -> String {
        text.replace(&self.url, &self.shown())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn the_secret_of_a_url_is_not_shown() {
        for (url, shown) in [
            ("rtmp://h/app/abcdefghijk", "rtmp://h/app/{abc...ijk}"),
            ("rtmps://h:443/app/short", "rtmps://h:443/app/{...}"),
            ("rtmp://h", "rtmp://h"),
            (
                "srt://h:9000?passphrase=abcdefgh&streamid=1",
                "srt://h:9000?{pas...d=1}",
            ),
        ] {
            let url = StreamUrl::new(url, StreamProtocol::DefaultProtocol).unwrap();
            assert_eq!(url.shown(), shown);
            let text = format!("{}: Connection refused", url.url());
            assert_eq!(url.hide_in(&text), format!("{shown}: Connection refused"));
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for url in [
            "",
            "h",
            "http://h",
            "file:///a",
            "rtmp://h/a b",
            "-rtmp://h",
        ] {
            assert!(StreamUrl::new(url, StreamProtocol::DefaultProtocol).is_err());
        }
        assert!(StreamUrl::new("rtmp://h/a", StreamProtocol::Srt).is_err());
        assert!(StreamUrl::new("rtmp://h/a", StreamProtocol::Rtmp).is_ok());
    }
}
