//! The author of a request.

use portunus_core::{
    Author, ClientAddress, Fields, Handle, Message, OutOfScope, Right, Rights, TokenScope,
};

use crate::{Id, Maker};

/// The author of a request about resources: a client or an administrator.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The rights beyond a call.
    pub rights: Rights,
    /// Whose the resources count as that they make.
    pub maker: Maker,
    /// The resources that the request may name.
    pub scope: TokenScope,
    /// The client's handle, or `None` for an administrator and for a client of another node.
    pub handle: Option<Handle>,
    /// The client of another node, if it is one.
    pub elsewhere: Option<ClientElsewhere>,
}

/// A client of another node of the cluster, as that node describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientElsewhere {
    /// Whether it shows a token that is signed for the room, or needs none there.
    pub is_signed: bool,
    /// Whether the request is about its own participation.
    pub is_own: bool,
}

impl Asker {
    /// Returns the client that sends `message`.
    pub fn client(handle: &Handle, message: &Message) -> Self {
        Asker {
            rights: message.rights,
            maker: Maker::of(message.rights, message.client),
            scope: message.scope.clone(),
            handle: Some(handle.clone()),
            elsewhere: None,
        }
    }

    /// Returns the client that makes a request by `handle`.
    pub fn author(handle: &Handle, author: &Author) -> Self {
        Asker {
            rights: author.rights,
            maker: Maker::of(author.rights, author.client),
            scope: author.scope.clone(),
            handle: Some(handle.clone()),
            elsewhere: None,
        }
    }

    /// Returns a client of another node with these rights there. That node has checked the scope
    /// of its token.
    pub fn elsewhere(rights: Rights, address: ClientAddress, client: ClientElsewhere) -> Self {
        Asker {
            rights,
            maker: Maker::of(rights, address),
            scope: TokenScope::default(),
            handle: None,
            elsewhere: Some(client),
        }
    }

    /// Returns a user of the Admin API.
    pub fn administrator() -> Self {
        Asker {
            rights: Rights::ALL,
            maker: Maker::Operator,
            scope: TokenScope::default(),
            handle: None,
            elsewhere: None,
        }
    }

    /// Returns whether they use the Admin API.
    pub fn is_administrator(&self) -> bool {
        self.handle.is_none() && self.elsewhere.is_none()
    }

    /// Returns whether they have this right.
    pub fn may(&self, right: Right) -> bool {
        self.rights.may(right)
    }

    /// Returns whether the request shows a token that is signed for `room`: `token`, or a JSON Web
    /// Token of the API. It is true without signed tokens in the server, and for administrators.
    pub fn shows_signed_token(&self, room: &Id, token: Option<&str>) -> bool {
        if let Some(client) = self.elsewhere {
            return client.is_signed;
        }
        let Some(client) = &self.handle else {
            return true;
        };
        let opens = || client.signed_token_opens(token, &format!("room={room}"));
        self.scope.opens(&room.to_string()) || opens().unwrap_or(true)
    }

    /// Checks that the client's token permits the resource in the member `name`. A request that
    /// `makes` a resource has to name it, unless the token permits all.
    pub fn check_scope(
        &self,
        fields: Fields<'_>,
        name: &str,
        makes: bool,
    ) -> Result<(), OutOfScope> {
        self.scope.check(fields.0.get(name), makes)
    }
}
