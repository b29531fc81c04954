//! Reads the members of an object into a struct, by serde.
//!
//! serde reads a JSON object in the order of the text. Clients of Janus know errors in the order of the request's
//! description, the first of which they get. So a struct is read as a sequence: its fields in the order in which it
//! declares them.

use std::borrow::Cow;
use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, SeqAccess, Unexpected, Visitor, value,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::{FieldError, Fields, MAX_OBJECTS};

/// Why a struct is not there: serde's part of it, until the name of the member is known.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The member has another type: the one that was expected.
    #[error("should be {0}")]
    Type(Cow<'static, str>),
    /// The member's value cannot be: why.
    #[error("{0}")]
    Value(String),
    /// The field with this place in its struct is missing.
    #[error("field {0} is missing")]
    Missing(usize),
}

impl Fault {
    pub(super) fn of_member(self, name: &str) -> FieldError {
        let name = name.to_owned();
        match self {
            Fault::Field(error) => error,
            Fault::Type(wanted) => FieldError::Type { name, wanted },
            Fault::Value(reason) => FieldError::Value { name, reason },
            Fault::Missing(_) => FieldError::Missing(name),
        }
    }
}

impl Error for Fault {
    fn custom<T: Display>(reason: T) -> Self {
        Fault::Value(reason.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Fault::Type(expected.to_string().into())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Fault::Value(format!("should be {expected}"))
    }

    /// A struct has no default for its field with the place `place`.
    fn invalid_length(place: usize, _: &dyn Expected) -> Self {
        Fault::Missing(place)
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        let known = match known {
            [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            all => all.join(", "),
        };
        Fault::Value(format!("should be {known}"))
    }
}

/// An object that becomes a struct.
pub(super) struct Members<'a>(pub(super) Fields<'a>);

impl<'de> Deserializer<'de> for Members<'de> {
    type Error = Fault;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let mut rest = names.iter();
        let read = visitor.visit_seq(Declared {
            fields: self.0,
            rest: &mut rest,
        });
        // serde lists a field's aliases as if they were fields.
        debug_assert!(read.is_err() || rest.len() == 0, "a field has an alias");
        read.map_err(|fault| match fault {
            Fault::Missing(place) => {
                let name = names.get(place).copied().unwrap_or_default();
                FieldError::Missing(name.to_owned()).into()
            }
            fault => fault,
        })
    }

    /// `()` is what a request without members of its own is read into.
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("is no struct of named fields"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The fields of a struct, in the order of their declaration.
struct Declared<'a, 'n> {
    fields: Fields<'a>,
    rest: &'n mut std::slice::Iter<'static, &'static str>,
}

impl<'de> SeqAccess<'de> for Declared<'de, '_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(name) = self.rest.next() else {
            return Ok(None);
        };
        let Some(value) = self.fields.0.get(*name) else {
            // An `Option` is `None` then. Without a value serde takes the field's default, or `invalid_length`.
            return Ok(seed.deserialize(Absent).ok());
        };
        let read = seed.deserialize(Member::alone(value));
        read.map(Some).map_err(|fault| fault.of_member(name).into())
    }
}

/// A member that is not there.
struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = value::Error;

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_none()
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
        Err(value::Error::custom("it is missing"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Where a value stands.
#[derive(Clone, Copy)]
enum Within {
    Object,
    /// The place in a list.
    List(usize),
}

/// A value that is there. `null` is a value of the wrong type, whatever is wanted.
pub(super) struct Member<'a> {
    value: &'a Value,
    within: Within,
}

impl<'a> Member<'a> {
    /// A value that is a member by itself.
    pub(super) const fn alone(value: &'a Value) -> Self {
        Member {
            value,
            within: Within::Object,
        }
    }

    /// The value as `convert` has it, else an error that names what was wanted: by itself, or as part of a list.
    fn read<T>(
        &self,
        [alone, listed]: [&'static str; 2],
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, Fault> {
        let wanted = match self.within {
            Within::Object => alone,
            Within::List(_) => listed,
        };
        convert(self.value).ok_or(Fault::Type(wanted.into()))
    }
}

const BOOLEAN: [&str; 2] = ["a boolean", "an array of booleans"];
const POSITIVE: [&str; 2] = ["a positive integer", "an array of positive integers"];
const INTEGER: [&str; 2] = ["an integer", "an array of integers"];
const NUMBER: [&str; 2] = ["a number", "an array of numbers"];
const STRING: [&str; 2] = ["a string", "an array of strings"];
const ARRAY: [&str; 2] = ["an array", "an array of arrays"];
const OBJECT: [&str; 2] = ["an object", "an array of objects"];

/// Numbers that do not fit the field have the wrong type, too.
macro_rules! numbers {
    ($($method:ident $wanted:ident $convert:ident $visit:ident;)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
                let number = self.read($wanted, Value::$convert)?;
                let read: Result<_, Fault> = visitor.$visit(number);
                read.or_else(|_| self.read($wanted, |_| None))
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Member<'de> {
    type Error = Fault;

    numbers! {
        deserialize_u8 POSITIVE as_u64 visit_u64;
        deserialize_u16 POSITIVE as_u64 visit_u64;
        deserialize_u32 POSITIVE as_u64 visit_u64;
        deserialize_u64 POSITIVE as_u64 visit_u64;
        deserialize_i8 INTEGER as_i64 visit_i64;
        deserialize_i16 INTEGER as_i64 visit_i64;
        deserialize_i32 INTEGER as_i64 visit_i64;
        deserialize_i64 INTEGER as_i64 visit_i64;
        deserialize_f32 NUMBER as_f64 visit_f64;
        deserialize_f64 NUMBER as_f64 visit_f64;
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_bool(self.read(BOOLEAN, Value::as_bool)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.read(STRING, Value::as_str)?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let values = self.read(ARRAY, Value::as_array)?;
        visitor.visit_seq(List(values.iter().enumerate()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let is_beyond = matches!(self.within, Within::List(place) if place >= MAX_OBJECTS);
        if is_beyond {
            return Err(Fault::Type("an array of at most 2000 objects".into()));
        }
        let members = self.read(OBJECT, Value::as_object)?;
        Members(Fields(members)).deserialize_struct(name, names, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.read(OBJECT, Value::as_object)?;
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let text = StrDeserializer::new(self.read(STRING, Value::as_str)?);
        text.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = self.value.deserialize_any(visitor);
        read.map_err(Fault::custom)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The values of a list.
struct List<'a>(std::iter::Enumerate<std::slice::Iter<'a, Value>>);

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some((place, value)) = self.0.next() else {
            return Ok(None);
        };
        let within = Within::List(place);
        seed.deserialize(Member { value, within }).map(Some)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Join<'a> {
        ptype: &'a str,
        display: Option<&'a str>,
        #[serde(default)]
        muted: bool,
        room: u64,
        volume: Option<i8>,
        #[serde(rename = "type")]
        kind: Option<Kind>,
        #[serde(default)]
        streams: Vec<Stream>,
        tags: Option<Vec<String>>,
        metadata: Option<serde_json::Map<String, Value>>,
        ratio: Option<f64>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Audio,
        Video,
        Data,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Stream {
        feed: u64,
        mid: Option<String>,
    }

    fn refused(object: Value) -> String {
        let fields = Fields(object.as_object().unwrap());
        fields.read::<Join<'_>>().unwrap_err().to_string()
    }

    #[test]
    fn a_struct_is_what_its_members_say() {
        let object = json!({
            "volume": -3, "room": 7, "ptype": "publisher", "type": "video", "other": null,
            "streams": [{ "feed": 1 }, { "mid": "a", "feed": 2 }], "tags": ["x"],
            "metadata": { "n": 1 }, "ratio": 1,
        });
        let fields = Fields(object.as_object().unwrap());
        let join: Join<'_> = fields.read().unwrap();
        let stream = |feed, mid: Option<&str>| Stream {
            feed,
            mid: mid.map(str::to_owned),
        };
        assert_eq!(
            join,
            Join {
                ptype: "publisher",
                display: None,
                muted: false,
                room: 7,
                volume: Some(-3),
                kind: Some(Kind::Video),
                streams: vec![stream(1, None), stream(2, Some("a"))],
                tags: Some(vec!["x".to_owned()]),
                metadata: json!({ "n": 1 }).as_object().cloned(),
                ratio: Some(1.0),
            }
        );
    }

    #[test]
    fn the_first_error_is_that_of_the_first_field() {
        let mandatory = |name: &str| format!("Missing mandatory element ({name})");
        assert_eq!(refused(json!({})), mandatory("ptype"));
        assert_eq!(refused(json!({ "room": "x" })), mandatory("ptype"));
        assert_eq!(refused(json!({ "ptype": "p" })), mandatory("room"));
        let wrong = |members: Value, error: &str| {
            let mut all = json!({ "ratio": "last", "room": 1, "ptype": "p" });
            let own = members.as_object().unwrap().clone();
            all.as_object_mut().unwrap().extend(own);
            assert_eq!(refused(all), error, "{members}");
        };
        let is =
            |name: &str, wanted: &str| format!("Invalid element type ({name} should be {wanted})");
        wrong(json!({}), &is("ratio", "a number"));
        wrong(json!({ "display": null }), &is("display", "a string"));
        wrong(json!({ "muted": 1 }), &is("muted", "a boolean"));
        wrong(json!({ "room": -1 }), &is("room", "a positive integer"));
        wrong(json!({ "volume": 1.5 }), &is("volume", "an integer"));
        wrong(json!({ "volume": 128 }), &is("volume", "an integer"));
        wrong(json!({ "type": 1 }), &is("type", "a string"));
        wrong(json!({ "streams": {} }), &is("streams", "an array"));
        wrong(
            json!({ "streams": [1] }),
            &is("streams", "an array of objects"),
        );
        wrong(json!({ "streams": [{}] }), &mandatory("feed"));
        wrong(
            json!({ "streams": [{ "feed": 1, "mid": 2 }] }),
            &is("mid", "a string"),
        );
        let many: Vec<_> = (0..=MAX_OBJECTS).map(|_| json!({ "feed": 1 })).collect();
        wrong(
            json!({ "streams": many }),
            &is("streams", "an array of at most 2000 objects"),
        );
        wrong(
            json!({ "tags": ["a", 1] }),
            &is("tags", "an array of strings"),
        );
        wrong(json!({ "metadata": [] }), &is("metadata", "an object"));
        wrong(
            json!({ "type": "text" }),
            "Invalid value (type should be audio, video or data)",
        );
    }
}
