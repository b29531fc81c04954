//! Events of the server for an administrator's connection.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::events::{EventFilter, EventMask, Subscription};
use crate::{ApiError, Client, ClientAddress, Fields, Gateway, Object};

/// Events that wait for a connection that does not read them; the oldest go first.
const WAITING: usize = 1_000;
/// Messages that may wait in the connection's own queue before events wait.
const AHEAD: usize = 64;
/// How long events wait then before it is looked at again.
const PAUSE: Duration = Duration::from_millis(20);

/// What a connection watches.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Nothing,
    /// The reply that says so is not out yet.
    Wanted(Subscription),
    Running(AbortHandle),
}

impl Watch {
    fn set(&self, state: State) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Running(task) = std::mem::replace(&mut *now, state) {
            task.abort();
        }
    }

    /// Watches no more.
    pub(crate) fn end(&self) {
        self.set(State::Nothing);
    }

    fn take_wanted(&self) -> Option<Subscription> {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *now) {
            State::Wanted(subscription) => Some(subscription),
            other => {
                *now = other;
                None
            }
        }
    }
}

/// A second subscription takes the place of the first.
pub(super) fn subscribe(
    gateway: &Gateway,
    client: &Client,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    // All who ask by a broker are one client: what one of them subscribes to would come to all.
    let is_shared = matches!(client.requester().address(), ClientAddress::Broker(_));
    if client.is_polled() || is_shared {
        let text = "Events are pushed to WebSocket and Unix socket connections only";
        return Err(ApiError::Transport(text.to_owned()));
    }
    let kinds = match fields.string("events")? {
        Some(kinds) => kinds.parse().map_err(|wrong| {
            ApiError::InvalidElement(format!("Invalid element type (events: {wrong})"))
        })?,
        None => EventMask::ALL,
    };
    let plugins = fields.member::<Vec<&str>>("plugins")?.unwrap_or_default();
    let filter = EventFilter {
        kinds,
        plugins: plugins.into_iter().map(str::to_owned).collect(),
    };
    let name = format!("admin connection {}", client.id());
    let subscription = gateway
        .context()
        .facts
        .events
        .subscribe(&name, filter, WAITING);
    client.watch().set(State::Wanted(subscription));
    Ok(Object::new().with("events", kinds.to_string()))
}

pub(super) fn unsubscribe(client: &Client) -> Result<Object, ApiError> {
    client.watch().end();
    Ok(Object::new())
}

/// Begins to send what was subscribed to, once the reply is in the client's queue.
pub(super) fn begin(client: &Client) {
    let Some(subscription) = client.watch().take_wanted() else {
        return;
    };
    let task = tokio::spawn(tell(subscription, client.without_request()));
    client.watch().set(State::Running(task.abort_handle()));
}

async fn tell(subscription: Subscription, client: Client) {
    while let Some(event) = subscription.recv().await {
        while client.waiting() > AHEAD {
            sleep(PAUSE).await;
        }
        let event = subscription.to_json(&event);
        if !client.push(json!({ "janus": "event", "event": event })) {
            return;
        }
    }
}
