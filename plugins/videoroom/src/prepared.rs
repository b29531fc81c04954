//! The outcome of what is done before a request on a node of a cluster.

use portunus_resources::Reservation;
use portunus_room::PersonId;
use serde_json::Value;

use crate::entry::Entry;
use crate::refusal::Refusal;
use crate::room::Room;

/// The home of a room permits a request to another node, which does what it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permit {
    /// The id of a new participant.
    pub(crate) id: Option<PersonId>,
}

/// The outcome of a preparation.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// This node decides.
    Nothing,
    /// The home has let the client in.
    Entered(Entry),
    /// The home has given a place among the publishers.
    Place,
    /// The home has checked that the request may manage the room.
    Permitted(Permit),
    /// The cluster has given the id of a new room to this node.
    Reserved(Reservation<Room>),
    /// The home has answered, or the request is refused.
    Answer(Value),
}

impl Prepared {
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        Prepared::Answer(refusal.to_json())
    }

    /// Returns the reservation of the id of a new room.
    pub(crate) fn reservation(self) -> Option<Reservation<Room>> {
        match self {
            Prepared::Reserved(reservation) => Some(reservation),
            _ => None,
        }
    }
}
