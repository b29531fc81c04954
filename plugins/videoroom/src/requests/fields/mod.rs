//! The requests of clients, read into the types of the room.
//!
//! serde reads the members in the order of the fields, so this order decides which error comes
//! first.

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

/// Returns the id of a participant.
pub(crate) fn person(id: &Id) -> PersonId {
    id.to_string().into()
}

/// Reads member `name`, the id of a participant. It has to be there.
pub(crate) fn person_in(fields: Fields<'_>, ids: Ids, name: &str) -> Result<PersonId, FieldError> {
    ids.required(fields, name).map(|id| person(&id))
}

/// Reads `id`, the wanted id of a new participant. It has to fit the label of a data channel.
pub(crate) fn wanted_id(fields: Fields<'_>, ids: Ids) -> Result<Option<PersonId>, Refusal> {
    let id = ids.wanted(fields, "id")?.map(|id| person(&id));
    match id {
        Some(id) if id.as_str().len() > MAX_LABEL => {
            Err(Refusal::value("id", "1024 bytes at most"))
        }
        id => Ok(id),
    }
}

/// Returns an id that no participant of the room has.
pub(crate) fn free_id(room: &State, ids: Ids) -> PersonId {
    person(&ids.random(|id| room.person(&person(id)).is_some()))
}

/// The members of a profile.
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

/// Reads the settings of single streams: the list `streams`, or else the request itself. `mid`
/// returns the m-line of a setting.
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
