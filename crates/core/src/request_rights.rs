//! The rights of requests, as their members say.

use crate::{Fields, Right, Rights, equal_in_constant_time};

/// Returns `rights`, or all rights if the request carries the plugin's `admin_key`.
#[must_use]
pub fn with_admin_key(rights: Rights, fields: Fields<'_>, key: Option<&str>) -> Rights {
    let shown = fields.string("admin_key").ok().flatten();
    let pair = key.zip(shown);
    match pair.is_some_and(|(key, shown)| equal_in_constant_time(key, shown)) {
        true => Rights::ALL,
        false => rights,
    }
}

/// Returns the right that `record` needs, which several plugins have in common. Stopping a
/// recording needs none. Neither does the name of a recording, which is ignored without the right
/// to record.
pub fn recording(fields: Fields<'_>) -> Rights {
    let is_begun = fields.boolean("record") == Ok(Some(true));
    Rights::if_so(is_begun, Right::Record)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_admin_key_gives_all_rights_where_there_is_one() {
        let rights = |members: Value, key| {
            let fields = Fields(members.as_object().unwrap());
            with_admin_key(Rights::NONE, fields, key)
        };
        let shown = json!({ "admin_key": "k3y" });
        assert_eq!(rights(shown.clone(), Some("k3y")), Rights::ALL);
        assert_eq!(rights(shown.clone(), Some("other")), Rights::NONE);
        assert_eq!(rights(shown, None), Rights::NONE);
        assert_eq!(rights(json!({}), Some("k3y")), Rights::NONE);
        assert_eq!(rights(json!({ "admin_key": 1 }), Some("1")), Rights::NONE);
    }
}
