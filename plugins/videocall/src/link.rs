//! A link between the two sides of a call.

use portunus_core::Mid;
use portunus_core::media::{RouteId, SourceRef};
use portunus_core::sdp::Kind;

/// A route to a user's m-line, from the m-line at the same place of the other side.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) from: Mid,
    pub(crate) to: Mid,
    pub(crate) kind: Kind,
    pub(crate) source: SourceRef,
    pub(crate) route: RouteId,
}
