//! The requests that manage rooms: of clients by the API and by data channels, and of
//! administrators.

mod people;
mod rooms;

use portunus_core::{Asked, FieldError, Fields, Object, Reply};
use portunus_resources::{Answer, Asker};

use crate::refusal::Refusal;
use crate::requests::Management;
use crate::shared::Shared;

/// Returns the reply by the API, also to a refused request.
pub(crate) fn reply(changed: Result<Answer, Refusal>) -> Reply {
    let refused = |refusal: Refusal| Answer::from(refusal.to_object());
    changed.unwrap_or_else(refused).reply()
}

/// Returns the name of a request of the API: its `textroom`, as on a data channel, or else its
/// `request`.
pub(crate) fn requested_name<'a>(
    fields: Fields<'a>,
    request: &'a str,
) -> Result<&'a str, FieldError> {
    Ok(fields.member("textroom")?.unwrap_or(request))
}

impl Shared {
    /// Answers the request `name`.
    pub(crate) fn manage(
        &self,
        name: &str,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<Answer, Refusal> {
        let unsupported = || Refusal::Unsupported(name.to_owned());
        let asked = Asked::<Management>::named(name).ok_or_else(unsupported)?;
        let answer = || {
            let makes = asked == Asked::unnamed(Management::Create);
            asker.check_scope(fields, "room", makes)?;
            let rights = self.rooms.rights(fields, asker.rights);
            match asked.permit(fields, rights)? {
                Management::List => self.list(fields, asker).map(Answer::from),
                Management::ListParticipants => self.list_participants(fields).map(Answer::from),
                Management::Exists => self.exists(fields).map(Answer::from),
                Management::Create => self.create(fields, asker),
                Management::Edit => self.edit(fields, asker),
                Management::Destroy => self.destroy(fields, asker),
                Management::Allowed => self.allowed(fields).map(Answer::from),
                Management::Kick => self.kick(fields, asker).map(Answer::from),
                Management::Announcement => self.announcement(fields).map(Answer::from),
            }
        };
        self.rooms.guarded(fields, asker.maker, answer)
    }
}

/// Returns the answer without further members.
pub(crate) fn success() -> Object {
    Object::new().with("textroom", "success")
}
