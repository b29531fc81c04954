//! Events of the server itself (type 256), of transports (128), and of operators (4).

use serde_json::{Value, json};

use super::{EventAddress, EventBus, EventKind};

/// The subtype of the server's state.
const STATUS: u8 = 1;
/// The subtype of the server's end.
const SHUTDOWN: u8 = 2;

impl EventBus {
    /// Publishes the start of the server. `info` returns its description.
    pub(crate) fn started(&self, info: impl FnOnce() -> Value) {
        let body = || json!({ "status": "started", "info": info() });
        self.publish(EventKind::Core, Some(STATUS), EventAddress::default, body);
    }

    /// Publishes the present numbers of sessions, handles and PeerConnections.
    pub(crate) fn update(&self, figures: ServerFigures) {
        let body = || {
            let info = json!({
                "sessions": figures.sessions,
                "handles": figures.handles,
                "peerconnections": figures.peer_connections,
                "stats-period": figures.period,
            });
            json!({ "status": "update", "info": info })
        };
        self.publish(EventKind::Core, Some(STATUS), EventAddress::default, body);
    }

    /// Publishes the end of the server, by this signal.
    pub(crate) fn shutdown(&self, signal: i32) {
        let body = || json!({ "status": "shutdown", "signum": signal });
        self.publish(EventKind::Core, Some(SHUTDOWN), EventAddress::default, body);
    }

    /// Publishes an event of a connection of the transport `package`. `id` is that of its
    /// [`crate::Client`]. `data` is called only if anyone subscribed.
    pub fn transport(&self, package: &'static str, id: u64, data: impl FnOnce() -> Value) {
        if self.is_muted(package) {
            return;
        }
        let body = || json!({ "transport": package, "id": id.to_string(), "data": data() });
        self.publish(EventKind::Transports, None, EventAddress::default, body);
    }

    /// Publishes an operator's event with this `schema`. `data` is called only if anyone
    /// subscribed.
    pub fn external(&self, schema: &str, data: impl FnOnce() -> Value) {
        let body = || json!({ "schema": schema, "data": data() });
        self.publish(EventKind::External, None, EventAddress::default, body);
    }
}

/// The present numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerFigures {
    pub(crate) sessions: u64,
    pub(crate) handles: u64,
    pub(crate) peer_connections: u64,
    /// Seconds until the next event.
    pub(crate) period: u32,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::events::EventFilter;

    #[test]
    fn what_the_server_and_its_administrator_tell_concerns_no_session() {
        let bus = EventBus::new("here", false);
        let events = bus.subscribe("test", EventFilter::ALL, 10);
        bus.started(|| json!({ "janus": "server_info" }));
        bus.update(ServerFigures {
            sessions: 1,
            handles: 2,
            peer_connections: 3,
            period: 4,
        });
        bus.external("billing", || json!({ "cents": 5 }));
        bus.shutdown(15);
        let next = || {
            let mut told = events.to_json(&events.try_recv().unwrap());
            assert!(told.as_object_mut().unwrap().remove("timestamp").is_some());
            told
        };
        let info = json!({ "janus": "server_info" });
        let started = json!({ "status": "started", "info": info });
        assert_eq!(
            next(),
            json!({ "emitter": "here", "type": 256, "subtype": 1, "event": started })
        );
        let info = json!({ "sessions": 1, "handles": 2, "peerconnections": 3, "stats-period": 4 });
        let update = json!({ "status": "update", "info": info });
        assert_eq!(
            next(),
            json!({ "emitter": "here", "type": 256, "subtype": 1, "event": update })
        );
        let external = json!({ "schema": "billing", "data": { "cents": 5 } });
        assert_eq!(
            next(),
            json!({ "emitter": "here", "type": 4, "event": external })
        );
        let shutdown = json!({ "status": "shutdown", "signum": 15 });
        assert_eq!(
            next(),
            json!({ "emitter": "here", "type": 256, "subtype": 2, "event": shutdown })
        );
    }

    #[test]
    fn a_muted_transport_tells_nothing() {
        let bus = EventBus::default();
        let events = bus.subscribe("test", EventFilter::ALL, 10);
        bus.mute("loud", true);
        bus.transport("loud", 1, || json!({ "event": "connected" }));
        bus.transport("heard", 2, || json!({ "event": "connected" }));
        let told = events.try_recv().unwrap();
        let expected = json!({ "transport": "heard", "id": "2", "data": { "event": "connected" } });
        assert_eq!(told.body(), expected);
        assert!(events.try_recv().is_none());
    }
}
