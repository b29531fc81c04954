//! The telephone of audio rooms.

use std::sync::Weak;

use portunus_sip::agent::{CallId, Command};
use portunus_telephony::{DialError, DialId, Dialled, PhoneTrunk, Telephone};

use crate::commands::Commands;
use crate::shared::Shared;

/// Calls telephones for rooms.
pub(crate) struct Switchboard {
    pub(crate) shared: Weak<Shared>,
    pub(crate) commands: Commands,
}

impl Telephone for Switchboard {
    fn dial(&self, call: Dialled) -> Result<DialId, DialError> {
        let gone = || DialError::NoTrunk(String::new());
        let shared = self.shared.upgrade().ok_or_else(gone)?;
        let mut trunks = shared.trunks().ok_or_else(gone)?;
        trunks.dial(call)
    }

    /// Takes no lock, because rooms call it under theirs.
    fn end(&self, call: DialId) -> bool {
        (self.commands)(Command::Hangup {
            call: CallId::new(call.0),
            headers: Vec::new(),
        });
        true
    }

    fn set_trunk(&self, trunk: PhoneTrunk) -> Result<(), DialError> {
        let gone = || DialError::NoTrunk(String::new());
        let shared = self.shared.upgrade().ok_or_else(gone)?;
        let mut trunks = shared.trunks().ok_or_else(gone)?;
        trunks.set(trunk)
    }

    fn remove_trunk(&self, name: &str) {
        let shared = self.shared.upgrade();
        if let Some(mut trunks) = shared.as_ref().and_then(|shared| shared.trunks()) {
            trunks.remove(name);
        }
    }

    fn transfer(&self, call: DialId, to: &str) -> bool {
        let shared = self.shared.upgrade();
        let trunks = shared.as_ref().and_then(|shared| shared.trunks());
        trunks.is_some_and(|trunks| trunks.transfer(call, to))
    }
}
