//! The ids of rooms and participants.

use portunus_core::Fields;
use portunus_core::media::MAX_LABEL;
pub use portunus_resources::{Id, Ids};

use crate::refusal::Refusal;

/// Reads `id`, that of a new participant: none if it may be any. It has to fit the label of a data channel.
pub(crate) fn new_participant(ids: Ids, fields: Fields<'_>) -> Result<Option<Id>, Refusal> {
    match ids.wanted(fields, "id")? {
        Some(Id::Text(text)) if text.len() > MAX_LABEL => {
            Err(Refusal::value("id", "1024 bytes at most"))
        }
        id => Ok(id),
    }
}
