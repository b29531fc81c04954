//! The calls of the plugin.

use std::collections::HashMap;

use portunus_sip::agent::{AccountId, CallId};

use crate::call::Call;
use crate::media::MediaKey;

/// All calls, and their media.
#[derive(Default)]
pub(super) struct Calls {
    calls: HashMap<CallId, Call>,
    media: HashMap<MediaKey, CallId>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn get(&self, id: CallId) -> Option<&Call> {
        self.calls.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls.get_mut(&id)
    }

    pub(super) fn insert(&mut self, call: Call) {
        self.calls.insert(call.id, call);
    }

    /// Removes a call, and all that leads to it.
    pub(super) fn remove(&mut self, id: CallId) -> Option<Call> {
        self.media.retain(|_, call| *call != id);
        self.calls.remove(&id)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.calls.values_mut()
    }

    /// A call has these media.
    pub(super) fn add_media(&mut self, key: MediaKey, id: CallId) {
        self.media.insert(key, id);
    }

    pub(super) fn of_media(&self, key: MediaKey) -> Option<CallId> {
        self.media.get(&key).copied()
    }

    /// Returns the call of an account with this Call-ID.
    pub(super) fn named(&self, account: AccountId, call_id: &str) -> Option<&Call> {
        let mut calls = self.calls.values();
        calls.find(|call| call.account == account && call.call_id == call_id)
    }

    /// Whether a call has this Call-ID.
    pub(super) fn has_call_id(&self, call_id: &str) -> bool {
        self.calls.values().any(|call| call.call_id == call_id)
    }
}
