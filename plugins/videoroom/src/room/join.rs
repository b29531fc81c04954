//! Joining as a participant.

use portunus_core::{Fields, Handle, Object};
use portunus_resources::{Id, Ids};
use serde_json::{Value, json};

use super::RoomState;
use crate::refusal::Refusal;
use crate::roster::{MediaSettings, Participant, Party, Profile, RecordSettings, TalkSettings};

/// What a participant's `join` says.
#[derive(Debug)]
pub(crate) struct Join {
    id: Option<Id>,
    profile: Profile,
    token: Option<String>,
    /// It has shown the room's secret, which opens everything.
    pub(crate) by_secret: bool,
    talk: TalkSettings,
}

impl Join {
    pub(crate) fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, Refusal> {
        Ok(Join {
            id: Participant::wanted_id(ids, fields)?,
            profile: Profile::read(fields)?,
            token: fields.string("token")?.map(str::to_owned),
            by_secret: false,
            talk: TalkSettings::read(fields)?,
        })
    }
}

impl RoomState {
    /// Adds a participant; gives its id.
    pub(crate) fn join(&mut self, handle: &Handle, join: Join, ids: Ids) -> Result<Id, Refusal> {
        // Whoever comes now reads of those in the answer.
        self.tell_news();
        if !join.by_secret {
            self.allowed.check(join.token.as_deref())?;
        }
        let id = self.roster.free_id(join.id, ids)?;
        let settings = MediaSettings {
            bitrate: self.options.bitrate,
            talk: join.talk,
            record: RecordSettings::of_room(self.options.record),
        };
        let party = Party::Client(handle.clone());
        self.roster.add(id.clone(), party, join.profile, settings);
        if let Some(person) = self.roster.get(&id)
            && self.options.notify_joining
        {
            let joining = self.event().with("joining", person.named());
            self.tell_others(&id, joining);
        }
        tracing::info!(room = %self.id, %id, handle = %handle.id(), "participant joined");
        Ok(id)
    }

    /// Takes somebody out again whose `joinandconfigure` came to nothing.
    pub(crate) fn undo_join(&mut self, id: &Id) {
        if self.remove(id).is_none() {
            return;
        }
        tracing::info!(room = %self.id, %id, "participant left");
        if self.options.notify_joining {
            self.tell_all(self.event().with("leaving", id.to_json()));
        }
    }

    /// What somebody is told who has joined.
    pub(crate) fn joined(&self, id: &Id) -> Object {
        let feeds = self.publications.in_order().map(|(feed, _)| feed);
        let others = feeds.filter(|feed| *feed != id);
        let publishers: Vec<_> = others.filter_map(|id| self.published(id, true)).collect();
        let silent = |person: &&Participant| {
            person.id() != id && self.publications.up(person.id()).is_none()
        };
        let attendees = self.options.notify_joining.then(|| {
            let silent = self.roster.iter().filter(silent);
            silent
                .map(|person| Value::from(person.named()))
                .collect::<Vec<_>>()
        });
        let person = self.roster.get(id);
        let talk = person.map(|person| person.settings.talk);
        let dominant = self.speakers.dominant().map(Id::to_json);
        Object::new()
            .with("videoroom", "joined")
            .with("room", self.id.to_json())
            .with("description", self.options.description.as_str())
            .with("id", id.to_json())
            .with_some("private_id", person.map(Participant::private_id))
            .with("publishers", json!(publishers))
            .with_some("attendees", attendees)
            .with_some(
                "dominant",
                dominant.filter(|_| self.options.dominant_speaker),
            )
            .with_some("audio_active_packets", talk.and_then(|talk| talk.packets))
            .with_some("audio_level_average", talk.and_then(|talk| talk.level))
    }
}
