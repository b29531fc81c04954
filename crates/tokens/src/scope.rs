//! The rooms and mountpoints that a token opens.

use std::sync::Arc;

use serde_json::Value;

use crate::jwt::Claims;

/// The rooms and mountpoints of one plugin that a token opens. Only JSON Web Tokens restrict them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenScope {
    of: Option<(Arc<Claims>, &'static str)>,
}

/// The error of a request for a room or mountpoint that its token does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this token is for other rooms and mountpoints")]
pub struct OutOfScope;

impl TokenScope {
    pub(crate) fn new(claims: Arc<Claims>, package: &'static str) -> Self {
        TokenScope {
            of: Some((claims, package)),
        }
    }

    /// The subject of the token.
    pub fn subject(&self) -> Option<Arc<str>> {
        self.of.as_ref().and_then(|(claims, _)| claims.subject())
    }

    /// Whether there is a token that opens the room or mountpoint `id`.
    pub fn opens(&self, id: &str) -> bool {
        let of = self.of.as_ref();
        of.is_some_and(|(claims, package)| claims.opens_room(package, id))
    }

    /// Checks whether a request may use the room or mountpoint `id`. A request that creates one
    /// (`makes`) has to give an id if the token does not open all of them.
    pub fn check(&self, id: Option<&Value>, makes: bool) -> Result<(), OutOfScope> {
        let Some((claims, package)) = &self.of else {
            return Ok(());
        };
        let allowed = match id {
            Some(Value::String(id)) => claims.opens_room(package, id),
            Some(Value::Number(id)) => claims.opens_room(package, &id.to_string()),
            // The plugin refuses what is not an id.
            Some(_) => true,
            None => !makes || !claims.names_rooms(),
        };
        allowed.then_some(()).ok_or(OutOfScope)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    fn scope(claims: Value) -> TokenScope {
        let claims = Claims::read(claims.as_object().unwrap()).unwrap();
        TokenScope::new(Arc::new(claims), "janus.plugin.videoroom")
    }

    #[test]
    fn a_token_for_rooms_is_for_no_others() {
        let one = scope(json!({ "rooms": [1234] }));
        assert!(one.opens("1234") && !one.opens("5"));
        for (id, makes, allowed) in [
            (Some(json!(1234)), false, true),
            (Some(json!("1234")), true, true),
            (Some(json!(5)), false, false),
            (Some(json!("5")), true, false),
            (None, false, true),
            (None, true, false),
            (Some(json!(null)), false, true),
        ] {
            let checked = one.check(id.as_ref(), makes);
            assert_eq!(checked.is_ok(), allowed, "{id:?} {makes}");
        }
    }

    #[test]
    fn other_tokens_say_nothing_of_rooms() {
        let all = scope(json!({}));
        assert!(all.opens("5"));
        assert!(all.check(None, true).is_ok());
        assert!(all.check(Some(&json!(5)), false).is_ok());
        let none = TokenScope::default();
        assert!(!none.opens("5"));
        assert!(none.check(None, true).is_ok());
        assert!(none.check(Some(&json!(5)), false).is_ok());
        let elsewhere = scope(json!({ "plugins": ["streaming"] }));
        assert!(elsewhere.check(Some(&json!(5)), false).is_err());
    }
}
