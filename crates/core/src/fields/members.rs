//! Reads the members of an object into a struct, by serde.
//!
//! serde reads a JSON object in the order of the text. Clients of Janus expect the first error in
//! the order of the documentation. So a struct is read as a sequence of its fields in the order of
//! their declaration. A field that is a struct takes its own fields from the same object, since
//! requests are flat.

use std::borrow::Cow;
use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, Expected, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value;

use super::{FieldError, Fields, MAX_OBJECTS};

/// The error of a struct, before the name of the member is known.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The member has a wrong type. The text is the expected one.
    #[error("should be {0}")]
    Type(Cow<'static, str>),
    /// The member has an invalid value. The text gives the reason.
    #[error("{0}")]
    Value(String),
    /// The field with this index in its struct is missing.
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

    /// A struct has no default for its field with the index `place`.
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

/// An object that is read into a struct.
#[derive(Debug, Clone, Copy)]
pub struct Members<'a> {
    fields: Fields<'a>,
    text_ids: bool,
}

impl<'a> Members<'a> {
    /// Reads `fields`. With `text_ids` ids are strings, without it numbers. A type is an id if it
    /// deserializes by [`Deserializer::deserialize_identifier`].
    pub const fn new(fields: Fields<'a>, text_ids: bool) -> Self {
        Members { fields, text_ids }
    }

    /// Reads a struct as [`Fields::read`] does.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, FieldError> {
        T::deserialize(self).map_err(|fault| fault.of_member("body"))
    }

    /// Reads one member as [`Fields::member`] does.
    pub fn member<T: Deserialize<'a>>(self, name: &str) -> Result<Option<T>, FieldError> {
        let read = |value| T::deserialize(self.at(value, Within::Nothing));
        let read = self.fields.0.get(name).map(read).transpose();
        read.map_err(|fault| fault.of_member(name))
    }

    const fn at(self, value: &'a Value, within: Within<'a>) -> Member<'a> {
        Member {
            value,
            within,
            text_ids: self.text_ids,
        }
    }
}

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
            members: self,
            rest: &mut rest,
        });
        // serde lists a field's aliases like fields.
        debug_assert!(read.is_err() || rest.len() == 0, "a field has an alias");
        read.map_err(|fault| match fault {
            Fault::Missing(place) => {
                let name = names.get(place).copied().unwrap_or_default();
                FieldError::Missing(name.to_owned()).into()
            }
            fault => fault,
        })
    }

    /// `()` is the struct of a request without members.
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
    members: Members<'a>,
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
        let Some(value) = self.members.fields.0.get(*name) else {
            return match seed.deserialize(Absent(self.members)) {
                Ok(value) => Ok(Some(value)),
                // It is one of the members of a struct.
                Err(fault @ Fault::Field(_)) => Err(fault),
                // Without a value serde takes the field's default, or `invalid_length`.
                Err(_) => Ok(None),
            };
        };
        let member = self.members.at(value, Within::Object(self.members));
        let read = seed.deserialize(member);
        read.map(Some).map_err(|fault| fault.of_member(name).into())
    }
}

/// An absent member of these fields.
struct Absent<'a>(Members<'a>);

impl<'de> Deserializer<'de> for Absent<'de> {
    type Error = Fault;

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_none()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.0.deserialize_struct(name, names, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("it is missing"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The place of a value.
#[derive(Clone, Copy)]
enum Within<'a> {
    Nothing,
    /// A member of this object.
    Object(Members<'a>),
    /// The index in a list.
    List(usize),
}

/// A present value. `null` always has the wrong type.
struct Member<'a> {
    value: &'a Value,
    within: Within<'a>,
    text_ids: bool,
}

impl<'a> Member<'a> {
    /// Returns the value converted by `convert`, or an error with the wanted type, alone or as part
    /// of a list.
    fn read<T>(
        &self,
        [alone, listed]: [&'static str; 2],
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, Fault> {
        let wanted = match self.within {
            Within::Nothing | Within::Object(_) => alone,
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

/// Numbers out of the field's range have the wrong type, too.
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
        visitor.visit_seq(List {
            values: values.iter().enumerate(),
            text_ids: self.text_ids,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let members = match self.within {
            Within::Object(members) => members,
            Within::List(place) if place >= MAX_OBJECTS => {
                return Err(Fault::Type("an array of at most 2000 objects".into()));
            }
            Within::List(_) | Within::Nothing => {
                let members = self.read(OBJECT, Value::as_object)?;
                Members::new(Fields(members), self.text_ids)
            }
        };
        members.deserialize_struct(name, names, visitor)
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

    /// Reads an id.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text_ids {
            true => self.deserialize_str(visitor),
            false => self.deserialize_u64(visitor),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = self.value.deserialize_any(visitor);
        read.map_err(Fault::custom)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

/// The values of a list.
struct List<'a> {
    values: std::iter::Enumerate<std::slice::Iter<'a, Value>>,
    text_ids: bool,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some((place, value)) = self.values.next() else {
            return Ok(None);
        };
        let member = Member {
            value,
            within: Within::List(place),
            text_ids: self.text_ids,
        };
        seed.deserialize(member).map(Some)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
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
    struct Labelled {
        label: Option<String>,
        stream: Stream,
        more: More,
        last: Option<bool>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct More {
        volume: Option<u64>,
    }

    #[test]
    fn a_struct_in_a_struct_is_of_members_of_the_same_object() {
        let read = |object: Value| {
            let read = Fields(object.as_object().unwrap()).read::<Labelled>();
            read.map_err(|error| error.to_string())
        };
        let labelled = || Labelled {
            label: None,
            stream: Stream { feed: 1, mid: None },
            more: More { volume: Some(2) },
            last: Some(true),
        };
        let object = json!({ "feed": 1, "volume": 2, "last": true });
        assert_eq!(read(object), Ok(labelled()));
        // There is only one way to write it.
        let object = json!({ "feed": 1, "volume": 2, "last": true, "more": { "volume": 3 } });
        assert_eq!(read(object), Ok(labelled()));
        let missing = "Missing mandatory element (feed)";
        let wrong = json!({ "volume": "x", "last": 1 });
        assert_eq!(read(wrong), Err(missing.to_owned()));
        let first = "Invalid element type (volume should be a positive integer)";
        let wrong = json!({ "feed": 1, "volume": "x", "last": 1 });
        assert_eq!(read(wrong), Err(first.to_owned()));
    }

    #[derive(Debug, PartialEq)]
    struct Id(String);

    impl<'de> Deserialize<'de> for Id {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Read;
            impl Visitor<'_> for Read {
                type Value = Id;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an id")
                }
                fn visit_u64<E>(self, number: u64) -> Result<Id, E> {
                    Ok(Id(number.to_string()))
                }
                fn visit_str<E>(self, text: &str) -> Result<Id, E> {
                    Ok(Id(text.to_owned()))
                }
            }
            from.deserialize_identifier(Read)
        }
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Named {
        feed: Id,
    }

    #[test]
    fn ids_are_of_the_kind_that_the_reader_knows() {
        let read = |object: Value, text_ids| {
            let members = Members::new(Fields(object.as_object().unwrap()), text_ids);
            let feeds = members.member::<Vec<Named>>("feeds");
            feeds.map_err(|error| error.to_string())
        };
        let (number, text) = (
            json!({ "feeds": [{ "feed": 7 }] }),
            json!({ "feeds": [{ "feed": "7" }] }),
        );
        let seven = || {
            Ok(Some(vec![Named {
                feed: Id("7".to_owned()),
            }]))
        };
        assert_eq!(read(number.clone(), false), seven());
        assert_eq!(read(text.clone(), true), seven());
        let wrong = |wanted: &str| Err(format!("Invalid element type (feed should be {wanted})"));
        assert_eq!(read(number, true), wrong("a string"));
        assert_eq!(read(text, false), wrong("a positive integer"));
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
