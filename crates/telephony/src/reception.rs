//! Trunks that are set while the server runs, and the receiver of their calls.

use std::sync::Arc;

use crate::Entrance;

/// A trunk that is set while the server runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhoneTrunk {
    /// Its name, which no other trunk has.
    pub name: String,
    /// The addresses and networks that call, such as `192.0.2.0/24`. Empty if it does not call.
    pub from: Vec<String>,
    /// The user of its digest when it calls. Empty if its address is enough.
    pub caller_user: String,
    /// The password of that user.
    pub caller_password: String,
    /// The numbers that may be called by it. Empty means all.
    pub called: Vec<String>,
    /// The numbers that may call. Empty means all.
    pub callers: Vec<String>,
    /// The server to call telephones by: a `sip:` URI. Empty disables it.
    pub server: String,
    /// The calling identity: a `sip:` URI. Needed with a server.
    pub identity: String,
    /// The user of the digest to the server. Empty for that of the identity.
    pub user: String,
    /// Its password.
    pub password: String,
    /// The maximum number of calls, in both directions.
    pub max_calls: usize,
}

/// A call that a [`PhoneTrunk`] brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingCall {
    /// The name of the trunk.
    pub trunk: String,
    /// The called number.
    pub called: String,
    /// The number of the caller, if it shows one.
    pub caller: Option<String>,
    /// The Call-ID.
    pub call_id: String,
}

/// The receiver of the calls of all [`PhoneTrunk`]s, whose rooms other trunks call as well.
pub trait Reception: Send + Sync {
    /// Returns the entrance for a call, or `None` to refuse it.
    fn receive(&self, call: &IncomingCall) -> Option<Arc<dyn Entrance>>;

    /// Returns the entrance of the room with this name, or `None` if there is no such room.
    fn entrance(&self, room: &str) -> Option<Arc<dyn Entrance>>;
}
