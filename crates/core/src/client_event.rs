//! The asynchronous events of the Janus API in JSON.

use portunus_media::{Event, IceCause};
use serde_json::{Value, json};

use crate::Object;

/// Returns the event `webrtcup`, `media` or `slowlink` of a handle, without its address. Returns
/// `None` for events that clients do not get.
pub(crate) fn of_peer(event: &Event, no_media_ms: u32) -> Option<Value> {
    match event {
        Event::Connected { .. } => Some(json!({ "janus": "webrtcup" })),
        Event::Media {
            mid,
            audio,
            receiving,
            substream,
        } => {
            let seconds = no_media_ms / 1_000;
            let event = Object::new()
                .with("janus", "media")
                .with("mid", mid.as_str())
                .with("type", medium(*audio))
                .with_some("substream", *substream)
                .with("receiving", *receiving)
                .with_some("seconds", (!receiving && seconds > 1).then_some(seconds));
            Some(event.into())
        }
        Event::SlowLink {
            mid,
            audio,
            uplink,
            lost,
        } => Some(json!({
            "janus": "slowlink",
            "mid": mid.as_str(),
            "media": medium(*audio),
            // Clients read it from the server's side: the server's uplink is what the client
            // receives.
            "uplink": !uplink,
            "lost": lost,
        })),
        Event::Ice(_)
        | Event::SelectedPair { .. }
        | Event::Dtls { .. }
        | Event::Layer { .. }
        | Event::Paused { .. }
        | Event::Talking { .. }
        | Event::Speech { .. }
        | Event::Remb { .. }
        | Event::DataChannel { .. }
        | Event::Data(_)
        | Event::Closed(_) => None,
    }
}

/// `cause` is the reason of a failure of ICE, which Janus does not give.
pub(crate) fn hangup(reason: &str, cause: Option<&IceCause>) -> Value {
    let event = Object::new()
        .with("janus", "hangup")
        .with("reason", reason)
        .with_some("cause", cause.map(|cause| cause.code))
        .with_some("text", cause.map(|cause| cause.text.as_str()));
    event.into()
}

pub(crate) fn detached() -> Value {
    json!({ "janus": "detached" })
}

/// For an internal client whose session another client has ended. Clients of the API get no such
/// event.
pub(crate) fn destroyed() -> Value {
    json!({ "janus": "destroyed" })
}

/// One of the server's candidates, or `None` for the end of candidates.
pub(crate) fn trickle(mid: &str, candidate: Option<&str>) -> Value {
    let candidate = match candidate {
        Some(candidate) => {
            json!({ "sdpMid": mid, "sdpMLineIndex": 0, "candidate": candidate })
        }
        None => json!({ "completed": true }),
    };
    json!({ "janus": "trickle", "candidate": candidate })
}

fn medium(audio: bool) -> &'static str {
    if audio { "audio" } else { "video" }
}
