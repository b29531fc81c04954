//! The end of handles and of their PeerConnections.

use portunus_core::{Handle, Object};

/// The reason of a hangup that an operator asked for, as the client reads it.
const REASON: &str = "Admin API";

/// Detaches a handle. Its client gets `detached`.
pub(super) fn detach(handle: &Handle) -> Object {
    handle.detach();
    Object::new()
}

/// Closes the PeerConnection of a handle. Its client gets `hangup`.
pub(super) fn hangup(handle: &Handle) -> Object {
    handle.hangup(REASON);
    Object::new()
}
