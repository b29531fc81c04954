//! Who makes a request.

use portunus_core::{Fields, Handle, Message, OutOfScope, Right, Rights, TokenScope};

use crate::{Id, Maker};

/// Who makes a request about resources: a client or an administrator.
#[derive(Debug, Clone)]
pub struct Asker {
    /// What they may do beyond a call.
    pub rights: Rights,
    /// Whose the resources count as that they make.
    pub maker: Maker,
    /// Which resources they may name.
    pub scope: TokenScope,
    /// The client's handle, or `None` for an administrator.
    pub handle: Option<Handle>,
}

impl Asker {
    /// The client that sends `message`.
    pub fn client(handle: &Handle, message: &Message) -> Self {
        Asker {
            rights: message.rights,
            maker: Maker::of(message.rights, message.client),
            scope: message.scope.clone(),
            handle: Some(handle.clone()),
        }
    }

    /// Somebody who uses the Admin API.
    pub fn administrator() -> Self {
        Asker {
            rights: Rights::ALL,
            maker: Maker::Operator,
            scope: TokenScope::default(),
            handle: None,
        }
    }

    /// Whether they use the Admin API.
    pub fn is_administrator(&self) -> bool {
        self.handle.is_none()
    }

    /// Whether they have this right.
    pub fn may(&self, right: Right) -> bool {
        self.rights.may(right)
    }

    /// Whether they show a token that is signed for `room`: `token`, or a JSON Web Token that the API takes. Everybody does where the
    /// server has no signed tokens, and administrators always do.
    pub fn shows_signed_token(&self, room: &Id, token: Option<&str>) -> bool {
        let Some(client) = &self.handle else {
            return true;
        };
        let opens = || client.signed_token_opens(token, &format!("room={room}"));
        self.scope.opens(&room.to_string()) || opens().unwrap_or(true)
    }

    /// Checks that the client's token opens the resource that the member `name` names. A request that `makes` a resource has to
    /// name one if the token does not open all.
    pub fn check_scope(
        &self,
        fields: Fields<'_>,
        name: &str,
        makes: bool,
    ) -> Result<(), OutOfScope> {
        self.scope.check(fields.0.get(name), makes)
    }
}
