//! Ids of an agent's accounts, calls, requests and subscriptions.

use std::fmt;

/// The bit that marks ids given out by the agent.
const OWN: u64 = 1 << 63;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u64);

        impl $name {
            /// Makes an id of the agent's owner. The highest bit is the agent's, and is cleared.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number & !OWN)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Whether the agent gave it out, for something that came from a peer.
            #[must_use]
            pub fn is_incoming(self) -> bool {
                self.0 & OWN != 0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

ids! {
    /// An account: an identity, and perhaps its registration. Chosen by the owner.
    AccountId;
    /// A call. Chosen by the owner for outgoing calls, by the agent for incoming ones.
    CallId;
    /// A request of the owner that gets a response. Chosen by the owner.
    RequestId;
    /// A subscription or a publication of the owner. Chosen by the owner.
    SubscriptionId;
    /// A REFER that came from a peer. Given out by the agent.
    ReferId;
}

impl CallId {
    /// An id given out by the agent.
    pub(super) fn own(number: u64) -> Self {
        Self(number | OWN)
    }
}

impl ReferId {
    /// An id given out by the agent.
    pub(super) fn own(number: u64) -> Self {
        Self(number | OWN)
    }
}
