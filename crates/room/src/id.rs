//! Who is who: people, and the connections that they have.

use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// The identity of somebody in a room: a text that nobody else in it has. Cheap to clone.
///
/// What they publish is known by it too, as their *feed*.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PersonId(Arc<str>);

impl PersonId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for PersonId {
    fn from(text: T) -> Self {
        PersonId(text.into())
    }
}

impl<'de> Deserialize<'de> for PersonId {
    /// Reads a number or a text, whichever ids are in the door's format.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Id;

        impl Visitor<'_> for Id {
            type Value = PersonId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id")
            }

            fn visit_u64<E>(self, number: u64) -> Result<PersonId, E> {
                Ok(number.to_string().into())
            }

            fn visit_str<E>(self, text: &str) -> Result<PersonId, E> {
                Ok(text.into())
            }
        }

        from.deserialize_identifier(Id)
    }
}

impl fmt::Display for PersonId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a client's connection, which no other connection of the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
