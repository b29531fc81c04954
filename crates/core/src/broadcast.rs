//! The requests of plugins for WHIP and WHEP, and the meaning of their errors.

use serde_json::Value;

/// A plugin whose streams are published by WHIP or watched by WHEP.
///
/// The client's side is an ordinary handle: [`crate::PluginHandle::message`] gets the request with
/// the client's offer. The event that answers it carries an answer, or an `error_code`.
pub trait Broadcast: Send + Sync {
    /// The name in `/whip/NAME/ID` and `/whep/NAME/ID/PART`. It is in lower case, and never
    /// `resource`.
    fn name(&self) -> &'static str;

    /// Returns the id of the stream that a path calls `name`, which is the id or a name of the
    /// stream. Returns `None` if there is no such stream, or several of that name.
    fn id_of(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    /// Returns the request for a publisher's offer, or `None` if nothing can be published.
    fn publish(&self, stream: &Stream<'_>) -> Option<Value>;

    /// Returns the request for a viewer's offer, or for an offer of the server. `None` if nothing
    /// can be watched.
    fn watch(&self, stream: &Stream<'_>) -> Option<Value>;

    /// Returns the request for a viewer's answer to the server's offer.
    fn start(&self) -> Value;

    /// Returns the meaning of one of the plugin's error codes.
    fn refusal(&self, error_code: u64) -> Refusal;
}

/// The stream that a client of WHIP or WHEP asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The id, as [`Broadcast::id_of`] returned it.
    pub id: &'a str,
    /// The decoded rest of the path after the id: a part of the stream, if the plugin has parts.
    pub part: Option<&'a str>,
    /// The decoded names and values of the query.
    pub query: &'a [(String, String)],
    /// The bearer token of the client.
    pub token: Option<&'a str>,
}

impl<'a> Stream<'a> {
    /// Returns the first value of `name` in the query, unless it is empty.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

/// The reason why a plugin refuses a publisher or viewer, in terms of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such stream (404).
    NotFound,
    /// The token is missing or wrong (401).
    Unauthorized,
    /// Another client publishes it, or it cannot be published or watched now (409).
    Conflict,
    /// The offer is not SDP (400).
    Malformed,
    /// An id in the path or a value in the query is malformed (400).
    Parameter,
    /// The offer is valid, but nothing in it is usable (422; 406 for a viewer with an offer of the
    /// server).
    Unusable,
    /// It may work later (503).
    Unavailable,
    /// A fault of the server (500).
    Internal,
}
