//! The telephones that a room calls.

use std::collections::BTreeMap;

use portunus_core::{Handle, Object};
use portunus_resources::{Id, RoomContent};
use portunus_telephony::{DialId, DialNews, Telephony};
use serde_json::Value;

use super::{Room, RoomState};

/// The limit of calls that a room makes at the same time, including answered ones.
pub(crate) const MAX_DIALLED: usize = 64;

/// The calls of a room, from the request to the end of the call.
#[derive(Debug)]
pub(crate) struct Phones {
    telephony: Telephony,
    calls: BTreeMap<DialId, String>,
}

impl Phones {
    pub(super) fn new(telephony: Telephony) -> Self {
        Self {
            telephony,
            calls: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn add(&mut self, call: DialId, to: String) {
        self.calls.insert(call, to);
    }

    fn remove(&mut self, call: DialId) {
        self.calls.remove(&call);
    }

    /// Ends a call. Returns false if the room makes no such call.
    pub(crate) fn end(&mut self, call: DialId) -> bool {
        let known = self.calls.contains_key(&call);
        let telephone = self.telephony.telephone().filter(|_| known);
        telephone.is_some_and(|telephone| telephone.end(call))
    }

    /// Ends all calls.
    pub(super) fn end_all(&mut self) {
        for call in std::mem::take(&mut self.calls).into_keys() {
            if let Some(telephone) = self.telephony.telephone() {
                telephone.end(call);
            }
        }
    }
}

impl RoomState {
    /// Adds the progress of a call to an event.
    fn progress(&self, about: Object, call: DialId, news: &DialNews) -> Object {
        let about = about.with("call", call.0);
        match news {
            DialNews::Ringing => about.with("status", "ringing"),
            DialNews::Answered(id) => about
                .with("status", "answered")
                .with_some("id", self.caller_id(id)),
            DialNews::Ended { code, reason } => with_end(about, *code, reason),
        }
    }

    /// Returns the id of the participant with this text, as JSON.
    fn caller_id(&self, id: &str) -> Option<Value> {
        let mut ids = self.roster.iter().map(|person| &person.id);
        ids.find(|own| own.to_string() == id).map(Id::to_json)
    }
}

fn with_end(about: Object, code: u16, reason: &str) -> Object {
    let about = about.with("status", "ended").with("code", code);
    about.with("reason", reason)
}

/// Returns the last event about a call whose room is gone, or `None` if the call has not ended.
pub(crate) fn end_event(room: &Id, call: DialId, news: &DialNews) -> Option<Object> {
    let DialNews::Ended { code, reason } = news else {
        return None;
    };
    let event = Object::new()
        .with("audiobridge", "event")
        .with("room", room.to_json())
        .with("call", call.0);
    Some(with_end(event, *code, reason))
}

/// Reports the progress of a call to subscribers, and to the client that asked for it, if any.
pub(crate) fn notify_call(room: &Room, call: DialId, news: &DialNews, client: Option<&Handle>) {
    let mut state = room.lock();
    if let DialNews::Ended { .. } = news {
        state.phones.remove(call);
    }
    state.notify(client, || {
        let notice = state.notice("dialled");
        state.progress(notice, call, news).into()
    });
    let event = state.progress(state.event(), call, news);
    if let Some(client) = client {
        client.push(None, event, None);
    }
}
