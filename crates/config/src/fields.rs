//! The names of a type's keys, found by its `Deserialize`.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the keys of `T`. They are empty if it is not a struct.
pub(crate) fn of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // It always fails, because there is nothing to read.
    let _ = T::deserialize(Names(&mut names));
    names
}

/// Notes the names of the requested fields.
struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only names are read"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    #[allow(dead_code, reason = "only the names of the fields are read")]
    struct Inner {
        one: u8,
        #[serde(rename = "second")]
        two: u8,
        #[serde(skip)]
        three: u8,
    }

    #[derive(serde::Deserialize)]
    #[allow(dead_code, reason = "only the names of the fields are read")]
    struct Outer(Inner);

    #[test]
    fn the_names_are_those_of_the_file() {
        assert_eq!(of::<Inner>(), ["one", "second"]);
        assert_eq!(of::<Outer>(), ["one", "second"]);
        assert!(of::<u8>().is_empty());
    }
}
