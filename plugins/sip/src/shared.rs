//! The state that all handles of the plugin share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::Fields;
use portunus_sip::agent::AgentEvent;
use serde_json::{Value, json};

use crate::counts::Counts;
use crate::phones::Phones;
use crate::refusal::Refusal;
use crate::trunk::Trunks;

/// The state that all handles of the plugin share.
pub(crate) struct Shared {
    phones: Arc<Phones>,
    /// `None` without trunks. Lock order: this lock is not taken while one of a phone is held, nor
    /// the other way around.
    trunks: Option<Mutex<Trunks>>,
    pub(crate) counts: Counts,
}

impl Shared {
    pub(crate) fn new(phones: Arc<Phones>, trunks: Option<Trunks>) -> Self {
        Shared {
            phones,
            trunks: trunks.map(Mutex::new),
            counts: Counts::default(),
        }
    }

    pub(crate) fn phones(&self) -> &Phones {
        &self.phones
    }

    /// Handles an event of the SIP stack.
    pub(crate) fn agent_event(&self, event: AgentEvent) {
        self.counts.note(&event);
        let left = match self.trunks() {
            Some(mut trunks) => trunks.take(event),
            None => Some(event),
        };
        if let Some(event) = left {
            self.phones().agent_event(event);
        }
    }

    /// Answers an administrator.
    pub(crate) fn admin(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let name: &str = fields.required("request")?;
        match name.to_ascii_lowercase().as_str() {
            "trunks" => {
                let trunks = self.trunks().map(|trunks| trunks.list());
                let trunks = trunks.unwrap_or_else(|| Value::Array(Vec::new()));
                Ok(json!({ "sip": "trunks", "trunks": trunks }))
            }
            "register_trunk" => {
                let trunk: &str = fields.required("trunk")?;
                let none = || Refusal::NoSuchTrunk(trunk.to_owned());
                self.trunks().ok_or_else(none)?.register(trunk)?;
                Ok(json!({ "sip": "registering", "trunk": trunk }))
            }
            _ => Err(Refusal::UnknownRequest(name.to_owned())),
        }
    }

    pub(crate) fn trunks(&self) -> Option<MutexGuard<'_, Trunks>> {
        let trunks = self.trunks.as_ref()?;
        Some(trunks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
