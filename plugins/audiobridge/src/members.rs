//! Types of members: a request is refused for the first one that is wrong, in the order of its documentation.

use portunus_core::{FieldError, Fields};

use crate::refusal::Refusal;

/// What a member has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    /// Text that has to be there.
    NeededText,
    Flag,
    /// A boolean that has to be there.
    NeededFlag,
    /// An integer of 0 or more.
    Number,
    /// The same that has to be there.
    NeededNumber,
    Integer,
    /// An array of strings.
    Texts,
    Object,
}

/// The members of a request with their types.
pub(crate) type Members = &'static [(&'static str, Type)];

/// Checks the types of those that are there.
pub(crate) fn check(fields: Fields<'_>, members: Members) -> Result<(), Refusal> {
    members
        .iter()
        .try_for_each(|(name, kind)| check_one(fields, name, *kind))
}

fn check_one(fields: Fields<'_>, name: &str, kind: Type) -> Result<(), Refusal> {
    match kind {
        Type::Text => fields.string(name).map(drop)?,
        Type::NeededText => fields.required_string(name).map(drop)?,
        Type::Flag => fields.boolean(name).map(drop)?,
        Type::NeededFlag => fields.required_boolean(name).map(drop)?,
        Type::Number => fields.positive(name).map(drop)?,
        Type::NeededNumber => fields.required_positive(name).map(drop)?,
        Type::Integer => fields.integer(name).map(drop)?,
        Type::Object => fields.object(name).map(drop)?,
        Type::Texts => match fields.0.get(name) {
            None => {}
            Some(value) if value.is_array() => {}
            Some(_) => {
                return Err(Refusal::Field(FieldError::wrong_type(name, "an array")));
            }
        },
    }
    Ok(())
}

/// The entries of an array of strings.
pub(crate) fn texts<'a>(
    fields: Fields<'a>,
    name: &'static str,
) -> Result<Option<Vec<&'a str>>, Refusal> {
    let list = fields.0.get(name).and_then(|value| value.as_array());
    let Some(list) = list else { return Ok(None) };
    let texts: Option<Vec<&str>> = list.iter().map(|entry| entry.as_str()).collect();
    texts.map(Some).ok_or(Refusal::NotAString(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    const ALL: Members = &[
        ("text", Type::Text),
        ("flag", Type::Flag),
        ("number", Type::Number),
        ("integer", Type::Integer),
        ("texts", Type::Texts),
        ("object", Type::Object),
    ];

    fn refused(members: &Value) -> Option<String> {
        let fields = Fields(members.as_object().unwrap());
        check(fields, ALL).err().map(|refusal| refusal.to_string())
    }

    #[test]
    fn the_first_wrong_member_of_the_table_is_told() {
        let wrong = json!({ "texts": "a", "flag": 1 });
        let told = "Invalid element type (flag should be a boolean)";
        assert_eq!(refused(&wrong).as_deref(), Some(told));
        for (member, wanted) in [
            ("text", "a string"),
            ("flag", "a boolean"),
            ("number", "a positive integer"),
            ("integer", "an integer"),
            ("texts", "an array"),
            ("object", "an object"),
        ] {
            let told = format!("Invalid element type ({member} should be {wanted})");
            assert_eq!(refused(&json!({ member: null })), Some(told));
        }
        let right = json!({
            "text": "", "flag": true, "number": 0, "integer": -1, "texts": [], "object": {}, "other": null,
        });
        assert_eq!(refused(&right), None);
    }

    #[test]
    fn an_array_with_something_else_than_text_is_told() {
        let members = json!({ "texts": ["a", 1] });
        let read = texts(Fields(members.as_object().unwrap()), "texts");
        assert_eq!(read, Err(Refusal::NotAString("texts")));
    }
}
