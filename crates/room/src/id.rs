//! The ids of participants and of connections.

use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// The identity of a participant: a text that is unique in its room. Cheap to clone.
///
/// It identifies the participant's publication too, as its *feed*.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PersonId(Arc<str>);

impl PersonId {
    /// Returns the text.
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
    /// Reads a number or a text.
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

/// The id of a client's connection, unique in the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
