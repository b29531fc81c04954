//! A REST API for TURN services (draft-uberti-behave-turn-rest), which names servers with temporary
//! credentials.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::configuration::Secret;
use portunus_media::TurnLogin;
use reqwest::{Client, Method, Url, redirect};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_rustls::rustls::ClientConfig;

use super::Access;
use crate::config::{HttpUrl, RestMethod, TurnClientConfig, TurnUri};

/// The validity of credentials if the API does not give one. The draft recommends a day.
const LIFETIME: u64 = 86_400;
/// The shortest use of credentials, so that an API without a validity is not asked permanently.
const LEAST: Duration = Duration::from_secs(10);
/// The longest answer in bytes.
const MAX_ANSWER: usize = 64 << 10;
/// The user name for the API.
const USER: &str = "portunus";

/// The reason why the API gave no servers.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestError {
    #[error("{0}")]
    Http(String),
    #[error("it answers {0}")]
    Status(reqwest::StatusCode),
    #[error("its answer is longer than {MAX_ANSWER} bytes")]
    TooLong,
    #[error("its answer is not understood: {0}")]
    Answer(#[from] serde_json::Error),
}

impl From<reqwest::Error> for RestError {
    fn from(error: reqwest::Error) -> Self {
        // It contains the key.
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        RestError::Http(cause.to_string())
    }
}

/// The answer of the API.
#[derive(Deserialize)]
struct Answer {
    username: String,
    password: Secret,
    /// In seconds.
    ttl: Option<u64>,
    uris: Vec<String>,
}

/// The API, and its last answer.
pub(super) struct Rest {
    client: Client,
    url: Url,
    key: Secret,
    method: RestMethod,
    last: Mutex<Option<(Access, Instant)>>,
}

impl Rest {
    /// `None` if none is configured, or if the HTTP client fails.
    pub(super) fn new(config: &TurnClientConfig, tls: &Arc<ClientConfig>) -> Option<Self> {
        let HttpUrl(url) = config.turn_rest_api.clone()?;
        let client = Client::builder()
            .tls_backend_preconfigured((**tls).clone())
            .redirect(redirect::Policy::none())
            .timeout(config.turn_rest_api_timeout)
            .build();
        let client = client
            .inspect_err(|error| tracing::error!(%error, "there is no HTTP client"))
            .ok()?;
        Some(Rest {
            client,
            url,
            key: config.turn_rest_api_key.clone(),
            method: config.turn_rest_api_method,
            last: Mutex::default(),
        })
    }

    /// Returns servers with valid credentials. All workers share them.
    pub(super) async fn access(&self) -> Result<Access, RestError> {
        let mut last = self.last.lock().await;
        let now = Instant::now();
        if let Some((access, until)) = &*last
            && now < *until
        {
            return Ok(access.clone());
        }
        let answer = self.ask().await?;
        // An allocation is made some seconds later.
        let lifetime = Duration::from_secs(answer.ttl.unwrap_or(LIFETIME).min(LIFETIME));
        let until = now + (lifetime - lifetime / 10).max(LEAST);
        let access = Access {
            servers: servers(&answer.uris),
            login: TurnLogin {
                username: answer.username,
                password: answer.password.into_inner(),
            },
        };
        *last = Some((access.clone(), until));
        Ok(access)
    }

    /// Notes that the server has refused the credentials.
    pub(super) async fn forget(&self) {
        *self.last.lock().await = None;
    }

    async fn ask(&self) -> Result<Answer, RestError> {
        let mut url = self.url.clone();
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("service", "turn");
            if !self.key.is_empty() {
                // The draft has had both names.
                query
                    .append_pair("api", &self.key)
                    .append_pair("key", &self.key);
            }
            query.append_pair("username", USER);
        }
        let method = match self.method {
            RestMethod::Get => Method::GET,
            RestMethod::Post => Method::POST,
        };
        let mut response = self.client.request(method, url).send().await?;
        if !response.status().is_success() {
            return Err(RestError::Status(response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER {
                return Err(RestError::TooLong);
            }
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

/// Returns the usable servers in the order of the answer.
fn servers(uris: &[String]) -> Vec<TurnUri> {
    let usable = |uri: &String| {
        let parsed = uri.parse();
        parsed
            .inspect_err(|error| tracing::debug!(uri, error, "a TURN server is left out"))
            .ok()
    };
    uris.iter().filter_map(usable).collect()
}

#[cfg(test)]
mod tests;
