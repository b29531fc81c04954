//! The plugin's requests, and what each reaches beyond the room.

use portunus_core::{Fields, Handle, Message, Reach, Requests, Right, Rights, TokenScope};
use portunus_resources::Maker;

use crate::plugin::Shared;
use crate::refusal::Refusal;

/// All of them.
pub const REQUESTS: Requests = Requests(&[
    ("setup", Reach::Call),
    ("ack", Reach::Call),
    ("restart", Reach::Call),
    ("list", Reach::Call),
    ("listparticipants", Reach::Call),
    ("exists", Reach::Call),
    ("create", Reach::Said(room)),
    ("edit", Reach::Said(room)),
    ("destroy", Reach::Said(room)),
    ("allowed", Reach::Call),
    ("kick", Reach::Call),
    ("announcement", Reach::Call),
    ("join", Reach::Call),
    ("leave", Reach::Call),
    ("message", Reach::Call),
]);

/// What a room that is made, changed or ended outlives, and whom it writes to.
fn room(fields: Fields<'_>) -> Rights {
    let has = |name| matches!(fields.text(name), Ok(Some(_)));
    let permanent = fields.boolean("permanent") == Ok(Some(true));
    let posts = has("post") || has("new_post");
    Rights::if_so(permanent, Right::Create).and(Rights::if_so(posts, Right::Forward))
}

/// Who makes a request: a client, by the API or by its data channel, or an administrator.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) rights: Rights,
    pub(crate) maker: Maker,
    /// Which rooms may be named.
    scope: TokenScope,
    /// The client's handle; none of an administrator.
    pub(crate) handle: Option<Handle>,
}

impl Asker {
    /// A client, as it makes `message`.
    pub(crate) fn client(handle: &Handle, message: &Message) -> Self {
        Asker {
            rights: message.rights,
            maker: Maker::of(message.rights, message.client),
            scope: message.scope.clone(),
            handle: Some(handle.clone()),
        }
    }

    pub(crate) fn administrator() -> Self {
        Asker {
            rights: Rights::ALL,
            maker: Maker::Operator,
            scope: TokenScope::default(),
            handle: None,
        }
    }
}

impl Shared {
    /// Checks that `asker` may make a request: that its token opens the room, and that it has the rights that it needs.
    pub(crate) fn check(
        &self,
        request: &str,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<(), Refusal> {
        asker
            .scope
            .check(fields.0.get("room"), request == "create")?;
        let rights = self.rooms.rights(fields, asker.rights);
        Ok(REQUESTS.check(request, fields, rights)?)
    }
}
