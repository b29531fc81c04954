//! Who may make requests that reach beyond the call.

use crate::{Fields, Right, Rights, equal_in_constant_time};

/// A request needs a right that its client does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} a trusted client: an admin key, the API secret, or a token with the right to {right}",
    what = needing(*.0),
    right = .0
)]
pub struct Untrusted(pub Right);

/// What needs a right, in words.
const fn needing(right: Right) -> &'static str {
    match right {
        Right::Create => {
            "files, RTSP servers, multicast groups, interfaces and what is permanent need"
        }
        Right::Record => "recording needs",
        Right::Forward => "forwarding media to other machines, and taking it from them, needs",
        Right::Administer => "this needs",
    }
}

impl Rights {
    /// An error if some of `needed` are not among these.
    pub fn check(self, needed: Rights) -> Result<(), Untrusted> {
        let missing = |right: &Right| needed.may(*right) && !self.may(*right);
        match Right::ALL.into_iter().find(missing) {
            Some(right) => Err(Untrusted(right)),
            None => Ok(()),
        }
    }

    /// These, or all if a request shows the plugin's `admin_key`, if there is one.
    #[must_use]
    pub fn with_admin_key(self, fields: Fields<'_>, key: Option<&str>) -> Rights {
        let shown = fields.string("admin_key").ok().flatten();
        let pair = key.zip(shown);
        match pair.is_some_and(|(key, shown)| equal_in_constant_time(key, shown)) {
            true => Rights::ALL,
            false => self,
        }
    }
}

/// What `record` needs, which means the same in several plugins. To stop recording needs nothing. Neither does the name of a
/// recording, which plugins ignore of clients that may not record.
pub fn recording(fields: Fields<'_>) -> Rights {
    let is_begun = fields.boolean("record") == Ok(Some(true));
    Rights::if_so(is_begun, Right::Record)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_admin_key_gives_all_rights_where_there_is_one() {
        let rights = |members: Value, key| {
            let fields = Fields(members.as_object().unwrap());
            Rights::NONE.with_admin_key(fields, key)
        };
        let shown = json!({ "admin_key": "k3y" });
        assert_eq!(rights(shown.clone(), Some("k3y")), Rights::ALL);
        assert_eq!(rights(shown.clone(), Some("other")), Rights::NONE);
        assert_eq!(rights(shown, None), Rights::NONE);
        assert_eq!(rights(json!({}), Some("k3y")), Rights::NONE);
        assert_eq!(rights(json!({ "admin_key": 1 }), Some("1")), Rights::NONE);
    }

    #[test]
    fn a_refusal_says_what_is_needed() {
        assert_eq!(
            Untrusted(Right::Record).to_string(),
            "recording needs a trusted client: an admin key, the API secret, or a token with the right to record"
        );
    }
}
