//! Events to subscribers that use nanomsg: this server is a socket of type NN_PUB.

mod address;
mod config;
mod subscribers;
pub(crate) mod wire;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portunus_core::events::{
    ConfiguredEventHandler, EventHandler, EventHandlerInfo, Handling, Subscription, TweakError,
};
use portunus_core::{Fields, JsonForm, Object, PluginCounter};
use tokio::time::{sleep, timeout};

use crate::backoff::Backoff;
use crate::batch::{Batch, Batches, Layout};
use crate::stream::Stream;
use crate::tally::Tally;
use address::{Address, Listener};
use config::Mode;
pub use config::NanomsgConfig;
use subscribers::Subscribers;
use wire::WireError;

const PACKAGE: &str = "janus.eventhandler.nanomsgevh";

/// The timeout of a connection attempt.
const LIMIT: Duration = Duration::from_secs(10);

/// The waits between attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Publishes events.
pub struct Nanomsg {
    address: Address,
    /// The socket for subscribers, if they connect, until the task takes it.
    listener: Mutex<Option<Listener>>,
    json: JsonForm,
    pause: Duration,
    grouping: AtomicBool,
    tally: Tally,
}

impl std::fmt::Debug for Nanomsg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nanomsg").finish_non_exhaustive()
    }
}

/// Why this handler does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NanomsgError {
    /// The address is invalid.
    #[error("events.nanomsg.address: {0}")]
    Address(String),
    /// The socket cannot be bound.
    #[error("events.nanomsg.address: cannot listen at {address}: {error}")]
    Bind {
        /// The address.
        address: String,
        /// The error of the system.
        error: io::Error,
    },
}

impl ConfiguredEventHandler for Nanomsg {
    const NAME: &'static str = "nanomsg";
    type Config = NanomsgConfig;
    type Error = NanomsgError;

    fn missing(config: &NanomsgConfig) -> Option<&'static str> {
        config.address.is_empty().then_some("address")
    }

    async fn from_config(config: NanomsgConfig) -> Result<Self, NanomsgError> {
        let address: Address = config.address.parse().map_err(NanomsgError::Address)?;
        let listener = match config.mode {
            Mode::Connect => None,
            Mode::Bind => {
                let bound = address.bind().await;
                let listener = bound.map_err(|error| NanomsgError::Bind {
                    address: config.address,
                    error,
                });
                Some(listener?)
            }
        };
        Ok(Nanomsg {
            address,
            listener: Mutex::new(listener),
            json: config.json,
            pause: Duration::from_millis(config.batch_pause_ms),
            grouping: AtomicBool::new(config.grouping),
            tally: Tally::default(),
        })
    }
}

impl EventHandler for Nanomsg {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: PACKAGE,
            name: "nanomsg",
            description: "Publishes events to subscribers that use nanomsg.",
            version: 1,
            version_string: env!("CARGO_PKG_VERSION"),
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move {
            let listener = {
                let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
                listener.take()
            };
            match listener {
                Some(listener) => self.publish(listener, &events).await,
                None => self.connect(&events).await,
            }
        })
    }

    fn tweak(&self, members: Fields<'_>) -> Result<(), TweakError> {
        if let Some(grouping) = members.boolean("grouping")? {
            self.grouping.store(grouping, Ordering::Relaxed);
        }
        Ok(())
    }

    fn query(&self, name: &str, _: Fields<'_>) -> Result<Object, TweakError> {
        self.tally.query(name)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.tally.counters()
    }
}

impl Nanomsg {
    fn layout(&self) -> Layout {
        Layout::grouping(self.grouping.load(Ordering::Relaxed))
    }

    /// Sends events to all subscribers. Without any, they are dropped and not counted as lost.
    async fn publish(&self, listener: Listener, events: &Subscription) {
        let mut subscribers = Subscribers::new(self.address.framing());
        let mut batches = Batches::new(self.pause);
        loop {
            tokio::select! {
                batch = batches.next(events, self.layout(), self.json) => match batch {
                    Some(batch) => subscribers.send(&batch, &self.tally),
                    None => return subscribers.end().await,
                },
                accepted = listener.accept() => match accepted {
                    Ok(stream) => subscribers.add(stream),
                    Err(error) => {
                        let advice = "a subscriber could not connect: see the limit of open files";
                        self.tally.failed(PACKAGE, &error, advice);
                        sleep(BACKOFF.0).await;
                    }
                },
            }
        }
    }

    /// Connects to the subscriber, and reconnects until the bus ends.
    async fn connect(&self, events: &Subscription) {
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
        let mut batches = Batches::new(self.pause);
        // The batch that the last connection did not send.
        let mut unsent: Option<Batch> = None;
        loop {
            let connecting = timeout(LIMIT, self.address.connect());
            let connected = tokio::select! {
                connected = connecting => connected,
                () = events.over() => return,
            };
            let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let served = match connected {
                Ok(mut stream) => {
                    let to = &mut *stream;
                    self.send_all(to, events, &mut batches, &mut unsent, &mut backoff)
                        .await
                }
                Err(error) => Err(error.into()),
            };
            let Err(error) = served else {
                return;
            };
            let error = format!("the subscriber at events.nanomsg.address: {error}");
            let advice = "see that it runs and is bound there; events wait, and the oldest are lost if that lasts";
            self.tally.failed(PACKAGE, &error, advice);
            tokio::select! {
                () = sleep(backoff.wait()) => {}
                () = events.over() => return,
            }
        }
    }

    /// Sends events until there are no more, or the connection fails.
    async fn send_all(
        &self,
        stream: &mut dyn Stream,
        events: &Subscription,
        batches: &mut Batches,
        unsent: &mut Option<Batch>,
        backoff: &mut Backoff,
    ) -> Result<(), WireError> {
        wire::greet(stream).await?;
        loop {
            if let Some(batch) = unsent {
                wire::send(stream, self.address.framing(), &batch.body).await?;
                self.tally.sent(batch.events);
                *unsent = None;
                // A peer that accepts connections and closes them at once is retried with pauses.
                backoff.reset();
            }
            tokio::select! {
                batch = batches.next(events, self.layout(), self.json) => match batch {
                    Some(batch) => *unsent = Some(batch),
                    None => return Ok(()),
                },
                error = wire::gone(stream) => return Err(error),
            }
        }
    }
}
