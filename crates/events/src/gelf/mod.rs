//! Events as messages of the Graylog Extended Log Format, over UDP or TCP.

mod config;
mod link;
mod message;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portunus_core::events::{
    ConfiguredEventHandler, EventHandler, EventHandlerInfo, Handling, ServerEvent, Subscription,
    TweakError,
};
use portunus_core::{Fields, Object, PluginCounter};

use crate::backoff::Backoff;
use crate::tally::Tally;
use crate::tweak;
pub use config::GelfConfig;
use config::Protocol;
use link::{Link, LinkError};

const PACKAGE: &str = "janus.eventhandler.gelfevh";

/// The waits between attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Sends each event as a message.
#[derive(Debug)]
pub struct Gelf {
    /// Each connection and message has what is in effect then.
    settings: Mutex<GelfConfig>,
    tally: Tally,
}

/// Why this handler does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GelfError {
    /// No receiver is configured.
    #[error("events.gelf.backend is missing")]
    NoBackend,
}

impl ConfiguredEventHandler for Gelf {
    const NAME: &'static str = "gelf";
    type Config = GelfConfig;
    type Error = GelfError;

    fn missing(config: &GelfConfig) -> Option<&'static str> {
        config.backend.is_empty().then_some("backend")
    }

    async fn from_config(config: GelfConfig) -> Result<Self, GelfError> {
        if config.backend.is_empty() {
            return Err(GelfError::NoBackend);
        }
        Ok(Gelf {
            settings: Mutex::new(config),
            tally: Tally::default(),
        })
    }
}

impl EventHandler for Gelf {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: PACKAGE,
            name: "GELF",
            description: "Sends events to Graylog and others that read its format.",
            version: 1,
            version_string: env!("CARGO_PKG_VERSION"),
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move { self.pass_on(&events).await })
    }

    fn tweak(&self, members: Fields<'_>) -> Result<(), TweakError> {
        let mut new = self.settings();
        let (backend, port) = (members.string("backend")?, members.string("port")?);
        match (backend, port) {
            (Some(backend), Some(port)) => {
                let wrong = |name: &str| TweakError::Invalid(format!("Invalid value ({name})"));
                let named = Some(backend).filter(|name| !name.is_empty());
                new.backend = named.ok_or_else(|| wrong("backend"))?.to_owned();
                let number = port.parse().ok().filter(|port| *port > 0);
                new.port = number.ok_or_else(|| wrong("port"))?;
            }
            (Some(_), None) => return Err(TweakError::Missing("port".to_owned())),
            (None, Some(_)) => return Err(TweakError::Missing("backend".to_owned())),
            (None, None) => {}
        }
        if let Some(protocol) = members.string("protocol")? {
            new.protocol = match protocol {
                "udp" => Protocol::Udp,
                "tcp" => Protocol::Tcp,
                _ => {
                    let text = "Invalid value (protocol should be udp or tcp)";
                    return Err(TweakError::Invalid(text.to_owned()));
                }
            };
        }
        let length = tweak::within(members, "max_message_len", config::LENGTHS)?;
        tweak::set(&mut new.max_message_len, length);
        tweak::set(&mut new.compress, members.boolean("compress")?);
        let compression = tweak::within(members, "compression", 1..=9)?;
        tweak::set(&mut new.compression, compression.map(|level| level as u32));
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

impl Gelf {
    fn settings(&self) -> GelfConfig {
        let settings = self.settings.lock();
        settings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the next event, and meanwhile for the end of the connection.
    async fn next(
        &self,
        events: &Subscription,
        link: &mut Option<Link>,
    ) -> Option<Arc<ServerEvent>> {
        if let Some(open) = link {
            tokio::select! {
                event = events.recv() => return event,
                error = open.gone() => {
                    self.tally.failed(PACKAGE, &error, error.advice());
                    *link = None;
                }
            }
        }
        events.recv().await
    }

    /// Sends events until there are no more. Over TCP, an event that failed is sent over the next
    /// connection.
    async fn pass_on(&self, events: &Subscription) {
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
        let mut link: Option<Link> = None;
        while let Some(event) = self.next(events, &mut link).await {
            let message = message::write(&event, events);
            loop {
                let settings = self.settings();
                link = link.filter(|link| link.leads_to(&settings));
                let connected = match link.take() {
                    Some(link) => Ok(link),
                    None => tokio::select! {
                        connected = Link::connect(&settings) => connected,
                        () = events.over() => return,
                    },
                };
                let sent = match connected {
                    Ok(mut open) => {
                        let sent = open.send(&message, &settings).await;
                        let stays = sent.as_ref().map_or_else(LinkError::loses_event, |()| true);
                        link = Some(open).filter(|_| stays);
                        sent
                    }
                    Err(error) => Err(error),
                };
                let Err(error) = sent else {
                    self.tally.sent(1);
                    backoff.reset();
                    break;
                };
                if error.loses_event() {
                    self.tally.lost(1);
                }
                self.tally.failed(PACKAGE, &error, error.advice());
                if error.loses_event() {
                    break;
                }
                tokio::select! {
                    () = tokio::time::sleep(backoff.wait()) => {}
                    () = events.over() => return,
                }
            }
        }
    }
}
