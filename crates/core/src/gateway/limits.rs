//! What requests of clients without the right to administer are measured by: how many, and how long their texts.

use serde_json::{Map, Value};

use super::{Credentials, Gateway};
use crate::request::Request;
use crate::{ApiError, Client, Requester, Right};

/// What has a limit of its own, in the plane of media.
const DESCRIPTION: &str = "jsep";

impl Gateway {
    /// Counts a request that the gateway does not see: an error if it is one too many, which has to be told to the client.
    pub fn count_request(
        &self,
        requester: Requester,
        credentials: Credentials<'_>,
    ) -> Result<(), ApiError> {
        let counted = self.count(requester, credentials);
        counted.inspect_err(|error| self.counters().refused(error))
    }

    /// As [`Gateway::count_request`], for what refuses requests itself.
    pub(super) fn count(
        &self,
        requester: Requester,
        credentials: Credentials<'_>,
    ) -> Result<(), ApiError> {
        let context = &self.inner.context;
        let rights = context.config.rights(requester, credentials, None);
        match rights.may(Right::Administer) || context.rate.take(requester.address()) {
            true => Ok(()),
            false => Err(ApiError::TooManyRequests(context.config.request_rate)),
        }
    }

    /// Whether a request keeps the limits that its client has. Those of an internal client have been counted.
    pub(super) fn measure(&self, client: &Client, request: &Request) -> Result<(), ApiError> {
        let context = &self.inner.context;
        let (requester, shown) = (client.requester(), Credentials::of(&request.members));
        let rights = context.config.rights(requester, shown, None);
        if rights.and(client.rights()).may(Right::Administer) {
            return Ok(());
        }
        if !client.is_internal() && !context.rate.take(requester.address()) {
            return Err(ApiError::TooManyRequests(context.config.request_rate));
        }
        let max = context.config.max_text;
        match too_long(&request.members, max) {
            Some(name) => Err(ApiError::TooLong(name.to_owned(), max)),
            None => Ok(()),
        }
    }
}

/// The member, at any depth, that has a text or a name longer than `max` bytes in it.
fn too_long(members: &Map<String, Value>, max: usize) -> Option<&str> {
    members.iter().find_map(|(name, value)| match value {
        _ if name.len() > max => Some("a name"),
        _ if name == DESCRIPTION => None,
        value => long_in(name, value, max),
    })
}

fn long_in<'a>(name: &'a str, value: &'a Value, max: usize) -> Option<&'a str> {
    match value {
        Value::String(text) => (text.len() > max).then_some(name),
        Value::Array(entries) => entries.iter().find_map(|entry| long_in(name, entry, max)),
        Value::Object(members) => too_long(members, max),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_measured_wherever_they_stand() {
        let of = |value: Value| {
            let members = value.as_object().unwrap().clone();
            too_long(&members, 4).map(str::to_owned)
        };
        assert_eq!(
            of(json!({ "a": "1234", "n": 12_345, "o": { "b": ["1"] } })),
            None
        );
        assert_eq!(of(json!({ "a": "12345" })).as_deref(), Some("a"));
        assert_eq!(
            of(json!({ "o": { "b": [{ "c": "grün" }] } })).as_deref(),
            Some("c")
        );
        assert_eq!(of(json!({ "o": ["1", "12345"] })).as_deref(), Some("o"));
        assert_eq!(
            of(json!({ "o": { "12345": 1 } })).as_deref(),
            Some("a name")
        );
        assert_eq!(of(json!({ "jsep": { "sdp": "v=0 and more" } })), None);
    }
}
