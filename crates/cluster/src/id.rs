//! The identities of nodes, of their runs, and of versions of entries.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a node: 1 to 63 lower-case letters, digits and hyphens, and no hyphen at either end
/// (a label of RFC 1123). It is a key of the bus and the name in the node's certificate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

/// The text is not the name of a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be the name of a node: expected 1 to 63 lower-case letters, digits and hyphens, \
     with no hyphen at either end"
)]
pub struct IdError(String);

impl NodeId {
    /// Checks a name.
    pub fn new(text: &str) -> Result<Self, IdError> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_right = (1..=63).contains(&text.len())
            && text.chars().all(allowed)
            && !text.starts_with('-')
            && !text.ends_with('-');
        match is_right {
            true => Ok(NodeId(text.into())),
            false => Err(IdError(text.chars().take(100).collect())),
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for NodeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        NodeId::new(&text).map_err(serde::de::Error::custom)
    }
}

/// One run of a node: a random number of its start, below 2^53, since JSON carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:014x}", self.0)
    }
}

/// The version of an entry on the bus, and the fencing token of every message about its room. A
/// later version is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision {
    /// When the bucket was made, in ms since 1970. A bucket that was lost and made anew begins to
    /// count at 1 again, with a greater generation.
    pub generation: u64,
    /// The sequence number within the bucket.
    pub sequence: u64,
}

impl Revision {
    /// The version of a home that was opened while the bus was away. Any other one is greater.
    pub const LOCAL: Revision = Revision {
        generation: 0,
        sequence: 0,
    };
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sequence)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn names_are_labels_of_host_names() {
        for right in ["a", "node-1", "0", &"x".repeat(63)] {
            assert_eq!(NodeId::new(right).unwrap().as_str(), right);
        }
        for wrong in ["", "-a", "a-", "A", "a.b", "a b", "ä", &"x".repeat(64)] {
            assert!(NodeId::new(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_bucket_that_was_made_anew_has_greater_revisions() {
        let at = |generation, sequence| Revision {
            generation,
            sequence,
        };
        assert!(at(1, 900) < at(2, 1) && at(2, 1) < at(2, 2) && Revision::LOCAL < at(1, 1));
    }
}
