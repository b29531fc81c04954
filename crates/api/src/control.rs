//! What administrators ask of the transports (`query_transport`).

use std::sync::Arc;

use portunus_core::events::TweakError;
use portunus_core::{Fields, Gateway, Object, TransportControl};
use serde_json::{Map, Value};

use crate::Counters;
use crate::counters::Gauge;
use crate::packages::{HTTP, UNIX, WEBSOCKET};

/// The kinds of ports on which an API is served by HTTP.
const HTTP_PORTS: [&str; 4] = ["http", "https", "admin_http", "admin_https"];

/// The kind of the port with nothing but metrics.
const METRICS_PORT: &str = "metrics";

/// Lets administrators ask the transports that serve an API, be it the Admin API alone: whose ports have so many
/// connections. A WebSocket can be opened at the ports of HTTP too.
pub(crate) fn register(
    gateway: &Gateway,
    counters: &Arc<Counters>,
    open: Vec<(&'static str, Gauge)>,
    has_unix: bool,
) {
    let has_http = open.iter().any(|(kind, _)| HTTP_PORTS.contains(kind));
    let has_websocket = open.iter().any(|(kind, _)| *kind != METRICS_PORT);
    if has_http {
        let counters = counters.clone();
        gateway.add_transport(HTTP, Arc::new(Http { open, counters }));
    }
    for (package, is_on, open) in [
        (WEBSOCKET, has_websocket, &counters.open_websockets),
        (UNIX, has_unix, &counters.open_unix),
    ] {
        if is_on {
            gateway.add_transport(package, Arc::new(Pushed(open.clone())));
        }
    }
}

struct Http {
    open: Vec<(&'static str, Gauge)>,
    counters: Arc<Counters>,
}

impl TransportControl for Http {
    fn query(&self, request: &Map<String, Value>) -> Result<Value, TweakError> {
        wants_connections(request)?;
        let of = |wanted: &str| -> u64 {
            let open = self.open.iter().filter(|(kind, _)| *kind == wanted);
            open.map(|(_, open)| open.value()).sum()
        };
        let connections = HTTP_PORTS
            .into_iter()
            .fold(Object::new(), |object, kind| object.with(kind, of(kind)));
        let answer = Object::new()
            .with("connections", Value::from(connections))
            .with("messages", self.counters.http_requests.value());
        Ok(answer.into())
    }
}

/// A transport whose clients have connections of their own.
struct Pushed(Gauge);

impl TransportControl for Pushed {
    fn query(&self, request: &Map<String, Value>) -> Result<Value, TweakError> {
        wants_connections(request)?;
        Ok(Object::new().with("connections", self.0.value()).into())
    }
}

fn wants_connections(request: &Map<String, Value>) -> Result<(), TweakError> {
    match Fields(request).string("request") {
        Ok(Some("connections")) => Ok(()),
        _ => Err(TweakError::UnknownRequest),
    }
}
