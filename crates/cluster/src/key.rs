//! The keys of homes.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Serialize, Serializer};

/// The longest key in bytes.
const LONGEST: usize = 512;

/// The key of a home: `room.<plugin>.<name>` or `stream.<name>`, with the name in base64url. Cheap to
/// clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeKey(Arc<str>);

/// The text is not the key of a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The name is empty.
    #[error("a name is empty")]
    Empty,
    /// The key would be longer than 512 bytes.
    #[error("a name is too long for a cluster: {0} bytes as a key, and 512 are allowed")]
    Long(usize),
    /// The kind has other characters than lower-case letters, digits, hyphens and dots, or the name
    /// is not base64url of UTF-8.
    #[error("the key of a home is malformed")]
    Malformed,
}

impl HomeKey {
    /// Returns the key of the thing of this kind with this name. A kind is words with dots between,
    /// such as `room.videoroom`.
    pub fn new(kind: &str, name: &str) -> Result<Self, KeyError> {
        if name.is_empty() {
            return Err(KeyError::Empty);
        }
        let key = format!("{kind}.{}", URL_SAFE_NO_PAD.encode(name));
        HomeKey::parse(&key)
    }

    /// Reads a key.
    pub fn parse(key: &str) -> Result<Self, KeyError> {
        if key.len() > LONGEST {
            return Err(KeyError::Long(key.len()));
        }
        let (kind, name) = key.rsplit_once('.').ok_or(KeyError::Malformed)?;
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let word = |word: &str| !word.is_empty() && word.chars().all(allowed);
        if !kind.split('.').all(word) || name.is_empty() || decoded(name).is_none() {
            return Err(KeyError::Malformed);
        }
        Ok(HomeKey(key.into()))
    }

    /// Returns the key as the bus has it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the kind, such as `room.videoroom`.
    pub fn kind(&self) -> &str {
        self.0.rsplit_once('.').map_or("", |(kind, _)| kind)
    }

    /// Returns the name.
    pub fn name(&self) -> String {
        let name = self.0.rsplit_once('.').and_then(|(_, name)| decoded(name));
        name.unwrap_or_default()
    }
}

impl fmt::Display for HomeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind(), self.name())
    }
}

impl Serialize for HomeKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

fn decoded(name: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn malformed_keys_are_refused() {
        assert_eq!(HomeKey::new("stream", ""), Err(KeyError::Empty));
        let long = HomeKey::new("stream", &"x".repeat(400));
        assert!(matches!(long, Err(KeyError::Long(_))), "{long:?}");
        for wrong in [
            "", "room", "room.", ".YQ", "Room.YQ", "room..YQ", "room.a b", "room.!!",
        ] {
            assert_eq!(HomeKey::parse(wrong), Err(KeyError::Malformed), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_name_comes_back(name in "\\PC{1,80}") {
            let key = HomeKey::new("room.videoroom", &name).unwrap();
            let again = HomeKey::parse(key.as_str()).unwrap();
            prop_assert_eq!(again.name(), name);
            prop_assert_eq!(again.kind(), "room.videoroom");
        }
    }
}
