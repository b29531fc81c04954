//! Events of sessions and handles (types 1 and 2).

use serde_json::{Value, json};

use crate::{Client, Object};

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// Its client ended it or is gone, or the server stops.
    Destroyed,
    /// Its client was silent for too long.
    Timeout,
}

/// A session was created by `owner`.
pub(crate) fn session_created(owner: &Client) -> Value {
    let transport = json!({ "transport": owner.transport(), "id": owner.event_id().to_string() });
    json!({ "name": "created", "transport": transport })
}

/// A session and all its handles have ended.
pub(crate) fn session_ended(end: SessionEnd) -> Value {
    let name = match end {
        SessionEnd::Destroyed => "destroyed",
        SessionEnd::Timeout => "timeout",
    };
    json!({ "name": name })
}

/// A handle was attached to `plugin` by a client with `token`.
pub(crate) fn handle_attached(plugin: &str, opaque_id: Option<&str>, token: Option<&str>) -> Value {
    handle("attached", plugin, opaque_id, token)
}

/// A handle was detached.
pub(crate) fn handle_detached(plugin: &str, opaque_id: Option<&str>, token: Option<&str>) -> Value {
    handle("detached", plugin, opaque_id, token)
}

fn handle(name: &str, plugin: &str, opaque_id: Option<&str>, token: Option<&str>) -> Value {
    Object::new()
        .with("name", name)
        .with("plugin", plugin)
        .with_some("opaque_id", opaque_id)
        .with_some("token", token)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purse, Requester};

    #[test]
    fn a_session_names_the_connection_that_made_it() {
        let (client, _messages) = Client::pushed(
            "janus.transport.websockets",
            Requester::unix(),
            Purse::default(),
        );
        let transport = json!({
            "transport": "janus.transport.websockets", "id": client.event_id().to_string(),
        });
        let created = json!({ "name": "created", "transport": transport });
        assert_eq!(session_created(&client), created);
        assert_eq!(
            session_ended(SessionEnd::Timeout),
            json!({ "name": "timeout" })
        );
    }

    #[test]
    fn a_handle_has_its_opaque_id_and_token_only_if_there_are_any() {
        let bare = json!({ "name": "attached", "plugin": "p" });
        assert_eq!(handle_attached("p", None, None), bare);
        let full = json!({ "name": "detached", "plugin": "p", "opaque_id": "o", "token": "t" });
        assert_eq!(handle_detached("p", Some("o"), Some("t")), full);
    }
}
