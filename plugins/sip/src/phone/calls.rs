//! The calls of a phone.

use std::collections::HashMap;

use portunus_sip::agent::{AccountId, CallId};

use crate::call::Call;
use crate::status::PageId;

/// All calls of a phone.
#[derive(Default)]
pub(super) struct Calls {
    calls: HashMap<CallId, Call>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
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

    pub(super) fn remove(&mut self, id: CallId) -> Option<Call> {
        self.calls.remove(&id)
    }

    /// Takes the calls that these pages have, and no others.
    pub(super) fn take_of(&mut self, pages: &[PageId]) -> Vec<Call> {
        let is_theirs = |call: &Call| {
            !call.pages.is_empty() && call.pages.iter().all(|page| pages.contains(page))
        };
        let theirs = self.calls.extract_if(|_, call| is_theirs(call));
        theirs.map(|(_, call)| call).collect()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.calls.values_mut()
    }

    /// Returns the call of an account with this Call-ID.
    pub(super) fn named(&self, account: AccountId, call_id: &str) -> Option<&Call> {
        let mut calls = self.calls.values();
        calls.find(|call| call.account == account && call.call_id == call_id)
    }
}
