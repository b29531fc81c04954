//! `[events.webhook]`.

use std::path::PathBuf;
use std::time::Duration;

use portunus_config::{Configuration, Probe, Secret, Section};
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};

use portunus_core::JsonForm;

use crate::{stream, tls};

/// The limit of attempts after the first one.
pub(super) const MOST_RETRANSMISSIONS: u64 = 100;

/// The longest first wait, in milliseconds.
pub(super) const MOST_BACKOFF_MS: u64 = 60_000;

/// The configuration of a webhook.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct WebhookConfig {
    /// Whether waiting events are sent together, as a JSON array.
    pub(super) grouping: bool,
    pub(super) json: JsonForm,
    /// The least time between two batches, in ms.
    pub(super) batch_pause_ms: u64,
    /// The URL that events are posted to.
    pub(super) backend: String,
    /// The user of HTTP's basic authentication. Empty means none.
    pub(super) backend_user: String,
    pub(super) backend_pwd: Secret,
    /// A bearer token instead. Empty means none.
    pub(super) bearer: Secret,
    /// The key of signatures. Empty means no signatures.
    pub(super) hmac_secret: Secret,
    /// A file of authorities that are trusted instead of the system's.
    #[serde(with = "portunus_config::optional")]
    pub(super) ca: Option<PathBuf>,
    /// The timeout for an answer.
    #[serde(with = "portunus_config::seconds")]
    pub(super) timeout: Duration,
    /// The limit of attempts after the first one.
    pub(super) max_retransmissions: u64,
    /// The wait before the first of them, in ms. It doubles.
    pub(super) retransmissions_backoff: u64,
    /// Bodies are compressed by gzip.
    pub(super) compress: bool,
    /// 1 (fast) to 9 (small).
    pub(super) compression: u32,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        WebhookConfig {
            grouping: true,
            json: JsonForm::default(),
            batch_pause_ms: 50,
            backend: String::new(),
            backend_user: String::new(),
            backend_pwd: Secret::default(),
            bearer: Secret::default(),
            hmac_secret: Secret::default(),
            ca: None,
            timeout: Duration::from_secs(10),
            max_retransmissions: 5,
            retransmissions_backoff: 100,
            compress: false,
            compression: 6,
        }
    }
}

impl Configuration for WebhookConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let webhook: Self = section.keys();
        section.range("batch_pause_ms", webhook.batch_pause_ms, 0..=10_000);
        if !webhook.backend.is_empty() {
            section.check(&["backend"], backend(&webhook.backend).map(drop));
        }
        let twice = !webhook.backend_user.is_empty() && !webhook.bearer.is_empty();
        let either = "there is backend_user already: one of both";
        section.require(&["bearer", "backend_user"], !twice, either);
        let is_header = HeaderValue::from_str(&webhook.bearer).is_ok();
        let printable = "expected a token of printable ASCII";
        section.require(&["bearer"], is_header, printable);
        let seconds = webhook.timeout.as_secs();
        section.range("timeout", seconds, 1..=60);
        let retransmissions = webhook.max_retransmissions;
        section.range(
            "max_retransmissions",
            retransmissions,
            0..=MOST_RETRANSMISSIONS,
        );
        let backoff = webhook.retransmissions_backoff;
        section.range("retransmissions_backoff", backoff, 1..=MOST_BACKOFF_MS);
        section.range("compression", webhook.compression, 1..=9);
        webhook
    }

    fn probe(&self, probe: &mut Probe) {
        if self.ca.is_some()
            && let Err(error) = tls::client(self.ca.as_deref())
        {
            probe.error("ca", error);
        }
        let Ok(url) = backend(&self.backend) else {
            return;
        };
        // A URL may have a password.
        let host = url.host_str().unwrap_or_default().to_owned();
        let port = url.port_or_known_default().unwrap_or_default();
        let (is_secure, ca) = (url.scheme() == "https", self.ca.clone());
        probe.connects("backend", format!("{host}:{port}"), async move {
            stream::attempt(&host, port, is_secure, ca.as_deref()).await
        });
    }
}

/// Reads the URL of a backend.
pub(super) fn backend(text: &str) -> Result<Url, String> {
    let expected = || format!("expected a URL that starts with http:// or https://, got {text:?}");
    let url = Url::parse(text).map_err(|_| expected())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(expected()),
    }
}
