//! What WHIP and WHEP need to know of a plugin: the requests that publish and watch, and what its errors mean.

use serde_json::Value;

/// A plugin whose streams are published by WHIP or watched by WHEP.
///
/// The client's side is a handle like any other: the request goes to [`crate::PluginHandle::message`] with the
/// client's offer, and the event that answers it has to carry our answer, or an `error_code`.
pub trait Broadcast: Send + Sync {
    /// The name in `/whip/NAME/ID` and `/whep/NAME/ID/PART`; lower case, and never `resource`.
    fn name(&self) -> &'static str;

    /// The id of the stream that a path calls `name`: the id itself, or a name that the plugin knows it by. None: there is no such
    /// stream, or several of that name.
    fn id_of(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    /// The request that goes with a publisher's offer; none: nothing can be published.
    fn publish(&self, stream: &Stream<'_>) -> Option<Value>;

    /// The request that goes with a viewer's offer, or asks for an offer of ours; none: nothing can be watched.
    fn watch(&self, stream: &Stream<'_>) -> Option<Value>;

    /// The request that goes with a viewer's answer to our offer.
    fn start(&self) -> Value;

    /// What one of the plugin's error codes means.
    fn refusal(&self, error_code: u64) -> Refusal;
}

/// What a client of WHIP or WHEP asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The id, as [`Broadcast::id_of`] gave it.
    pub id: &'a str,
    /// What follows the id in the path, decoded: a part of the stream, where a plugin knows such.
    pub part: Option<&'a str>,
    /// The names and values of the query, decoded.
    pub query: &'a [(String, String)],
    /// The bearer token that the client shows.
    pub token: Option<&'a str>,
}

impl<'a> Stream<'a> {
    /// The first value of `name` in the query, unless it is empty.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

/// Why a plugin refuses a publisher or viewer, in the terms of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such stream (404).
    NotFound,
    /// The token is missing or wrong (401).
    Unauthorized,
    /// Somebody else publishes it, or it is no stream that can be published or watched now (409).
    Conflict,
    /// The offer is no SDP (400).
    Malformed,
    /// An id in the path or a value in the query is none that can be, such as a word for a number (400).
    Parameter,
    /// The offer is in order, but nothing in it can be used (422; for a viewer 406 with an offer of ours).
    Unusable,
    /// It could work later (503).
    Unavailable,
    /// A fault of the server (500).
    Internal,
}
