//! Limits for requests of clients without the right to administer: their rate, and the length of
//! their texts.

use serde_json::Value;

use super::Gateway;
use crate::request::Request;
use crate::{ApiError, Client, Credentials, Purse, Requester, Right};

/// The member with a limit of its own, in the media plane.
const DESCRIPTION: &str = "jsep";

impl Gateway {
    /// Counts a request that bypasses the gateway. Fails if the client exceeds its rate, which the
    /// caller reports to the client.
    pub fn count_request(
        &self,
        requester: Requester,
        credentials: Credentials<'_>,
    ) -> Result<(), ApiError> {
        let counted = self.count(requester, credentials);
        counted.inspect_err(|error| self.counters().refused(error))
    }

    /// As [`Gateway::count_request`], for callers that report the error by [`Gateway::refuse`].
    pub fn count(
        &self,
        requester: Requester,
        credentials: Credentials<'_>,
    ) -> Result<(), ApiError> {
        let context = &self.inner.context;
        // Credentials that cost work to verify do not exempt the request.
        let may_be_exempt = context.tokens.knows(credentials);
        let is_exempt = || {
            let rights = context
                .tokens
                .rights(requester.is_local(), credentials, None);
            rights.may(Right::Administer)
        };
        match (may_be_exempt && is_exempt()) || context.rate.take(requester.address()) {
            true => Ok(()),
            false => Err(ApiError::TooManyRequests(context.config().request_rate)),
        }
    }

    /// Checks the limits of a client's request. Requests of internal clients were counted before.
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

    /// Returns the purse for a session that `client` creates with `request`.
    pub(super) fn purse(&self, client: &Client, request: &Request) -> Purse {
        match self.may_administer(client, Credentials::of(&request.members)) {
            true => self.memory().trusted(),
            false => self.memory().purse(client.requester().address()),
        }
    }

    fn may_administer(&self, client: &Client, shown: Credentials<'_>) -> bool {
        let rights = self
            .tokens()
            .rights(client.requester().is_local(), shown, None);
        rights.and(client.rights()).may(Right::Administer)
    }
}

/// Data of clients that other clients get. Its total size is limited.
const METADATA: &str = "metadata";

/// Returns the member, at any depth, that contains a text or a name longer than `max` bytes, or is
/// a [`METADATA`] of that size.
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
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
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
        // Only the request's own description is exempt, by the caller.
        let hidden = json!({ "a": { "jsep": "v=0 and more" } });
        assert_eq!(of(hidden).as_deref(), Some("jsep"));
        let many = json!({ "metadata": { "a": ["123", "456"] } });
        let many = many.as_object().unwrap();
        assert_eq!(too_long(many, 19), None);
        assert_eq!(too_long(many, 18), Some("metadata"));
    }
}
