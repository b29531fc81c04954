//! WHIP and WHEP: `/whip/audiobridge/ROOM/PARTICIPANT` joins a room and talks in it, with a random
//! id if the path names none. `/whep/audiobridge/ROOM` listens to the mix.

use portunus_core::{Broadcast, Object, Refusal, Stream};
use serde_json::{Value, json};

use crate::plugin::AudioBridge;

impl Broadcast for AudioBridge {
    fn name(&self) -> &'static str {
        "audiobridge"
    }

    fn publish(&self, stream: &Stream<'_>) -> Option<Value> {
        let request = self
            .about(stream, "join")
            .with_some("id", stream.part.map(|id| self.id(id)))
            .with_some("display", stream.parameter("display"))
            // An empty name means no group. A missing group would look like a missing pin or token.
            .with("group", stream.parameter("group").unwrap_or_default());
        Some(request.into())
    }

    fn watch(&self, stream: &Stream<'_>) -> Option<Value> {
        match stream.part {
            // A watcher hears the whole room, never one participant.
            Some(_) => None,
            None => Some(self.about(stream, "listen").into()),
        }
    }

    fn start(&self) -> Value {
        json!({ "request": "configure" })
    }

    fn refusal(&self, error_code: u64) -> Refusal {
        match error_code {
            485 => Refusal::NotFound,
            484 | 494 => Refusal::Parameter,
            // These codes mean a missing pin or token.
            483 | 489 => Refusal::Unauthorized,
            490 | 491 => Refusal::Conflict,
            493 => Refusal::Unusable,
            _ => Refusal::Internal,
        }
    }
}

impl AudioBridge {
    /// Returns a request about a room. The bearer token may be the pin, a token of the list or a
    /// signed token. A room that requires several of them takes the others from the query.
    fn about(&self, stream: &Stream<'_>, request: &str) -> Object {
        let shown = |name| stream.parameter(name).or(stream.token);
        Object::new()
            .with("request", request)
            .with("room", self.id(stream.id))
            .with_some("pin", shown("pin"))
            .with_some("token", shown("token"))
            .with_some("secret", stream.parameter("secret"))
    }

    fn id(&self, id: &str) -> Value {
        self.shared.rooms.ids().of_path(id)
    }
}
