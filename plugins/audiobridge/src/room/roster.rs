//! The participants of a room, in the order in which they joined.

use std::collections::{BTreeMap, HashMap};

use portunus_core::{HandleId, Notice};
use portunus_dsp::ParticipantId;
use portunus_resources::{Id, Ids};
use serde_json::Value;

use super::participant::Participant;
use crate::cluster::send_to_all;
use crate::refusal::Refusal;

/// The participants of a room.
#[derive(Debug, Default)]
pub(super) struct Roster {
    people: BTreeMap<ParticipantId, Participant>,
    by_id: HashMap<Id, ParticipantId>,
    next: u64,
}

/// The recipients of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience<'a> {
    /// All participants, also those with paused events.
    All,
    /// All whose events are not paused.
    Listening,
    /// All whose events are not paused, and this one.
    ListeningAnd(&'a Id),
    /// All whose events are not paused, without this one.
    Others(&'a Id),
}

impl Audience<'_> {
    fn has(self, person: &Participant) -> bool {
        let listens = !person.settings.is_paused();
        match self {
            Audience::All => true,
            Audience::Listening => listens,
            Audience::ListeningAnd(id) => listens || person.id == *id,
            Audience::Others(id) => listens && person.id != *id,
        }
    }
}

impl Roster {
    /// Returns the wanted id, or a free one.
    pub(super) fn free_id(&self, wanted: Option<Id>, ids: Ids) -> Result<Id, Refusal> {
        match wanted {
            Some(id) if self.by_id.contains_key(&id) => Err(Refusal::UserExists(id)),
            Some(id) => Ok(id),
            None => Ok(ids.random(|id| self.by_id.contains_key(id))),
        }
    }

    /// Returns a new number for the mixer.
    pub(super) fn next_number(&mut self) -> ParticipantId {
        self.next += 1;
        ParticipantId(self.next)
    }

    pub(super) fn add(&mut self, person: Participant) {
        self.by_id.insert(person.id.clone(), person.number);
        self.people.insert(person.number, person);
    }

    pub(super) fn remove(&mut self, id: &Id) -> Option<Participant> {
        let number = self.by_id.remove(id)?;
        self.people.remove(&number)
    }

    /// Removes all participants.
    pub(super) fn remove_all(&mut self) -> impl Iterator<Item = Participant> {
        self.by_id.clear();
        std::mem::take(&mut self.people).into_values()
    }

    pub(super) fn get(&self, id: &Id) -> Option<&Participant> {
        self.people.get(self.by_id.get(id)?)
    }

    pub(super) fn get_mut(&mut self, id: &Id) -> Option<&mut Participant> {
        self.people.get_mut(self.by_id.get(id)?)
    }

    /// Returns the participant with this number in the mixer.
    pub(super) fn numbered(&mut self, number: ParticipantId) -> Option<&mut Participant> {
        self.people.get_mut(&number)
    }

    /// Returns the participant `id` if it is the client of this handle.
    pub(super) fn joined(&self, id: &Id, handle: HandleId) -> Option<&Participant> {
        self.get(id).filter(|person| person.is(handle))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Participant> {
        self.people.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Participant> {
        self.people.values_mut()
    }

    /// The ids of all participants.
    pub(super) fn ids(&self) -> Vec<Id> {
        self.iter().map(|person| person.id.clone()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.people.len()
    }

    /// Sends a message to an audience.
    pub(super) fn send(&self, audience: Audience<'_>, event: Value) {
        let recipients = || self.people.values().filter(|person| audience.has(person));
        send_to_all(recipients().filter_map(|person| person.who.far()), &event);
        let notice = Notice::new(event);
        for person in recipients() {
            person.send(&notice);
        }
    }
}
