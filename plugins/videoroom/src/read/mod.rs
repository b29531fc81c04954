//! Reads requests: what their JSON says, as the room understands it.

mod publisher;
mod subscriber;

use portunus_core::media::MAX_LABEL;
use portunus_core::{FieldError, Fields};
use portunus_resources::{Id, Ids};
use portunus_room::{PersonId, Profile};
use serde_json::Value;

pub(crate) use publisher::{ConfigureRequest, configure, talk};
pub(crate) use subscriber::{change, join_subscriber, subscriber_configure, switch, watch};

use crate::refusal::Refusal;

/// The id of somebody in a room.
pub(crate) fn person(id: &Id) -> PersonId {
    id.to_string().into()
}

/// Reads member `name`, the id of somebody, which has to be there.
pub(crate) fn person_in(fields: Fields<'_>, ids: Ids, name: &str) -> Result<PersonId, FieldError> {
    ids.required(fields, name).map(|id| person(&id))
}

/// Reads `id`, that of somebody who comes. Returns `None` if it may be any. It has to fit the label of a data channel.
pub(crate) fn wanted_id(fields: Fields<'_>, ids: Ids) -> Result<Option<PersonId>, Refusal> {
    let id = ids.wanted(fields, "id")?.map(|id| person(&id));
    match id {
        Some(id) if id.as_str().len() > MAX_LABEL => {
            Err(Refusal::value("id", "1024 bytes at most"))
        }
        id => Ok(id),
    }
}

/// Reads what somebody shows of itself.
pub(crate) fn profile(fields: Fields<'_>) -> Result<Profile, FieldError> {
    let display = fields.string("display")?.map(str::to_owned);
    let metadata = fields.object("metadata")?;
    Ok(Profile {
        display,
        metadata: metadata.map(|metadata| Value::from(metadata.clone()).to_string()),
    })
}

fn text(fields: Fields<'_>, name: &str) -> Result<Option<String>, FieldError> {
    Ok(fields.string(name)?.map(str::to_owned))
}
