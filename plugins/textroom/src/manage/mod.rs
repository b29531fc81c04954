//! The requests that manage rooms: of clients by the API and by data channels, and of administrators.

mod people;
mod rooms;

use portunus_core::{FieldError, Fields, Later, Object, Reply};
use portunus_resources::Writing;

use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::requests::Asker;
use crate::room::RoomState;

/// An answer, and the writing of the file that has to be waited for.
#[derive(Debug)]
pub(crate) struct Managed {
    answer: Object,
    writing: Option<Writing>,
}

impl Managed {
    /// The answer, and whether it has to wait for the disk.
    pub(crate) fn into_parts(self) -> (Object, Option<Writing>) {
        (self.answer, self.writing)
    }
}

/// The reply by the API. What is refused is a reply, too.
pub(crate) fn reply(managed: Result<Managed, Refusal>) -> Reply {
    match managed.map(Managed::into_parts) {
        Ok((answer, None)) => Reply::Success(answer.into()),
        Ok((answer, Some(writing))) => {
            let written = async move { written(answer, writing).await.into() };
            Reply::Later(Later::new(written))
        }
        Err(refusal) => Reply::Success(refusal.to_object().into()),
    }
}

impl From<Object> for Managed {
    fn from(answer: Object) -> Self {
        Managed {
            answer,
            writing: None,
        }
    }
}

/// The answer once a change for good is written; `permanent` says whether that went well.
pub(crate) async fn written(answer: Object, writing: Writing) -> Object {
    answer.with("permanent", writing.done().await.is_ok())
}

/// Answers a request.
type Answering = fn(&Shared, Fields<'_>, &Asker) -> Result<Managed, Refusal>;

/// What answers the request `name`, if it is one of these.
fn answering(name: &str) -> Option<Answering> {
    Some(match name {
        "list" => Shared::list,
        "listparticipants" => Shared::list_participants,
        "exists" => Shared::exists,
        "create" => Shared::create,
        "edit" => Shared::edit,
        "destroy" => Shared::destroy,
        "allowed" => Shared::allowed,
        "kick" => Shared::kick,
        "announcement" => Shared::announcement,
        _ => return None,
    })
}

/// Whether `name` is one of the requests that manage rooms.
pub(crate) fn is_managing(name: &str) -> bool {
    answering(name).is_some()
}

/// What a request that does not come by a data channel wants: what its `textroom` says, as on one, or else its `request`.
pub(crate) fn wanted<'a>(fields: Fields<'a>, request: &'a str) -> Result<&'a str, FieldError> {
    Ok(fields.string("textroom")?.unwrap_or(request))
}

impl Shared {
    /// Answers the request `name` as its client wrote it, or refuses it.
    pub(crate) fn manage(
        &self,
        name: &str,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<Managed, Refusal> {
        let lower = name.to_ascii_lowercase();
        let unsupported = || Refusal::Unsupported(name.to_owned());
        let answer = answering(&lower).ok_or_else(unsupported)?;
        self.rooms.guarded(fields, asker.maker, || {
            self.check(&lower, fields, asker)?;
            answer(self, fields, asker)
        })
    }

    /// Does something in the room that a request names and may manage.
    fn managed<T>(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&mut RoomState) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let room = self.rooms.named(fields)?;
        let mut room = room.lock();
        room.check_managed(fields)?;
        act(&mut room)
    }
}

/// The answer to requests that have nothing to tell.
pub(crate) fn success() -> Object {
    Object::new().with("textroom", "success")
}

/// Checks that members are strings, as far as they are there: what is of the wrong type is told before whether there is such a room.
fn check_types(fields: Fields<'_>, strings: &[&str]) -> Result<(), FieldError> {
    strings
        .iter()
        .try_for_each(|name| fields.string(name).map(drop))
}
