//! The connection to a message broker, for the handlers that use one.

use std::sync::{Arc, Mutex, PoisonError};

use portunus_brokers::{BrokerCounters, Connection, Publisher};
use portunus_core::events::TweakError;
use portunus_core::{Object, PluginCounter};

/// A connection, until the handler runs, and its counters.
#[derive(Debug)]
pub(crate) struct Line<O> {
    publisher: Mutex<Option<Publisher<O>>>,
    counters: Arc<BrokerCounters>,
}

impl<O: Send + 'static> Line<O> {
    pub(crate) fn new(connection: Connection<O>) -> Self {
        // The connection logs its own state.
        let (publisher, _) = connection.split();
        Line {
            counters: publisher.counters().clone(),
            publisher: Mutex::new(Some(publisher)),
        }
    }

    /// Returns the publisher, at the first call only.
    pub(crate) fn take(&self) -> Option<Publisher<O>> {
        let publisher = self.publisher.lock();
        publisher.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the counters for metrics.
    pub(crate) fn counters(&self) -> Vec<PluginCounter> {
        let counter = |name, help, value| PluginCounter { name, help, value };
        let counters = &self.counters;
        vec![
            counter(
                "connects",
                "How often the broker was reached.",
                counters.connects(),
            ),
            counter(
                "messages",
                "Messages that the broker has got, or with NATS that were handed over.",
                counters.published(),
            ),
            counter(
                "lost_messages",
                "Messages that the broker has refused, or that were left at the end.",
                counters.lost(),
            ),
        ]
    }

    /// Answers an administrator's `status`.
    pub(crate) fn query(&self, name: &str) -> Result<Object, TweakError> {
        if name != "status" {
            return Err(TweakError::UnknownRequest);
        }
        let add = |object: Object, counter: PluginCounter| object.with(counter.name, counter.value);
        let counters = self.counters().into_iter();
        Ok(counters.fold(Object::new().with("result", 200), add))
    }
}
