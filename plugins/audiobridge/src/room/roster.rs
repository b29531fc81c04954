//! Who is in a room, in the order in which they came.

use std::collections::{BTreeMap, HashMap};

use portunus_core::{HandleId, Notice};
use portunus_dsp::ParticipantId;
use portunus_resources::{Id, Ids};

use super::participant::Participant;
use crate::refusal::Refusal;

/// Who is in a room.
#[derive(Debug, Default)]
pub(super) struct Roster {
    people: BTreeMap<ParticipantId, Participant>,
    by_id: HashMap<Id, ParticipantId>,
    next: u64,
}

/// Who is told of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience<'a> {
    /// Everybody, those whose events are paused too.
    All,
    /// Those whose events are not paused.
    Listening,
    /// The same, and this one in any case.
    ListeningAnd(&'a Id),
    /// Those whose events are not paused, but this one.
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
    /// The id that somebody gets who comes: `wanted`, or a free one.
    pub(super) fn free_id(&self, wanted: Option<Id>, ids: Ids) -> Result<Id, Refusal> {
        match wanted {
            Some(id) if self.by_id.contains_key(&id) => Err(Refusal::UserExists(id)),
            Some(id) => Ok(id),
            None => Ok(ids.random(|id| self.by_id.contains_key(id))),
        }
    }

    /// The number of somebody who comes.
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

    /// Takes out whoever is there.
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

    /// The participant that the mixer calls so.
    pub(super) fn numbered(&mut self, number: ParticipantId) -> Option<&mut Participant> {
        self.people.get_mut(&number)
    }

    /// The participant `id`, if it is the client of this handle.
    pub(super) fn joined(&self, id: &Id, handle: HandleId) -> Option<&Participant> {
        self.get(id).filter(|person| person.is(handle))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Participant> {
        self.people.values()
    }

    pub(super) fn len(&self) -> usize {
        self.people.len()
    }

    /// Tells an audience something.
    pub(super) fn tell(&self, audience: Audience<'_>, notice: &Notice) {
        let told = self.people.values().filter(|person| audience.has(person));
        for person in told {
            person.tell(notice);
        }
    }
}
