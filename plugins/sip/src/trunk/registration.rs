//! The states of trunks' registrations.

use std::time::{Duration, Instant};

use portunus_sip::agent::{AccountId, AgentEvent};

use super::Trunks;

/// The state of a trunk's registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// There was no response yet.
    Registering,
    /// It is registered.
    Registered,
    /// It was refused, or got no response.
    Failed {
        code: u16,
        reason: String,
        /// The time of the next attempt.
        again: Option<Instant>,
    },
}

impl Trunks {
    /// Takes an event of a trunk's registration.
    pub(super) fn registration_changed(&mut self, account: AccountId, event: &AgentEvent) {
        let mut trunks = self.trunks.iter_mut();
        let Some(trunk) = trunks.find(|trunk| trunk.account == account) else {
            return;
        };
        let name = trunk.config.name.as_str();
        match event {
            AgentEvent::Registered { expires, .. } => {
                if expires.is_zero() {
                    tracing::warn!(trunk = name, "the registrar of a trunk grants no time");
                } else if trunk.standing != Some(Standing::Registered) {
                    tracing::info!(trunk = name, "a trunk is registered");
                }
                trunk.standing = Some(Standing::Registered);
            }
            AgentEvent::RegistrationFailed {
                code,
                reason,
                retry,
                ..
            } => {
                let seconds = retry.unwrap_or(Duration::ZERO).as_secs();
                tracing::warn!(
                    trunk = name,
                    code,
                    "a trunk is not registered: {reason}; it is tried again in {seconds} s"
                );
                trunk.standing = Some(Standing::Failed {
                    code: *code,
                    reason: reason.clone(),
                    again: retry.map(|wait| Instant::now() + wait),
                });
            }
            _ => trunk.standing = Some(Standing::Registering),
        }
    }

    /// The number of trunks that should be registered, and are not.
    pub(crate) fn unregistered(&self) -> usize {
        let standings = self.trunks.iter().filter_map(|it| it.standing.as_ref());
        standings
            .filter(|standing| **standing != Standing::Registered)
            .count()
    }
}
