//! What of a plugin's requests reaches beyond the call, and who may make those.

use crate::{Fields, Right, Rights, equal_in_constant_time};

/// All requests of a plugin, by their names in lower case. Those that are not in it do not exist: so none is added
/// without somebody having thought of what it reaches.
#[derive(Debug, Clone, Copy)]
pub struct Requests(pub &'static [(&'static str, Reach)]);

/// What a request reaches beyond the call.
#[derive(Debug, Clone, Copy)]
pub enum Reach {
    /// Nothing.
    Call,
    /// What needs this right, whatever the request says.
    Beyond(Right),
    /// What the request says: the rights that it needs. Members of a wrong type say nothing, for they are refused.
    Said(fn(Fields<'_>) -> Rights),
}

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

impl Requests {
    /// What a request reaches; none if there is no such request.
    pub fn reach(&self, name: &str) -> Option<Reach> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, reach)| *reach)
    }

    /// Whether a request may be made by somebody with `rights`. One that does not exist may.
    pub fn check(&self, name: &str, fields: Fields<'_>, rights: Rights) -> Result<(), Untrusted> {
        let reach = self.reach(name);
        reach.map_or(Ok(()), |reach| reach.check(fields, rights))
    }
}

impl Reach {
    /// The rights that a request with these members needs.
    pub fn needs(self, fields: Fields<'_>) -> Rights {
        match self {
            Reach::Call => Rights::NONE,
            Reach::Beyond(right) => right.into(),
            Reach::Said(needs) => needs(fields),
        }
    }

    fn check(self, fields: Fields<'_>, rights: Rights) -> Result<(), Untrusted> {
        rights.check(self.needs(fields))
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

    const REQUESTS: Requests = Requests(&[
        ("talk", Reach::Call),
        ("forward", Reach::Beyond(Right::Forward)),
        ("configure", Reach::Said(recording)),
    ]);

    fn check(name: &str, members: Value, rights: Rights) -> Result<(), Right> {
        let checked = REQUESTS.check(name, Fields(members.as_object().unwrap()), rights);
        checked.map_err(|Untrusted(right)| right)
    }

    #[test]
    fn a_request_needs_what_it_says() {
        let only = |right: Right| Rights::from(right);
        assert_eq!(check("talk", json!({}), Rights::NONE), Ok(()));
        assert_eq!(
            check("forward", json!({}), only(Right::Record)),
            Err(Right::Forward)
        );
        assert_eq!(check("forward", json!({}), only(Right::Forward)), Ok(()));
        for (members, needs) in [
            (json!({}), false),
            (json!({ "record": false }), false),
            (json!({ "record": "yes" }), false),
            (json!({ "record": true }), true),
            (json!({ "record": true, "filename": "a" }), true),
            (json!({ "filename": "a" }), false),
            (json!({ "record": false, "filename": "a" }), false),
        ] {
            let refused = check("configure", members.clone(), only(Right::Forward)).is_err();
            assert_eq!(refused, needs, "{members}");
            assert_eq!(check("configure", members, only(Right::Record)), Ok(()));
        }
    }

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
