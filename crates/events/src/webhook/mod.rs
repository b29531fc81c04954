//! A webhook: events are posted to an HTTP server.

mod config;
pub(crate) mod failure;
mod signature;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use portunus_config::Secret;
use portunus_core::events::{
    ConfiguredEventHandler, EventHandler, EventHandlerInfo, Handling, Subscription, TweakError,
};
use portunus_core::{Fields, JsonForm, Object, PluginCounter};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Client, Url, redirect};
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::batch::{Batch, Batches, Layout};
use crate::tally::Tally;
use crate::tls::{self, TlsError};
use crate::tweak;
pub use config::WebhookConfig;
use failure::{Failure, MOST_WAIT};
use signature::Signatures;

const PACKAGE: &str = "janus.eventhandler.sampleevh";

/// The header by which a backend recognizes repeated deliveries. It is the same for all attempts.
const DELIVERY_HEADER: &str = "x-portunus-delivery";

/// The limit of bytes read of an answer, so that its connection can be reused. A longer answer
/// closes the connection.
const MAX_ANSWER: usize = 64 << 10;

/// Posts events to a URL, one batch after the other.
pub struct Webhook {
    client: Client,
    configured: Configured,
    json: JsonForm,
    pause: Duration,
    settings: Mutex<Settings>,
    /// The number of this run of the server, as a part of delivery ids.
    run: u64,
    deliveries: AtomicU64,
    tally: Tally,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").finish_non_exhaustive()
    }
}

/// The backend of the configuration, and its credentials. An administrator who sets another backend
/// does not get them there.
struct Configured {
    backend: Url,
    user: String,
    password: Secret,
    bearer: Option<Secret>,
    signatures: Option<Signatures>,
}

impl Configured {
    /// Returns whether a backend is the same server, by scheme, host and port.
    fn is_at(&self, backend: &Url) -> bool {
        self.backend.origin() == backend.origin()
    }

    /// Returns the bearer token for a backend.
    fn bearer(&self, backend: &Url) -> Option<&str> {
        self.bearer.as_deref().filter(|_| self.is_at(backend))
    }

    /// Returns the signer of bodies for a backend.
    fn signatures(&self, backend: &Url) -> Option<&Signatures> {
        self.signatures.as_ref().filter(|_| self.is_at(backend))
    }
}

/// The settings that can change at run time. Each attempt uses the present ones.
#[derive(Debug, Clone)]
struct Settings {
    grouping: bool,
    backend: Url,
    user: String,
    password: Secret,
    max_retransmissions: u64,
    backoff: Duration,
    compress: bool,
    compression: u32,
}

impl Settings {
    /// Changes the backend. Another server gets no credentials of the former one.
    fn move_to(&mut self, backend: Url, configured: &Configured) {
        if backend.origin() != self.backend.origin() {
            (self.user, self.password) = match configured.is_at(&backend) {
                true => (configured.user.clone(), configured.password.clone()),
                false => Default::default(),
            };
        }
        self.backend = backend;
    }
}

/// Why a webhook does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The backend is no URL.
    #[error("events.webhook.backend: {0}")]
    Backend(String),
    /// Its certificates cannot be checked.
    #[error("events.webhook.ca: {0}")]
    Tls(#[from] TlsError),
    /// The HTTP client cannot be made.
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// Bodies cannot be signed.
    #[error("events.webhook.hmac_secret: {0}")]
    Signature(#[from] openssl::error::ErrorStack),
}

/// Returns a client for posts: it follows no redirects and keeps one connection to each server. The
/// certificates of the PEM file `authorities` replace the system's.
pub fn http_client(authorities: Option<&Path>, timeout: Duration) -> Result<Client, WebhookError> {
    let client = Client::builder()
        .tls_backend_preconfigured(tls::client(authorities)?)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .http1_only()
        .pool_max_idle_per_host(1)
        .user_agent(concat!("Portunus/", env!("CARGO_PKG_VERSION")))
        .timeout(timeout)
        .build()?;
    Ok(client)
}

impl ConfiguredEventHandler for Webhook {
    const NAME: &'static str = "webhook";
    type Config = WebhookConfig;
    type Error = WebhookError;

    fn missing(config: &WebhookConfig) -> Option<&'static str> {
        config.backend.is_empty().then_some("backend")
    }

    async fn from_config(config: WebhookConfig) -> Result<Self, WebhookError> {
        let client = http_client(config.ca.as_deref(), config.timeout)?;
        let some = |text: Secret| Some(text).filter(|text| !text.is_empty());
        let signatures = some(config.hmac_secret).map(|secret| Signatures::new(&secret));
        let configured = Configured {
            backend: config::backend(&config.backend).map_err(WebhookError::Backend)?,
            user: config.backend_user,
            password: config.backend_pwd,
            bearer: some(config.bearer),
            signatures: signatures.transpose()?,
        };
        Ok(Webhook {
            client,
            json: config.json,
            pause: Duration::from_millis(config.batch_pause_ms),
            settings: Mutex::new(Settings {
                grouping: config.grouping,
                backend: configured.backend.clone(),
                user: configured.user.clone(),
                password: configured.password.clone(),
                max_retransmissions: config.max_retransmissions,
                backoff: Duration::from_millis(config.retransmissions_backoff),
                compress: config.compress,
                compression: config.compression,
            }),
            configured,
            run: rand::random(),
            deliveries: AtomicU64::new(0),
            tally: Tally::default(),
        })
    }
}

impl EventHandler for Webhook {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: PACKAGE,
            name: "Webhook",
            description: "Posts events to an HTTP server.",
            version: 1,
            version_string: env!("CARGO_PKG_VERSION"),
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move {
            let mut batches = Batches::new(self.pause);
            loop {
                let layout = Layout::grouping(self.settings().grouping);
                let Some(batch) = batches.next(&events, layout, self.json).await else {
                    break;
                };
                self.deliver(batch, &events).await;
            }
        })
    }

    fn tweak(&self, members: Fields<'_>) -> Result<(), TweakError> {
        let mut new = self.settings();
        tweak::set(&mut new.grouping, members.boolean("grouping")?);
        if let Some(text) = members.string("backend")? {
            let backend = config::backend(text)
                .map_err(|what| TweakError::Invalid(format!("Invalid value (backend: {what})")))?;
            new.move_to(backend, &self.configured);
        }
        let text = |name| Ok::<_, TweakError>(members.string(name)?.map(str::to_owned));
        tweak::set(&mut new.user, text("backend_user")?);
        let password = text("backend_pwd")?.map(Secret::from);
        tweak::set(&mut new.password, password);
        if !new.user.is_empty() && self.configured.bearer(&new.backend).is_some() {
            let text = "Invalid value (backend_user: there is a bearer token already)";
            return Err(TweakError::Invalid(text.to_owned()));
        }
        tweak::set(&mut new.compress, members.boolean("compress")?);
        let compression = tweak::within(members, "compression", 1..=9)?;
        tweak::set(&mut new.compression, compression.map(|level| level as u32));
        let most = 0..=config::MOST_RETRANSMISSIONS;
        let retransmissions = tweak::within(members, "max_retransmissions", most)?;
        tweak::set(&mut new.max_retransmissions, retransmissions);
        let most = 1..=config::MOST_BACKOFF_MS;
        let backoff = tweak::within(members, "retransmissions_backoff", most)?;
        tweak::set(&mut new.backoff, backoff.map(Duration::from_millis));
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    fn query(&self, name: &str, _: Fields<'_>) -> Result<Object, TweakError> {
        self.tally.query(name)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.tally.counters()
    }
}

impl Webhook {
    fn settings(&self) -> Settings {
        let settings = self.settings.lock();
        settings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Posts a batch until it is accepted or dropped. At the end of the server there are no
    /// retries.
    async fn deliver(&self, batch: Batch, events: &Subscription) {
        let number = self.deliveries.fetch_add(1, Ordering::Relaxed);
        let delivery = format!("{:016x}-{number}", self.run);
        let mut backoff = Backoff::new(self.settings().backoff, MOST_WAIT);
        let mut failures = 0;
        let mut ends = false;
        loop {
            let settings = self.settings();
            let Err(failure) = self.attempt(&settings, &delivery, &batch.body).await else {
                return self.tally.sent(batch.events);
            };
            failures += 1;
            let given_up = failure.is_final() || failures > settings.max_retransmissions || ends;
            if given_up {
                self.tally.lost(batch.events);
            }
            self.tally.failed(PACKAGE, &failure, failure.advice());
            if given_up {
                return;
            }
            let asked = failure.retry_after().unwrap_or_default();
            tokio::select! {
                () = sleep(backoff.wait().max(asked)) => {}
                () = events.over() => ends = true,
            }
            self.tally.retried();
        }
    }

    async fn attempt(
        &self,
        settings: &Settings,
        delivery: &str,
        body: &Bytes,
    ) -> Result<(), Failure> {
        let mut request = self
            .client
            .post(settings.backend.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(DELIVERY_HEADER, delivery);
        let mut body = body.clone();
        if settings.compress {
            body = compressed(body, settings.compression).await?;
            request = request.header(CONTENT_ENCODING, "gzip");
        }
        if let Some(token) = self.configured.bearer(&settings.backend) {
            request = request.bearer_auth(token);
        } else if !settings.user.is_empty() {
            request = request.basic_auth(&settings.user, Some(&*settings.password));
        }
        if let Some(signatures) = self.configured.signatures(&settings.backend) {
            let signature = signatures.of(&body);
            let signature = signature.map_err(|error| Failure::Unsigned(error.to_string()))?;
            request = request.header(signature::HEADER, signature);
        }
        let answer = request.body(body).send().await;
        let mut answer = answer.map_err(|error| Failure::of_error(&error))?;
        if let Some(failure) = Failure::of_answer(&answer) {
            return Err(failure);
        }
        let mut length: usize = 0;
        while length <= MAX_ANSWER {
            match answer.chunk().await {
                Ok(Some(chunk)) => length = length.saturating_add(chunk.len()),
                Ok(None) => break,
                Err(error) => return Err(Failure::of_error(&error)),
            }
        }
        Ok(())
    }
}

/// Compresses beside the tasks of the server: a large body takes milliseconds.
async fn compressed(body: Bytes, level: u32) -> Result<Bytes, Failure> {
    let compress = move || {
        let mut to = GzEncoder::new(Vec::new(), Compression::new(level));
        to.write_all(&body)?;
        to.finish()
    };
    let done = tokio::task::spawn_blocking(compress).await;
    let done = done.map_err(std::io::Error::other).flatten();
    done.map(Bytes::from)
        .map_err(|error| Failure::Uncompressed(error.to_string()))
}
