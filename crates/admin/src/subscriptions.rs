//! Events of the server for an operator's connection.

use std::time::Duration;

use portunus_core::events::{EventFilter, EventMask, Subscription};
use portunus_core::{ApiError, Client, ClientAddress, Fields, Gateway, Object};
use serde_json::json;
use tokio::time::sleep;

/// The most events that wait for a slow connection. The oldest are dropped.
const WAITING: usize = 1_000;
/// Messages that may wait in the connection's own queue before events wait.
const AHEAD: usize = 64;
/// How long events wait before the queue is checked again.
const PAUSE: Duration = Duration::from_millis(20);

/// A subscription that starts once the reply is in the client's queue.
pub(super) struct Subscribed {
    pub(super) reply: Object,
    pub(super) subscription: Subscription,
}

/// Subscribes a connection to events. A second subscription replaces the first.
pub(super) fn subscribe(
    gateway: &Gateway,
    client: &Client,
    fields: Fields<'_>,
) -> Result<Subscribed, ApiError> {
    // All clients of a broker are one client, so all would receive the events of a subscription.
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
    Ok(Subscribed {
        reply: Object::new().with("events", kinds.to_string()),
        subscription: gateway.events().subscribe(&name, filter, WAITING),
    })
}

pub(super) fn unsubscribe(client: &Client) -> Result<Object, ApiError> {
    client.set_companion(None);
    Ok(Object::new())
}

/// Starts to send the events of a subscription to `client`. A subscription that it had before ends.
pub(super) fn start(client: &Client, subscription: Subscription) {
    let task = tokio::spawn(send(subscription, client.without_request()));
    client.set_companion(Some(task.abort_handle()));
}

async fn send(subscription: Subscription, client: Client) {
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
