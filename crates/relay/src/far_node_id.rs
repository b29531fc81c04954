//! The ids of other nodes and of their sources.

use crate::SourceId;

/// Another node, as long as it is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FarNodeId(pub(crate) u64);

/// A source of another node, by that node and its id there.
pub(crate) type Key = (FarNodeId, SourceId);
