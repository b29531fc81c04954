//! Who is in a room, and who was thrown out of it.

mod participant;
mod settings;

use std::collections::{HashMap, VecDeque};

pub(crate) use participant::Party;
pub use participant::{Participant, Permissions, Profile};
pub use settings::{MediaSettings, RecordSettings, TalkSettings};

use crate::{ConnectionId, PersonId, Refusal, Told};

/// Publishers of other servers that are remembered after they were thrown out.
const MAX_KICKED_REMOTES: usize = 64;

/// Who is in a room. Each participant is known by its own id and by its own private id, and nobody else is.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    people: HashMap<PersonId, Participant>,
    by_private_id: HashMap<u32, PersonId>,
    /// Who was thrown out and still holds the connection.
    kicked: HashMap<ConnectionId, PersonId>,
    /// Publishers of other servers that were thrown out last, the newest at the end.
    kicked_remotes: VecDeque<PersonId>,
}

impl Roster {
    /// Checks that nobody has an id.
    pub(crate) fn check_free(&self, id: &PersonId) -> Result<(), Refusal> {
        match self.people.contains_key(id) {
            true => Err(Refusal::IdExists(id.to_string())),
            false => Ok(()),
        }
    }

    /// Adds somebody under an id that is free.
    pub(crate) fn add(&mut self, mut person: Participant) {
        let id = person.id().clone();
        self.remove(&id);
        self.kicked_remotes.retain(|kicked| *kicked != id);
        person.private_id = self.new_private_id();
        self.by_private_id.insert(person.private_id, id.clone());
        self.people.insert(id, person);
    }

    /// A private id that nobody has.
    fn new_private_id(&self) -> u32 {
        loop {
            let id = rand::random();
            if id != 0 && !self.by_private_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// Takes somebody out.
    pub(crate) fn remove(&mut self, id: &PersonId) -> Option<Participant> {
        let person = self.people.remove(id)?;
        self.by_private_id.remove(&person.private_id());
        Some(person)
    }

    /// Takes out whoever is there.
    pub(crate) fn remove_all(&mut self) -> impl Iterator<Item = Participant> {
        self.by_private_id.clear();
        std::mem::take(&mut self.people).into_values()
    }

    /// Takes somebody out who is thrown out, and remembers that: of a client as long as its connection is there.
    pub(crate) fn kick(&mut self, id: &PersonId) -> Option<Participant> {
        let person = self.remove(id)?;
        if let Some(connection) = person.connection() {
            self.kicked.insert(connection.id(), id.clone());
            return Some(person);
        }
        if self.kicked_remotes.len() >= MAX_KICKED_REMOTES {
            self.kicked_remotes.pop_front();
        }
        self.kicked_remotes.push_back(id.clone());
        Some(person)
    }

    /// Whether this one was thrown out and has not come back.
    pub(crate) fn is_kicked(&self, id: &PersonId) -> bool {
        let mut kicked = self.kicked.values().chain(&self.kicked_remotes);
        !self.people.contains_key(id) && kicked.any(|kicked| kicked == id)
    }

    /// A client's connection ends.
    pub(crate) fn forget_kicked(&mut self, connection: ConnectionId) {
        self.kicked.remove(&connection);
    }

    pub(crate) fn get(&self, id: &PersonId) -> Option<&Participant> {
        self.people.get(id)
    }

    /// The one that a request names as `id`.
    pub(crate) fn named(&self, id: &PersonId) -> Result<&Participant, Refusal> {
        let person = self.people.get(id);
        person.ok_or_else(|| Refusal::NoSuchFeed(id.to_string()))
    }

    /// The participant that `connection` has joined as.
    pub(crate) fn joined(
        &self,
        id: &PersonId,
        connection: ConnectionId,
    ) -> Result<&Participant, Refusal> {
        let person = self.people.get(id);
        person
            .filter(|person| person.is(connection))
            .ok_or(Refusal::NotInRoom)
    }

    /// The participant whose private id it is.
    pub(crate) fn owner_of(&self, private_id: u64) -> Option<&PersonId> {
        self.by_private_id.get(&u32::try_from(private_id).ok()?)
    }

    /// Somebody, to change what it shows or how its media is treated.
    pub(crate) fn get_mut(&mut self, id: &PersonId) -> Option<&mut Participant> {
        self.people.get_mut(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Participant> {
        self.people.values()
    }

    pub(crate) fn ids(&self) -> Vec<PersonId> {
        self.people.keys().cloned().collect()
    }

    /// Tells all clients but that of `subject`.
    pub(crate) fn tell(&self, subject: Option<&PersonId>, told: &Told<'_>) {
        let others = self.people.values();
        for person in others.filter(|person| Some(person.id()) != subject) {
            person.tell(told);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn add(roster: &mut Roster, id: &PersonId, party: Party) -> u64 {
        roster.add(Participant::new(id.clone(), party));
        roster.get(id).unwrap().private_id().into()
    }

    #[test]
    fn a_private_id_is_of_its_participant_as_long_as_it_is_there() {
        let [al, bo]: [PersonId; 2] = ["al".into(), "bo".into()];
        let mut roster = Roster::default();
        let of_al = add(&mut roster, &al, Party::Remote);
        let of_bo = add(&mut roster, &bo, Party::Remote);
        assert_eq!(roster.owner_of(of_al), Some(&al));
        assert_eq!(roster.owner_of(of_bo), Some(&bo));
        roster.remove(&al);
        assert_eq!(roster.owner_of(of_al), None);
        assert_eq!(roster.owner_of(u64::MAX), None);
        // Whoever comes with an id that was taken is not its first holder.
        let again = add(&mut roster, &bo, Party::Remote);
        assert_eq!(roster.owner_of(of_bo), None);
        assert_eq!(roster.owner_of(again), Some(&bo));
        assert_eq!(roster.iter().count(), 1);
    }

    #[test]
    fn an_id_is_free_if_nobody_has_it() {
        let al = PersonId::from("al");
        let mut roster = Roster::default();
        assert_eq!(roster.check_free(&al), Ok(()));
        add(&mut roster, &al, Party::Dummy);
        assert!(roster.check_free(&al).is_err());
    }

    #[test]
    fn who_was_thrown_out_is_remembered_until_it_comes_back() {
        let mut roster = Roster::default();
        let ids = (0..=MAX_KICKED_REMOTES).map(|id| PersonId::from(id.to_string()));
        let ids: Vec<PersonId> = ids.collect();
        for id in &ids {
            add(&mut roster, id, Party::Remote);
            assert!(!roster.is_kicked(id));
            roster.kick(id);
            assert!(roster.is_kicked(id));
        }
        assert!(!roster.is_kicked(&ids[0]), "the first is forgotten");
        add(&mut roster, &ids[1], Party::Remote);
        assert!(!roster.is_kicked(&ids[1]));
        roster.remove(&ids[1]);
        assert!(!roster.is_kicked(&ids[1]));
    }
}
