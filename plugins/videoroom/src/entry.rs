//! The decision of the home of a room about a client that joins at another node of a cluster.

use portunus_room::PersonId;

/// The decision of a home to let a client in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Whether the client has shown the room's secret.
    pub(crate) by_secret: bool,
    /// The id of the participant, if it is one.
    pub(crate) id: Option<PersonId>,
}
