//! WHIP and WHEP.

use portunus_core::{Broadcast, Object, Refusal, Stream};
use serde_json::{Value, json};

use crate::plugin::Streaming;
use crate::spec::presentable;

impl Broadcast for Streaming {
    fn name(&self) -> &'static str {
        "streaming"
    }

    /// Returns the id with this name. An id takes precedence over a name, and this node's over
    /// another one's.
    fn id_of(&self, name: &str) -> Option<String> {
        let mountpoints = &self.shared.mountpoints;
        let id = mountpoints.ids().parse(name);
        if let Some(id) = id.filter(|id| mountpoints.get(id).is_ok()) {
            return Some(id.to_string());
        }
        let name = presentable(name);
        let mut named = mountpoints.all();
        named.retain(|mountpoint| mountpoint.name == name);
        if named.iter().any(|mountpoint| mountpoint.home().is_none()) {
            named.retain(|mountpoint| mountpoint.home().is_none());
        }
        match named.as_slice() {
            [only] => Some(only.id.to_string()),
            _ => None,
        }
    }

    fn publish(&self, stream: &Stream<'_>) -> Option<Value> {
        let request = self.about(stream, "publish")?;
        // The bearer token may be what opens the API.
        let token = stream.parameter("token").or(stream.token);
        Some(request.with_some("token", token).into())
    }

    fn watch(&self, stream: &Stream<'_>) -> Option<Value> {
        // There is no way to offer again.
        let request = self.about(stream, "watch")?.with("renegotiate", false);
        let pin = stream.parameter("pin").or(stream.token);
        Some(request.with_some("pin", pin).into())
    }

    fn start(&self) -> Value {
        json!({ "request": "start" })
    }

    fn refusal(&self, error_code: u64) -> Refusal {
        match error_code {
            454 => Refusal::Parameter,
            455 => Refusal::NotFound,
            // The missing member is a token or a pin.
            453 | 457 => Refusal::Unauthorized,
            452 => Refusal::Unusable,
            460 => Refusal::Conflict,
            461 => Refusal::Malformed,
            _ => Refusal::Internal,
        }
    }
}

impl Streaming {
    /// Returns a request about a mountpoint, which has no parts.
    fn about(&self, stream: &Stream<'_>, request: &str) -> Option<Object> {
        if stream.part.is_some() {
            return None;
        }
        let id = self.shared.mountpoints.ids().of_path(stream.id);
        Some(Object::new().with("request", request).with("id", id))
    }
}
