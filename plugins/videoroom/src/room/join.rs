//! Joining as a participant.

use std::collections::HashSet;

use portunus_core::{Fields, Handle, Object};
use serde_json::{Map, Value, json};

use crate::id::{Id, Ids};
use crate::members;
use crate::publication::{Origin, RecordSettings};
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::{Participant, TalkSettings};

/// What a participant's `join` says.
#[derive(Debug)]
pub(crate) struct Join {
    id: Option<Id>,
    display: Option<String>,
    metadata: Option<Map<String, Value>>,
    token: Option<String>,
    /// It has shown the room's secret, which opens everything.
    pub(crate) by_secret: bool,
    talk: TalkSettings,
}

impl Join {
    pub(crate) fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, Refusal> {
        Ok(Join {
            id: ids.new_participant(fields)?,
            display: fields.string("display")?.map(str::to_owned),
            metadata: members::object(fields, "metadata")?.cloned(),
            token: fields.string("token")?.map(str::to_owned),
            by_secret: false,
            talk: TalkSettings::read(fields)?,
        })
    }
}

impl TalkSettings {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let above_0 = |name| -> Result<Option<u64>, Refusal> {
            Ok(fields.positive(name)?.filter(|number| *number > 0))
        };
        Ok(TalkSettings {
            packets: above_0("audio_active_packets")?,
            level: above_0("audio_level_average")?,
        })
    }
}

impl RoomState {
    /// Adds a participant; gives its id.
    pub(crate) fn join(&mut self, handle: &Handle, join: Join, ids: Ids) -> Result<Id, Refusal> {
        // Whoever comes now reads of those in the answer.
        self.tell_news();
        if self.access.checked && !join.by_secret {
            let token = join.token.as_deref();
            let token = token.ok_or(Refusal::Unauthorized("a token is needed"))?;
            if !self.access.tokens.contains(token) {
                return Err(Refusal::Unauthorized("wrong token"));
            }
        }
        let id = match join.id {
            Some(id) if self.people.contains_key(&id) => return Err(Refusal::IdExists(id)),
            Some(id) => id,
            None => ids.random(|id| self.people.contains_key(id)),
        };
        let person = Participant {
            origin: Origin::Client(handle.clone()),
            id: id.clone(),
            private_id: self.new_private_id(),
            display: join.display,
            metadata: join.metadata,
            bitrate: self.options.bitrate,
            talk: join.talk,
            record: RecordSettings {
                on: self.options.record,
                name: None,
            },
            media: None,
            subscriptions: HashSet::new(),
        };
        if self.options.notify_joining {
            let joining = self.event().with("joining", Value::from(person.named()));
            self.tell_all(joining);
        }
        self.add(person);
        Ok(id)
    }

    /// Takes somebody out again whose `joinandconfigure` came to nothing.
    pub(crate) fn undo_join(&mut self, id: &Id) {
        if self.remove(id).is_some() && self.options.notify_joining {
            self.tell_all(self.event().with("leaving", id.to_json()));
        }
    }

    /// The dominant speaker, in rooms that tell who that is.
    fn dominant_told(&self) -> Option<Value> {
        let dominant = self.dominant().map(Id::to_json);
        dominant.filter(|_| self.options.dominant_speaker)
    }

    /// What somebody is told who has joined.
    pub(crate) fn joined(&self, id: &Id) -> Object {
        let others = self.publishers().filter(|person| person.id != *id);
        let publishers: Vec<_> = others.filter_map(|p| p.published(true)).collect();
        let attendees = self.options.notify_joining.then(|| {
            let silent = self
                .people
                .values()
                .filter(|person| person.id != *id && person.up().is_none());
            silent
                .map(|person| Value::from(person.named()))
                .collect::<Vec<_>>()
        });
        let person = self.people.get(id);
        let talk = person.map(|person| person.talk).unwrap_or_default();
        Object::new()
            .with("videoroom", "joined")
            .with("room", self.id.to_json())
            .with("description", self.options.description.as_str())
            .with("id", id.to_json())
            .with_some("private_id", person.map(|person| person.private_id))
            .with("publishers", json!(publishers))
            .with_some("attendees", attendees)
            .with_some("dominant", self.dominant_told())
            .with_some("audio_active_packets", talk.packets)
            .with_some("audio_level_average", talk.level)
    }
}
