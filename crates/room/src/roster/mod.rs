//! The participants of a room, and those who were kicked.

mod participant;
mod settings;

use std::collections::{HashMap, VecDeque};

pub(crate) use participant::Party;
pub use participant::{Participant, Permissions, Profile};
pub use settings::{MediaSettings, RecordSettings, TalkSettings};

use crate::{ConnectionId, PersonId, Refusal};

/// The limit of kicked publishers of other servers that are remembered.
const MAX_KICKED_REMOTES: usize = 64;

/// The participants of a room, by their ids and by their private ids.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    people: HashMap<PersonId, Participant>,
    by_private_id: HashMap<u32, PersonId>,
    /// The kicked participants whose connections are not gone yet.
    kicked: HashMap<ConnectionId, PersonId>,
    /// The last kicked publishers of other servers, the newest at the end.
    kicked_remotes: VecDeque<PersonId>,
}

impl Roster {
    /// Checks that no participant has this id.
    pub(crate) fn check_free(&self, id: &PersonId) -> Result<(), Refusal> {
        match self.people.contains_key(id) {
            true => Err(Refusal::IdExists(id.to_string())),
            false => Ok(()),
        }
    }

    /// Adds a participant.
    pub(crate) fn add(&mut self, mut person: Participant) {
        let id = person.id().clone();
        self.remove(&id);
        self.kicked_remotes.retain(|kicked| *kicked != id);
        person.private_id = self.new_private_id();
        self.by_private_id.insert(person.private_id, id.clone());
        self.people.insert(id, person);
    }

    /// Returns a free private id.
    fn new_private_id(&self) -> u32 {
        loop {
            let id = rand::random();
            if id != 0 && !self.by_private_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// Removes a participant.
    pub(crate) fn remove(&mut self, id: &PersonId) -> Option<Participant> {
        let person = self.people.remove(id)?;
        self.by_private_id.remove(&person.private_id());
        Some(person)
    }

    /// Removes all participants.
    pub(crate) fn remove_all(&mut self) -> impl Iterator<Item = Participant> {
        self.by_private_id.clear();
        std::mem::take(&mut self.people).into_values()
    }

    /// Removes a kicked participant and remembers it: a client until its connection is gone.
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

    /// Returns whether a participant was kicked and has not come back.
    pub(crate) fn is_kicked(&self, id: &PersonId) -> bool {
        let mut kicked = self.kicked.values().chain(&self.kicked_remotes);
        !self.people.contains_key(id) && kicked.any(|kicked| kicked == id)
    }

    /// Forgets that a client was kicked, because its connection is gone.
    pub(crate) fn forget_kicked(&mut self, connection: ConnectionId) {
        self.kicked.remove(&connection);
    }

    pub(crate) fn get(&self, id: &PersonId) -> Option<&Participant> {
        self.people.get(id)
    }

    /// Returns the participant that a request names.
    pub(crate) fn named(&self, id: &PersonId) -> Result<&Participant, Refusal> {
        let person = self.people.get(id);
        person.ok_or_else(|| Refusal::NoSuchFeed(id.to_string()))
    }

    /// Returns participant `id` if `connection` has joined as it.
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

    /// Returns the participant with this private id.
    pub(crate) fn owner_of(&self, private_id: u64) -> Option<&PersonId> {
        self.by_private_id.get(&u32::try_from(private_id).ok()?)
    }

    /// Returns a participant, to change its profile or its settings.
    pub(crate) fn get_mut(&mut self, id: &PersonId) -> Option<&mut Participant> {
        self.people.get_mut(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Participant> {
        self.people.values()
    }

    pub(crate) fn ids(&self) -> Vec<PersonId> {
        self.people.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
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
        // A new participant with a former id has another private id.
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
