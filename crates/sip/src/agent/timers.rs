//! Names of an agent's deadlines.

use super::{AccountId, CallId, ReferId, ResolveId, SubscriptionId};

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Timer {
    Register(AccountId),
    KeepAlive(AccountId),
    Call(CallId, CallTimer),
    Subscription(SubscriptionId),
    Publication(SubscriptionId),
    Refer(ReferId),
    /// A name was not resolved in time.
    Resolve(ResolveId),
}

/// What a deadline of a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CallTimer {
    /// Repeats a 2xx.
    Ok,
    /// Repeats a reliable provisional response.
    Reliable,
    /// Repeats the provisional response of a ringing call.
    Ringing,
    /// Ends a call that nobody answered.
    Unanswered,
    /// Sends a re-INVITE again.
    Glare,
    /// Refreshes the session, or ends it.
    Session,
}

impl CallTimer {
    pub(super) const ALL: [Self; 6] = [
        Self::Ok,
        Self::Reliable,
        Self::Ringing,
        Self::Unanswered,
        Self::Glare,
        Self::Session,
    ];
}
