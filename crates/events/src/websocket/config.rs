//! `[events.websocket]`.

use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};
use tokio_tungstenite::tungstenite::http::{HeaderValue, Uri};
use url::{Host, Url};

use portunus_core::JsonForm;

use crate::{stream, tls};

/// The largest cap of events that are kept.
pub(super) const MOST_KEPT: u64 = 10_000_000;

/// The configuration of the WebSocket handler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct WebSocketConfig {
    /// Whether waiting events are sent together, as a JSON array.
    pub(super) grouping: bool,
    pub(super) json: JsonForm,
    /// The least time between two batches, in ms.
    pub(super) batch_pause_ms: u64,
    /// The URL to connect to.
    pub(super) backend: String,
    /// The subprotocol. Empty means none.
    pub(super) subprotocol: String,
    /// The limit of events sent after a time without a connection. 0 means all that wait.
    pub(super) events_cap_on_reconnect: u64,
    /// A file of authorities that are trusted instead of the system's.
    #[serde(with = "portunus_config::optional")]
    pub(super) ca: Option<PathBuf>,
}

impl Default for WebSocketConfig {
    fn default() -> Self {
        WebSocketConfig {
            grouping: true,
            json: JsonForm::default(),
            batch_pause_ms: 50,
            backend: String::new(),
            subprotocol: String::new(),
            events_cap_on_reconnect: 0,
            ca: None,
        }
    }
}

impl Configuration for WebSocketConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let websocket: Self = section.keys();
        section.range("batch_pause_ms", websocket.batch_pause_ms, 0..=10_000);
        if !websocket.backend.is_empty() {
            section.check(&["backend"], Backend::new(&websocket.backend).map(drop));
        }
        let is_header = HeaderValue::from_str(&websocket.subprotocol).is_ok();
        section.require(&["subprotocol"], is_header, "expected printable ASCII");
        let cap = websocket.events_cap_on_reconnect;
        section.range("events_cap_on_reconnect", cap, 0..=MOST_KEPT);
        websocket
    }

    fn probe(&self, probe: &mut Probe) {
        if self.ca.is_some()
            && let Err(error) = tls::client(self.ca.as_deref())
        {
            probe.error("ca", error);
        }
        let Ok(Backend {
            host, port, secure, ..
        }) = Backend::new(&self.backend)
        else {
            return;
        };
        let ca = self.ca.clone();
        probe.connects("backend", format!("{host}:{port}"), async move {
            stream::attempt(&host, port, secure, ca.as_deref()).await
        });
    }
}

/// The address of the receiver.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) uri: Uri,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) secure: bool,
}

impl Backend {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let expected = || format!("expected a URL that starts with ws:// or wss://, got {text:?}");
        let url = Url::parse(text).map_err(|_| expected())?;
        let secure = match url.scheme() {
            "ws" => false,
            "wss" => true,
            _ => return Err(expected()),
        };
        let host = match url.host().ok_or_else(expected)? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(ip) => ip.to_string(),
            Host::Ipv6(ip) => ip.to_string(),
        };
        Ok(Backend {
            uri: url.as_str().parse().map_err(|_| expected())?,
            host,
            port: url.port_or_known_default().ok_or_else(expected)?,
            secure,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_url_says_where_to_connect() {
        let at = |text: &str| {
            let backend = Backend::new(text).unwrap();
            (backend.host, backend.port, backend.secure)
        };
        assert_eq!(
            at("ws://a.example.org/events"),
            ("a.example.org".into(), 80, false)
        );
        assert_eq!(at("wss://[::1]"), ("::1".into(), 443, true));
        assert_eq!(at("wss://[::1]:99/x?y"), ("::1".into(), 99, true));
        for wrong in ["", "ws://", "http://a", "a.example.org", "ws://a:99999/"] {
            assert!(Backend::new(wrong).is_err(), "{wrong}");
        }
    }
}
