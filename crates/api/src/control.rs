//! What administrators ask of the transports (`query_transport`).

use std::sync::Arc;

use portunus_core::events::TweakError;
use portunus_core::{Fields, Gateway, Object, TransportControl};
use serde_json::{Map, Value};

use crate::Counters;
use crate::counters::Gauge;
use crate::start::{HTTP, UNIX, WEBSOCKET};

/// Lets administrators ask the transports, whose ports have so many connections.
pub(crate) fn register(
    gateway: &Gateway,
    counters: &Arc<Counters>,
    open: Vec<(&'static str, Gauge)>,
) {
    let http = Http {
        open,
        counters: counters.clone(),
    };
    gateway.add_transport(HTTP, Arc::new(http));
    for (package, open) in [
        (WEBSOCKET, &counters.open_websockets),
        (UNIX, &counters.open_unix),
    ] {
        gateway.add_transport(package, Arc::new(Pushed(open.clone())));
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
        let connections = ["http", "https", "admin_http", "admin_https"]
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
