//! Requests of administrators about trunks.

use std::time::Instant;

use portunus_core::Object;
use portunus_sip::agent::Command;
use serde_json::Value;

use super::registration::Standing;
use super::{Trunk, Trunks};
use crate::refusal::Refusal;

impl Trunks {
    /// Returns all trunks with their states.
    pub(crate) fn list(&self) -> Value {
        let now = Instant::now();
        self.trunks.iter().map(|trunk| trunk.facts(now)).collect()
    }

    /// Registers a trunk at once, even after a refusal.
    pub(crate) fn register(&self, name: &str) -> Result<(), Refusal> {
        let mut trunks = self.trunks.iter();
        let trunk = trunks.find(|trunk| trunk.config.name == name);
        let trunk = trunk.ok_or_else(|| Refusal::NoSuchTrunk(name.to_owned()))?;
        if trunk.standing.is_none() {
            return Err(Refusal::State("the trunk has no \"register\""));
        }
        self.office.command(Command::Register {
            account: trunk.account,
        });
        Ok(())
    }
}

impl Trunk {
    fn facts(&self, now: Instant) -> Value {
        let calls = self
            .config
            .max_calls
            .saturating_sub(self.lines.available_permits());
        let facts = Object::new()
            .with("name", self.config.name.as_str())
            .with("calls", calls);
        let facts = match &self.standing {
            None => facts,
            Some(Standing::Registering) => facts.with("registration", "registering"),
            Some(Standing::Registered) => facts.with("registration", "registered"),
            Some(Standing::Failed {
                code,
                reason,
                again,
            }) => {
                let again = again.map(|at| at.saturating_duration_since(now).as_secs());
                facts
                    .with("registration", "failed")
                    .with("code", *code)
                    .with("reason", reason.as_str())
                    .with_some("again_in", again)
            }
        };
        facts.into()
    }
}
