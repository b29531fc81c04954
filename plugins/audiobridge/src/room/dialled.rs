//! Telephones that a room has called.

use std::collections::BTreeMap;

use portunus_core::{Handle, Object};
use portunus_resources::{Id, RoomContent};
use portunus_telephony::{DialId, DialNews, Telephony};
use serde_json::Value;

use super::{Room, RoomState};

/// Calls that a room makes at the same time at most, answered ones too.
pub(crate) const MAX_DIALLED: usize = 64;

/// The telephones that a room has called, from the request to the end of the call.
#[derive(Debug)]
pub(crate) struct DialledPhones {
    telephony: Telephony,
    calls: BTreeMap<DialId, String>,
}

impl DialledPhones {
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

    /// Ends a call; false if the room makes no such call.
    pub(crate) fn end(&mut self, call: DialId) -> bool {
        let known = self.calls.contains_key(&call);
        let telephone = self.telephony.telephone().filter(|_| known);
        telephone.is_some_and(|telephone| telephone.end(call))
    }

    /// Ends all of them.
    pub(super) fn end_all(&mut self) {
        for call in std::mem::take(&mut self.calls).into_keys() {
            if let Some(telephone) = self.telephony.telephone() {
                telephone.end(call);
            }
        }
    }
}

impl RoomState {
    /// How a call goes, as whoever has asked for it and whoever watches the server are told.
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

    /// The participant whose id reads so, as clients see it.
    fn caller_id(&self, id: &str) -> Option<Value> {
        let mut ids = self.roster.iter().map(|person| &person.id);
        ids.find(|own| own.to_string() == id).map(Id::to_json)
    }
}

fn with_end(about: Object, code: u16, reason: &str) -> Object {
    let about = about.with("status", "ended").with("code", code);
    about.with("reason", reason)
}

/// What whoever has asked for a call is told of its end, if that is what has happened, where the room is gone.
pub(crate) fn ended_with_room(room: &Id, call: DialId, news: &DialNews) -> Option<Object> {
    let DialNews::Ended { code, reason } = news else {
        return None;
    };
    let event = Object::new()
        .with("audiobridge", "event")
        .with("room", room.to_json())
        .with("call", call.0);
    Some(with_end(event, *code, reason))
}

/// Something has happened to a call of a room: tells `client`, if it is a client that has asked for the call.
pub(crate) fn tell_of_call(room: &Room, call: DialId, news: &DialNews, client: Option<&Handle>) {
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
