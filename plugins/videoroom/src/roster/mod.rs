//! Who is in a room.

mod participant;

pub(crate) use participant::{Participant, TalkSettings};
