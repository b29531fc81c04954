//! The requests that call telephones into a room: additions of ours to the Janus API.

use std::sync::Arc;

use portunus_core::{DialId, Dialled, Fields};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Asker, success_in};
use crate::members::{Members, Type, check};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::{MAX_DIALLED, PhoneEntrance};

/// The types of `dial_out`.
const DIALLED: Members = &[
    ("secret", Type::Text),
    ("to", Type::NeededText),
    ("trunk", Type::Text),
    ("display", Type::Text),
];

/// The types of `stop_dial_out`.
const STOPPED: Members = &[("secret", Type::Text), ("call", Type::NeededNumber)];

/// News of a call that wait at most: it has three.
const NEWS: usize = 8;

impl Shared {
    /// Calls a telephone into a room. The reply says that it is called; how it goes follows by events.
    pub(super) fn dial_out(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Value, Refusal> {
        check(fields, DIALLED)?;
        self.rooms.ids().required(fields, "room")?;
        let to = fields.required_string("to")?.to_owned();
        let telephone = self.doors.telephone().ok_or(Refusal::NoTelephone)?;
        let room = self.managed_room(fields)?;
        if room.lock().phones.len() >= MAX_DIALLED {
            return Err(Refusal::Unknown(format!(
                "A room calls {MAX_DIALLED} telephones at a time at most"
            )));
        }
        let (tell, mut news) = mpsc::channel(NEWS);
        let call = telephone.dial(Dialled {
            to: to.clone(),
            trunk: fields.text("trunk")?.map(str::to_owned),
            display: fields.text("display")?.map(str::to_owned),
            room: Arc::new(PhoneEntrance::of(&room, self)),
            tell,
        });
        let call = call.map_err(Refusal::Dial)?;
        let mut state = room.lock();
        state.phones.add(call, to.clone());
        let reply = success_in(&state).with("call", call.0).with("to", to);
        drop(state);
        let client = asker.handle().cloned();
        let room = Arc::downgrade(&room);
        tokio::spawn(async move {
            while let Some(news) = news.recv().await {
                let Some(room) = room.upgrade() else { return };
                room.dialled(call, &news, client.as_ref());
            }
        });
        Ok(reply.into())
    }

    /// Ends a call of `dial_out`, whether it was answered or still rings.
    pub(super) fn stop_dial_out(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        check(fields, STOPPED)?;
        self.rooms.ids().required(fields, "room")?;
        let call = fields.positive("call")?;
        let call = call.ok_or_else(|| Refusal::missing("call"))?;
        self.managed(fields, STOPPED, |room| {
            match room.phones.end(DialId(call)) {
                true => Ok(success_in(room).with("call", call).into()),
                false => Err(Refusal::NoSuchCall(call)),
            }
        })
    }
}
