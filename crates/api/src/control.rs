//! Operators' requests to the transports (`query_transport`).

use std::sync::Arc;

use portunus_admin::{Administration, TransportControl};
use portunus_core::events::TweakError;
use portunus_core::{Fields, Object};
use serde_json::{Map, Value};

use crate::Counters;
use crate::counters::Gauge;
use crate::packages::{HTTP, UNIX, WEBSOCKET};

/// The kinds of ports that serve an API by HTTP.
const HTTP_PORTS: [&str; 4] = ["http", "https", "admin_http", "admin_https"];

/// The kind of the port for metrics only.
const METRICS_PORT: &str = "metrics";

/// Registers the transports that serve an API, even if it is only the Admin API, so that operators
/// can ask how many connections they have. WebSockets can be opened at ports of HTTP, too.
pub(crate) fn register(
    administration: &Administration,
    counters: &Arc<Counters>,
    open: Vec<(&'static str, Gauge)>,
    has_unix: bool,
) {
    let has_http = open.iter().any(|(kind, _)| HTTP_PORTS.contains(kind));
    let has_websocket = open.iter().any(|(kind, _)| *kind != METRICS_PORT);
    if has_http {
        let counters = counters.clone();
        administration.add_transport(HTTP, Arc::new(Http { open, counters }));
    }
    for (package, is_on, open) in [
        (WEBSOCKET, has_websocket, &counters.open_websockets),
        (UNIX, has_unix, &counters.open_unix),
    ] {
        if is_on {
            administration.add_transport(package, Arc::new(Pushed(open.clone())));
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

/// A transport with a connection for each client.
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
