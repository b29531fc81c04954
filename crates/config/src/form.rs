//! Forms of values that serde does not know.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Visitor};

/// Reads a text with its own format, for an `impl Deserialize`. `form` is the expectation for a
/// value that is not a text, and `parse` reads the text.
pub fn text<'de, D: Deserializer<'de>, T>(
    from: D,
    form: &'static str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    from.deserialize_str(Text {
        form,
        parse,
        value: PhantomData,
    })
}

struct Text<T, P> {
    form: &'static str,
    parse: P,
    value: PhantomData<T>,
}

impl<T, P: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Text<T, P> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

/// Whole seconds, for `#[serde(with = "…")]`.
pub mod seconds {
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// A year is more than any of our durations needs, and keeps arithmetic far from overflow.
    const MOST: i64 = 366 * 86_400;

    /// Reads a number of seconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let number = i64::deserialize(from)?;
        match u64::try_from(number) {
            Ok(seconds) if number <= MOST => Ok(Duration::from_secs(seconds)),
            _ => Err(D::Error::custom(format!(
                "expected seconds from 0 to {MOST}, got {number}"
            ))),
        }
    }

    /// Writes the whole seconds.
    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_secs())
    }
}

/// An optional value that is written as a text, for `#[serde(with = "…")]`. Empty text means
/// `None`.
pub mod optional {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, Visitor};
    use serde::{Serialize, Serializer};

    /// Reads a text. Empty text means `None`.
    pub fn deserialize<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: DeserializeOwned,
    {
        from.deserialize_any(Optional(PhantomData))
    }

    struct Optional<T>(PhantomData<T>);

    /// `T` reads other values, so that the error has its expectation.
    impl<T: DeserializeOwned> Visitor<'_> for Optional<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Option<T>, E> {
            match text.is_empty() {
                true => Ok(None),
                false => T::deserialize(text.into_deserializer()).map(Some),
            }
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<Option<T>, E> {
            T::deserialize(value.into_deserializer()).map(Some)
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<Option<T>, E> {
            T::deserialize(value.into_deserializer()).map(Some)
        }
    }

    /// Writes the value, or empty text.
    pub fn serialize<S, T>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
        T: Serialize,
    {
        match value {
            Some(value) => value.serialize(to),
            None => to.serialize_str(""),
        }
    }
}
