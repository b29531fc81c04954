//! Events over a WebSocket, of which this server is the client.

mod config;
mod link;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use portunus_core::events::{
    ConfiguredEventHandler, EventHandler, EventHandlerInfo, Handling, Subscription, TweakError,
};
use portunus_core::{Fields, JsonForm, Object, PluginCounter};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::http::HeaderValue;

use crate::backoff::Backoff;
use crate::batch::{Batch, Batches, Layout};
use crate::tally::Tally;
use crate::tls::{self, TlsError};
use crate::tweak;
use config::Backend;
pub use config::WebSocketConfig;
use link::{Link, LinkError};

const PACKAGE: &str = "janus.eventhandler.wsevh";

/// The waits between attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Sends each batch as a text message.
pub struct WebSocket {
    backend: Backend,
    subprotocol: Option<HeaderValue>,
    tls: TlsConnector,
    json: JsonForm,
    pause: Duration,
    grouping: AtomicBool,
    /// The limit of events kept without a connection. 0 means all that wait.
    cap: AtomicU64,
    connections: AtomicU64,
    tally: Tally,
}

impl std::fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSocket").finish_non_exhaustive()
    }
}

/// Why this handler does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebSocketError {
    /// The backend is no URL.
    #[error("events.websocket.backend: {0}")]
    Backend(String),
    /// The subprotocol cannot be in a header.
    #[error("events.websocket.subprotocol: expected printable ASCII")]
    Subprotocol,
    /// The receiver's certificate cannot be checked.
    #[error("events.websocket.ca: {0}")]
    Tls(#[from] TlsError),
}

impl ConfiguredEventHandler for WebSocket {
    const NAME: &'static str = "websocket";
    type Config = WebSocketConfig;
    type Error = WebSocketError;

    fn missing(config: &WebSocketConfig) -> Option<&'static str> {
        config.backend.is_empty().then_some("backend")
    }

    async fn from_config(config: WebSocketConfig) -> Result<Self, WebSocketError> {
        let subprotocol = HeaderValue::from_str(&config.subprotocol);
        let subprotocol = subprotocol.map_err(|_| WebSocketError::Subprotocol)?;
        Ok(WebSocket {
            backend: Backend::new(&config.backend).map_err(WebSocketError::Backend)?,
            subprotocol: Some(subprotocol).filter(|it| !it.is_empty()),
            tls: Arc::new(tls::client(config.ca.as_deref())?).into(),
            json: config.json,
            pause: Duration::from_millis(config.batch_pause_ms),
            grouping: AtomicBool::new(config.grouping),
            cap: AtomicU64::new(config.events_cap_on_reconnect),
            connections: AtomicU64::new(0),
            tally: Tally::default(),
        })
    }
}

impl EventHandler for WebSocket {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: PACKAGE,
            name: "WebSocket",
            description: "Sends events to a WebSocket server.",
            version: 1,
            version_string: env!("CARGO_PKG_VERSION"),
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move { self.pass_on(&events).await })
    }

    fn tweak(&self, members: Fields<'_>) -> Result<(), TweakError> {
        let grouping = members.boolean("grouping")?;
        let cap = tweak::within(members, "events_cap_on_reconnect", 0..=config::MOST_KEPT)?;
        if let Some(grouping) = grouping {
            self.grouping.store(grouping, Ordering::Relaxed);
        }
        if let Some(cap) = cap {
            self.cap.store(cap, Ordering::Relaxed);
        }
        Ok(())
    }

    fn query(&self, name: &str, _: Fields<'_>) -> Result<Object, TweakError> {
        self.tally.query(name)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        let connections = PluginCounter {
            name: "connections",
            help: "Connections that were made.",
            value: self.connections.load(Ordering::Relaxed),
        };
        let mut counters = self.tally.counters();
        counters.push(connections);
        counters
    }
}

impl WebSocket {
    /// Connects again and again until the bus ends.
    async fn pass_on(&self, events: &Subscription) {
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
        let mut batches = Batches::new(self.pause);
        // The batch that the last connection did not send.
        let mut unsent: Option<Batch> = None;
        loop {
            let connected = tokio::select! {
                connected = Link::connect(&self.backend, self.subprotocol.as_ref(), &self.tls) => connected,
                () = events.over() => return,
            };
            let served = match connected {
                Ok(mut link) => {
                    self.connections.fetch_add(1, Ordering::Relaxed);
                    self.apply_cap(events, &mut unsent);
                    self.serve(&mut link, events, &mut batches, &mut unsent, &mut backoff)
                        .await
                }
                Err(error) => Err(error),
            };
            let Err(error) = served else {
                return;
            };
            self.tally.failed(PACKAGE, &error, error.advice());
            tokio::select! {
                () = tokio::time::sleep(backoff.wait()) => {}
                () = events.over() => return,
            }
        }
    }

    /// Sends events until there are no more, or the connection fails.
    async fn serve(
        &self,
        link: &mut Link,
        events: &Subscription,
        batches: &mut Batches,
        unsent: &mut Option<Batch>,
        backoff: &mut Backoff,
    ) -> Result<(), LinkError> {
        loop {
            if let Some(batch) = unsent {
                link.send(&batch.body).await?;
                self.tally.sent(batch.events);
                *unsent = None;
                // A server that accepts connections and closes them at once is retried with pauses.
                backoff.reset();
            }
            let layout = Layout::grouping(self.grouping.load(Ordering::Relaxed));
            tokio::select! {
                batch = batches.next(events, layout, self.json) => match batch {
                    Some(batch) => *unsent = Some(batch),
                    None => {
                        link.close().await;
                        return Ok(());
                    }
                },
                heard = link.listen() => heard?,
            }
        }
    }

    /// Drops the oldest events after a time without a connection.
    fn apply_cap(&self, events: &Subscription, unsent: &mut Option<Batch>) {
        let cap = self.cap.load(Ordering::Relaxed);
        if cap == 0 {
            return;
        }
        let kept = usize::try_from(cap).unwrap_or(usize::MAX);
        let waiting = events.waiting() as u64;
        if let Some(batch) = unsent.take_if(|batch| waiting.saturating_add(batch.events) > cap) {
            self.tally.lost(batch.events);
        }
        events.keep(kept);
    }
}
