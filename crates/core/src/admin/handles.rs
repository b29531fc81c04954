//! The end of handles and of their PeerConnections.

use crate::handle::{Command, Inbox};
use crate::session::Session;
use crate::{HandleId, Object};

/// Why a PeerConnection ends that an administrator ends, as its client is told.
const REASON: &str = "Admin API";

/// The client gets `detached`.
pub(super) fn detach(session: &Session, id: HandleId, inbox: &Inbox) -> Object {
    session.remove_handle(id);
    inbox.deliver(Command::Detach { responder: None });
    Object::new()
}

/// The client gets `hangup`.
pub(super) fn hangup(inbox: &Inbox) -> Object {
    inbox.deliver(Command::Hangup {
        reason: REASON.to_owned(),
        responder: None,
    });
    Object::new()
}
