//! The section `[livekit.webhook]`.

use serde::{Deserialize, Serialize};

/// The webhooks. There are none without URLs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookConfig {
    /// The URLs that events are posted to.
    pub urls: Vec<String>,
    /// The API key that signs them.
    pub api_key: String,
}

/// The most URLs.
pub(crate) const MAX_URLS: usize = 16;

impl WebhookConfig {
    /// Returns whether all URLs are such of HTTP.
    pub(crate) fn has_urls_of_http(&self) -> bool {
        let is_http = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        self.urls.iter().all(is_http)
    }
}
