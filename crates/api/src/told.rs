//! What whoever watches the server is told of its transports.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use portunus_core::events::EventBus;
use portunus_core::{Client, Object};
use serde_json::{Value, json};

use crate::ApiConfig;
use crate::pace::Api;
use crate::packages::{HTTP, UNIX, WEBSOCKET};

/// Turns off the events of those transports that are not to tell any.
pub(crate) fn mute(events: &EventBus, config: &ApiConfig) {
    events.mute(HTTP, !config.http.events);
    events.mute(WEBSOCKET, !config.websocket.events);
    events.mute(UNIX, !config.unix.events);
}

/// A request came by HTTP, in a connection from `address`.
pub(crate) fn request(events: &EventBus, client: &Client, api: Api, address: SocketAddr) {
    tell(events, client, || {
        json!({
            "event": "request",
            "admin_api": api == Api::Admin,
            "ip": address.ip().to_string(),
            "port": address.port(),
        })
    });
}

/// A WebSocket was opened from `address`.
pub(crate) fn websocket_connected(
    events: &EventBus,
    client: &Client,
    api: Api,
    address: SocketAddr,
) {
    tell(
        events,
        client,
        || json!({ "event": "connected", "admin_api": api == Api::Admin, "ip": address.ip().to_string() }),
    );
}

/// A client of the Unix socket has come. `fd`: the number of its socket, or of the server's if that is the only one, which
/// `is_datagram` says.
pub(crate) fn unix_connected(
    events: &EventBus,
    client: &Client,
    api: Api,
    fd: RawFd,
    is_datagram: bool,
) {
    tell(events, client, || {
        Object::new()
            .with("event", "connected")
            .with("admin_api", api == Api::Admin)
            .with("fd", fd)
            .with_some("type", is_datagram.then_some("SOCK_DGRAM"))
            .into()
    });
}

/// A client that had come is gone.
pub(crate) fn disconnected(events: &EventBus, client: &Client) {
    tell(events, client, || json!({ "event": "disconnected" }));
}

fn tell(events: &EventBus, client: &Client, data: impl FnOnce() -> Value) {
    events.transport(client.transport(), client.told_id(), data);
}
