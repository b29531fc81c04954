//! Reads requests: what their JSON says, as the room understands it.
//!
//! Errors come in the order in which structs declare their members, most of which are the room's.

mod publisher;
mod subscriber;

use portunus_core::media::MAX_LABEL;
use portunus_core::{FieldError, Fields};
use portunus_resources::{Id, Ids};
use portunus_room::{PersonId, Profile, State};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub(crate) use publisher::{ConfigureRequest, JoinRequest};
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

/// An id that nobody in the room has.
pub(crate) fn free_id(room: &State, ids: Ids) -> PersonId {
    person(&ids.random(|id| room.person(&person(id)).is_some()))
}

/// What somebody shows of itself.
#[derive(Deserialize)]
#[serde(remote = "Profile")]
pub(crate) struct ProfileMembers {
    display: Option<String>,
    #[serde(deserialize_with = "metadata")]
    metadata: Option<String>,
}

/// Reads an object, of which the room knows the text only.
fn metadata<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let metadata = Option::<Map<String, Value>>::deserialize(from)?;
    Ok(metadata.map(|metadata| Value::from(metadata).to_string()))
}

/// Reads what is set of single streams: the list `streams`, or else members of the request itself. `mid` returns the m-line of
/// a setting.
fn settings<'a, T: Deserialize<'a>>(
    fields: Fields<'a>,
    mid: impl Fn(&T) -> Option<&String>,
) -> Result<Vec<T>, Refusal> {
    let settings: Vec<T> = match fields.member("streams")? {
        Some(settings) => settings,
        None => vec![fields.read()?],
    };
    match settings.len() > 1 && settings.iter().any(|setting| mid(setting).is_none()) {
        true => Err(Refusal::value(
            "mid",
            "needed where there are several streams",
        )),
        false => Ok(settings),
    }
}
