//! Names and places of nodes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest name in bytes.
const LONGEST: usize = 64;

/// The name of a node, 1 to 64 bytes. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(Arc<str>);

/// A name is empty or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a node has {0} bytes, and 1 to 64 are allowed")]
pub struct NodeNameError(usize);

impl NodeName {
    /// Returns the name, if its length is allowed.
    pub fn new(name: &str) -> Result<Self, NodeNameError> {
        match (1..=LONGEST).contains(&name.len()) {
            true => Ok(Self(name.into())),
            false => Err(NodeNameError(name.len())),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for NodeName {
    type Error = NodeNameError;

    fn try_from(name: String) -> Result<Self, NodeNameError> {
        Self::new(&name)
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.0.as_ref().to_owned()
    }
}

/// Which node it is, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlace {
    /// Its name.
    pub name: NodeName,
    /// Its region. Nodes of one region share one crossing of a source from another region. Empty
    /// means the region of all others without one.
    pub region: String,
}
