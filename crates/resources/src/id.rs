//! Ids of resources: numbers, or texts if the plugin is configured so.

use std::fmt;

use portunus_core::{FieldError, Fields, Members};
use rand::Rng;
use serde_json::Value;
use uuid::Uuid;

/// The largest integer that JavaScript holds exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The id of a resource, or of a member of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// The usual kind. 0 is not an id.
    Number(u64),
    /// With `string_ids`.
    Text(String),
}

impl Id {
    /// Returns the id as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Id::Number(number) => (*number).into(),
            Id::Text(text) => text.as_str().into(),
        }
    }

    /// Returns the id in `value`, of either kind.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_u64().map(Id::Number),
            Value::String(text) => Some(Id::Text(text.clone())),
            _ => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => number.fmt(f),
            Id::Text(text) => text.fmt(f),
        }
    }
}

/// The kind of a plugin's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Numbers.
    Numbers,
    /// Text.
    Texts,
}

impl Ids {
    /// Returns the kind in the configuration.
    pub const fn of(string_ids: bool) -> Self {
        if string_ids { Ids::Texts } else { Ids::Numbers }
    }

    /// Returns a new id that is not `taken`: up to 2^53 - 1, or a UUID.
    pub fn random(self, taken: impl Fn(&Id) -> bool) -> Id {
        loop {
            let id = match self {
                Ids::Numbers => Id::Number(rand::rng().random_range(1..=MAX_SAFE_INTEGER)),
                Ids::Texts => Id::Text(Uuid::new_v4().to_string()),
            };
            if !taken(&id) {
                return id;
            }
        }
    }

    /// Returns the members of a request for serde, with ids of this kind.
    pub fn members(self, fields: Fields<'_>) -> Members<'_> {
        Members::new(fields, self == Ids::Texts)
    }

    /// Reads member `name`. Returns `None` if it is absent.
    pub fn read(self, fields: Fields<'_>, name: &str) -> Result<Option<Id>, FieldError> {
        let id = match self {
            Ids::Numbers => fields.member(name)?.map(Id::Number),
            Ids::Texts => fields.member(name)?.map(Id::Text),
        };
        Ok(id)
    }

    /// Reads member `name` of a new resource. A number of 0 and an empty text mean any id: `None`.
    pub fn wanted(self, fields: Fields<'_>, name: &str) -> Result<Option<Id>, FieldError> {
        let id = self.read(fields, name)?;
        Ok(id.filter(|id| match id {
            Id::Number(number) => *number > 0,
            Id::Text(text) => !text.is_empty(),
        }))
    }

    /// Reads member `name`, which has to be there. Refuses 0 and an empty text.
    pub fn required(self, fields: Fields<'_>, name: &str) -> Result<Id, FieldError> {
        self.read(fields, name)?
            .ok_or_else(|| FieldError::Missing(name.to_owned()))
    }

    /// Returns the id in a text, or `None` if it cannot be one.
    pub fn parse(self, id: &str) -> Option<Id> {
        match self {
            Ids::Numbers => id.parse().ok().map(Id::Number),
            Ids::Texts => Some(Id::Text(id.to_owned())),
        }
    }

    /// Returns the id in a path, as a request contains it. A text that cannot be a number stays a
    /// text, which the request refuses where ids are numbers.
    pub fn of_path(self, id: &str) -> Value {
        match (self, id.parse::<u64>()) {
            (Ids::Numbers, Ok(number @ 1..)) => number.into(),
            (Ids::Numbers, Ok(0) | Err(_)) | (Ids::Texts, _) => id.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    #[test]
    fn new_ids_are_of_the_plugins_kind_and_free() {
        assert!(matches!(Ids::Numbers.random(|_| false), Id::Number(1..)));
        let text = Ids::Texts.random(|_| false);
        assert!(matches!(text, Id::Text(id) if id.len() == 36));
        let tried = std::cell::Cell::new(0);
        Ids::Numbers.random(|_| tried.replace(tried.get() + 1) < 3);
        assert_eq!(tried.get(), 4);
    }

    #[test]
    fn zero_and_nothing_stand_for_any_id_of_what_is_to_be_made() {
        let read = |ids: Ids, value: Value| {
            let request = json!({ "id": value });
            let fields = Fields(request.as_object().unwrap());
            (ids.wanted(fields, "id"), ids.required(fields, "id"))
        };
        assert_eq!(read(Ids::Numbers, json!(0)), (Ok(None), Ok(Id::Number(0))));
        assert_eq!(
            read(Ids::Texts, json!("")),
            (Ok(None), Ok(Id::Text(String::new())))
        );
        let seven = Id::Number(7);
        assert_eq!(
            read(Ids::Numbers, json!(7)),
            (Ok(Some(seven.clone())), Ok(seven))
        );
        assert!(read(Ids::Numbers, json!("7")).0.is_err());
        assert!(read(Ids::Texts, json!(7)).1.is_err());
    }

    #[test]
    fn a_path_is_a_number_only_where_ids_are() {
        assert_eq!(Ids::Numbers.of_path("7"), json!(7));
        assert_eq!(Ids::Numbers.of_path("0"), json!("0"));
        assert_eq!(Ids::Numbers.of_path("stage"), json!("stage"));
        assert_eq!(Ids::Texts.of_path("7"), json!("7"));
    }
}
