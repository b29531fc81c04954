//! The messages that are being recorded now.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::file::MessageId;

/// The messages that are being recorded, with their start times in µs since 1970.
#[derive(Debug, Default)]
pub(crate) struct CurrentMessages(Mutex<BTreeMap<MessageId, u64>>);

impl CurrentMessages {
    pub(crate) fn add(&self, id: MessageId) {
        self.messages().insert(id, now());
    }

    pub(crate) fn started(&self, id: MessageId) {
        if let Some(at) = self.messages().get_mut(&id) {
            *at = now();
        }
    }

    pub(crate) fn remove(&self, id: MessageId) {
        self.messages().remove(&id);
    }

    pub(crate) fn show(&self, id: MessageId) -> Value {
        let at = self.messages().get(&id).copied().unwrap_or_default();
        json!({ "id": id.0, "start_time": at })
    }

    pub(crate) fn list(&self) -> Vec<Value> {
        let messages = self.messages();
        let show = |(id, at): (&MessageId, &u64)| json!({ "id": id.0, "start_time": at });
        messages.iter().map(show).collect()
    }

    fn messages(&self) -> MutexGuard<'_, BTreeMap<MessageId, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time in µs since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}
