//! WHIP and WHEP: `/whip/videoroom/ROOM/PARTICIPANT`, `/whep/videoroom/ROOM/PARTICIPANT`, or the
//! room alone. Without a participant, the publisher gets a random id, and the viewer follows the
//! speakers.

use portunus_core::{Broadcast, Object, Refusal, Stream};
use serde_json::{Value, json};

use crate::plugin::VideoRoom;

impl Broadcast for VideoRoom {
    fn name(&self) -> &'static str {
        "videoroom"
    }

    fn publish(&self, stream: &Stream<'_>) -> Option<Value> {
        let request = self
            .about(stream, "joinandconfigure")
            .with("ptype", "publisher")
            .with_some("id", stream.part.map(|id| self.id(id)))
            .with_some("display", stream.parameter("display"))
            .with_some("bitrate", number(stream, "bitrate"));
        Some(request.into())
    }

    fn watch(&self, stream: &Stream<'_>) -> Option<Value> {
        let request = self
            .about(stream, "watch")
            .with_some("feed", stream.part.map(|id| self.id(id)))
            .with_some("private_id", number(stream, "private_id"))
            .with_some("last_n", number(stream, "last_n"))
            .with("e2ee", stream.parameter("e2ee") == Some("true"));
        Some(request.into())
    }

    fn start(&self) -> Value {
        json!({ "request": "start" })
    }

    fn refusal(&self, error_code: u64) -> Refusal {
        match error_code {
            426 => Refusal::NotFound,
            430 => Refusal::Parameter,
            // The missing member is a pin or a token.
            429 | 433 => Refusal::Unauthorized,
            // The publisher is missing, the room is full, the id is taken, or the media is
            // encrypted end to end.
            428 | 432 | 436 | 438 => Refusal::Conflict,
            431 => Refusal::Malformed,
            437 => Refusal::Unusable,
            // The cluster has no home for the room now, or the former PeerConnection is still being
            // closed.
            499 => Refusal::Unavailable,
            _ => Refusal::Internal,
        }
    }
}

impl VideoRoom {
    /// Returns a request about a room. The bearer token may be the room's pin, a token of its list,
    /// a signed token or its secret. A request for a room with several of them has the others in
    /// its query.
    fn about(&self, stream: &Stream<'_>, request: &str) -> Object {
        let shown = |name| stream.parameter(name).or(stream.token);
        Object::new()
            .with("request", request)
            .with("room", self.id(stream.id))
            .with_some("pin", shown("pin"))
            .with_some("token", shown("token"))
            .with_some("secret", shown("secret"))
    }

    fn id(&self, id: &str) -> Value {
        self.shared.rooms.ids().of_path(id)
    }
}

/// Returns a number of the query. The plugin refuses a value that is not a number.
fn number(stream: &Stream<'_>, name: &str) -> Option<Value> {
    let text = stream.parameter(name)?;
    Some(
        text.parse::<u64>()
            .map_or_else(|_| text.into(), Value::from),
    )
}
