//! The states of a page's registration and call.

use std::fmt;

/// The id of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PageId(pub(crate) u64);

/// The state of a page's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RegistrationStatus {
    #[default]
    Unregistered,
    Registering,
    Registered,
    Unregistering,
    /// Nothing was sent, but the page can call: guests, `send_register: false`, helpers.
    Disabled,
}

impl RegistrationStatus {
    /// Returns the name for administrators.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            RegistrationStatus::Unregistered => "unregistered",
            RegistrationStatus::Registering => "registering",
            RegistrationStatus::Registered => "registered",
            RegistrationStatus::Unregistering => "unregistering",
            RegistrationStatus::Disabled => "disabled",
        }
    }

    /// Whether the page can call.
    pub(crate) const fn may_call(self) -> bool {
        matches!(
            self,
            RegistrationStatus::Registered | RegistrationStatus::Disabled
        )
    }
}

/// The state of a page's call; idle without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallStatus {
    #[default]
    Idle,
    /// It has called, and the peer has not answered.
    Inviting,
    /// It is being called.
    Invited,
    /// It is being called and has sent a description, but has not accepted.
    Progress,
    InCall,
    /// Its own change of the call waits for an answer.
    Reinviting,
    /// The peer's change of the call waits for its answer.
    Reinvited,
    /// It has ended the call, and the peer has not confirmed it yet.
    Closing,
}

impl CallStatus {
    /// Returns the name for clients and administrators.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            CallStatus::Idle => "idle",
            CallStatus::Inviting => "inviting",
            CallStatus::Invited => "invited",
            CallStatus::Progress => "progress",
            CallStatus::InCall => "incall",
            CallStatus::Reinviting => "incall_reinviting",
            CallStatus::Reinvited => "incall_reinvited",
            CallStatus::Closing => "closing",
        }
    }

    /// Whether the call was accepted.
    pub(crate) const fn is_in_call(self) -> bool {
        matches!(
            self,
            CallStatus::InCall | CallStatus::Reinviting | CallStatus::Reinvited
        )
    }

    /// Whether it is being called, and can still accept or decline.
    pub(crate) const fn rings(self) -> bool {
        matches!(self, CallStatus::Invited | CallStatus::Progress)
    }
}

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
