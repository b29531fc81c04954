//! Events of the transports for subscribers of the server's events.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use portunus_core::events::EventBus;
use portunus_core::{Client, Object};
use serde_json::{Value, json};

use crate::ApiConfig;
use crate::pace::Api;
use crate::packages::{HTTP, UNIX, WEBSOCKET};

/// Disables the events of transports whose configuration says so.
pub(crate) fn mute(events: &EventBus, config: &ApiConfig) {
    events.mute(HTTP, !config.http.events);
    events.mute(WEBSOCKET, !config.websocket.events);
    events.mute(UNIX, !config.unix.events);
}

/// A request arrived by HTTP, in a connection from `address`.
pub(crate) fn request(events: &EventBus, client: &Client, api: Api, address: SocketAddr) {
    publish(events, client, || {
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
    publish(
        events,
        client,
        || json!({ "event": "connected", "admin_api": api == Api::Admin, "ip": address.ip().to_string() }),
    );
}

/// A client of the Unix socket arrived. `fd` is the number of its socket, or of the server's single
/// socket if `is_datagram`.
pub(crate) fn unix_connected(
    events: &EventBus,
    client: &Client,
    api: Api,
    fd: RawFd,
    is_datagram: bool,
) {
    publish(events, client, || {
        Object::new()
            .with("event", "connected")
            .with("admin_api", api == Api::Admin)
            .with("fd", fd)
            .with_some("type", is_datagram.then_some("SOCK_DGRAM"))
            .into()
    });
}

/// A client left.
pub(crate) fn disconnected(events: &EventBus, client: &Client) {
    publish(events, client, || json!({ "event": "disconnected" }));
}

fn publish(events: &EventBus, client: &Client, data: impl FnOnce() -> Value) {
    events.transport(client.transport(), client.event_id(), data);
}
