//! Webhooks: what happens in rooms is posted to URLs, as LiveKit does.

mod config;
mod event;

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use livekit_protocol::WebhookEvent;
use portunus_events::{Backoff, WebhookError, http_client};
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

pub(crate) use config::MAX_URLS;
pub use config::WebhookConfig;

use crate::happening::Happening;
use crate::token::Keys;

/// The type of messages. It is no usual JSON, so that nobody reads it before its signature.
const JSON: &str = "application/webhook+json";

/// The most events that wait for a URL. Later ones are dropped.
const MAX_WAITING: usize = 200;

/// How long an event may wait.
const MAX_AGE: Duration = Duration::from_secs(30);

/// The timeout for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The attempts for an event.
const ATTEMPTS: usize = 5;

/// The first wait between attempts, which doubles, and the longest one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// The queues of events; cheap to clone. Empty without URLs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Webhooks(Arc<RwLock<Vec<Queue>>>);

/// The queue of a URL.
#[derive(Debug)]
struct Queue {
    url: String,
    /// The API key that signs its events.
    key: String,
    events: mpsc::Sender<Waiting>,
    dropped: Arc<AtomicI32>,
}

/// An event that waits.
#[derive(Debug)]
struct Waiting {
    event: WebhookEvent,
    since: Instant,
}

/// Posts the events of a queue.
struct Poster {
    url: String,
    client: Client,
    keys: Keys,
    key: String,
    dropped: Arc<AtomicI32>,
}

impl Webhooks {
    /// Posts to these URLs from now on, and to no others any more. Events that wait for a URL that
    /// stays are kept.
    pub(crate) fn configure(
        &self,
        config: &WebhookConfig,
        keys: &Keys,
    ) -> Result<(), WebhookError> {
        let client = http_client(None, ANSWER_LIMIT)?;
        let mut queues = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *queues);
        for url in &config.urls {
            let is_same = |queue: &Queue| queue.url == *url && queue.key == config.api_key;
            if let Some(index) = before.iter().position(is_same) {
                queues.push(before.swap_remove(index));
                continue;
            }
            let (events, waiting) = mpsc::channel(MAX_WAITING);
            let dropped = Arc::new(AtomicI32::new(0));
            let poster = Poster {
                url: url.clone(),
                client: client.clone(),
                keys: keys.clone(),
                key: config.api_key.clone(),
                dropped: dropped.clone(),
            };
            tokio::spawn(poster.run(waiting));
            queues.push(Queue {
                url: url.clone(),
                key: config.api_key.clone(),
                events,
                dropped,
            });
        }
        Ok(())
    }

    /// Returns whether anybody wants events.
    pub(crate) fn is_used(&self) -> bool {
        !self.queues().is_empty()
    }

    /// Queues an event. Never waits.
    pub(crate) fn send(&self, happening: Happening) {
        if !self.is_used() {
            return;
        }
        let id = format!("EV_{}", uuid::Uuid::new_v4().simple());
        let event = event::event(happening, id, i64::try_from(now()).unwrap_or_default());
        for queue in &*self.queues() {
            let waiting = Waiting {
                event: event.clone(),
                since: Instant::now(),
            };
            if queue.events.try_send(waiting).is_err() {
                queue.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Webhooks {
    fn queues(&self) -> RwLockReadGuard<'_, Vec<Queue>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Poster {
    async fn run(self, mut waiting: mpsc::Receiver<Waiting>) {
        while let Some(next) = waiting.recv().await {
            if next.since.elapsed() > MAX_AGE {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            self.deliver(next.event).await;
        }
    }

    /// Posts an event until it is taken or dropped.
    async fn deliver(&self, mut event: WebhookEvent) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        event.num_dropped = dropped;
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        for attempt in 1..=ATTEMPTS {
            match self.attempt(&event).await {
                Ok(()) => return,
                Err(error) => {
                    let (url, event) = (&self.url, &event.event);
                    tracing::debug!(url, event, attempt, "a webhook fails: {error}");
                }
            }
            if attempt < ATTEMPTS {
                sleep(backoff.wait()).await;
            }
        }
        let (url, event) = (&self.url, &event.event);
        tracing::warn!(url, event, "an event is lost: the webhook does not take it");
        self.dropped
            .fetch_add(dropped.saturating_add(1), Ordering::Relaxed);
    }

    async fn attempt(&self, event: &WebhookEvent) -> Result<(), String> {
        let message = event::sign(event, &self.keys, &self.key, now());
        let message = message.map_err(|error| error.to_string())?;
        let request = self.client.post(&self.url);
        let request = request
            .header(CONTENT_TYPE, JSON)
            .header(AUTHORIZATION, message.authorization);
        let answer = request.body(message.body).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answers {status}")),
        }
    }
}

/// Returns the time in seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
