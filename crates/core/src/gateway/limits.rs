//! What requests of clients without the right to administer are measured by: how many, and how long their texts.

use serde_json::Value;

use super::{Credentials, Gateway};
use crate::request::Request;
use crate::{ApiError, Client, Purse, Requester, Right};

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
    pub(crate) fn count(
        &self,
        requester: Requester,
        credentials: Credentials<'_>,
    ) -> Result<(), ApiError> {
        let context = &self.inner.context;
        // What costs work to find out counts, whatever it is worth.
        let may_be_exempt = context.tokens.knows(credentials);
        let is_exempt = || {
            let rights = context.tokens.rights(requester, credentials, None);
            rights.may(Right::Administer)
        };
        match (may_be_exempt && is_exempt()) || context.rate.take(requester.address()) {
            true => Ok(()),
            false => Err(ApiError::TooManyRequests(context.config().request_rate)),
        }
    }

    /// Whether a request keeps the limits that its client has. Those of an internal client have been counted.
    pub(super) fn measure(&self, client: &Client, request: &Request) -> Result<(), ApiError> {
        let context = &self.inner.context;
        let shown = Credentials::of(&request.members);
        if !client.is_internal() {
            self.count(client.requester(), shown)?;
        }
        if self.may_administer(client, shown) {
            return Ok(());
        }
        let max = context.config().max_text;
        let described = request
            .members
            .iter()
            .filter(|(name, _)| *name != DESCRIPTION);
        match too_long(described, max) {
            Some(name) => Err(ApiError::TooLong(name.to_owned(), max)),
            None => Ok(()),
        }
    }

    /// What a session pays from that `client` makes with `request`.
    pub(super) fn purse(&self, client: &Client, request: &Request) -> Purse {
        match self.may_administer(client, Credentials::of(&request.members)) {
            true => self.memory().trusted(),
            false => self.memory().purse(client.requester().address()),
        }
    }

    fn may_administer(&self, client: &Client, shown: Credentials<'_>) -> bool {
        let rights = self.tokens().rights(client.requester(), shown, None);
        rights.and(client.rights()).may(Right::Administer)
    }
}

/// What clients say of themselves and others are told: it is measured as a whole.
const METADATA: &str = "metadata";

/// The member, at any depth, that has a text or a name longer than `max` bytes in it, or is [`METADATA`] that long.
fn too_long<'a>(
    members: impl IntoIterator<Item = (&'a String, &'a Value)>,
    max: usize,
) -> Option<&'a str> {
    members.into_iter().find_map(|(name, value)| match value {
        _ if name.len() > max => Some("a name"),
        Value::Object(_) | Value::Array(_) if name == METADATA => {
            (value.to_string().len() > max).then_some(name.as_str())
        }
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
        // Only the request's own description is left out, by the caller.
        let hidden = json!({ "a": { "jsep": "v=0 and more" } });
        assert_eq!(of(hidden).as_deref(), Some("jsep"));
        let many = json!({ "metadata": { "a": ["123", "456"] } });
        let many = many.as_object().unwrap();
        assert_eq!(too_long(many, 19), None);
        assert_eq!(too_long(many, 18), Some("metadata"));
    }
}
