//! The occupants of a subscription's seats.

use std::collections::VecDeque;

use crate::PersonId;

/// Whom a subscription with seats follows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Follow {
    /// It has no seats.
    #[default]
    Nobody,
    /// One publisher, while it publishes.
    Feed(PersonId),
    /// This number of the most recent speakers, without the subscription's owner.
    Speakers(usize),
}

/// The occupants of slots. Nobody has two, and an occupant keeps its slot while it is followed.
#[derive(Debug, Default)]
pub(crate) struct Seating {
    /// The publishers that it follows.
    pub(super) follow: Follow,
    slots: Vec<Option<PersonId>>,
}

impl Seating {
    /// Returns empty slots.
    pub(super) fn new(follow: Follow, slots: usize) -> Self {
        Seating {
            follow,
            slots: vec![None; slots],
        }
    }

    /// Returns the number of speakers that it follows, if it follows speakers.
    pub(crate) const fn speakers(&self) -> Option<usize> {
        match self.follow {
            Follow::Speakers(n) => Some(n),
            Follow::Feed(_) | Follow::Nobody => None,
        }
    }

    /// Changes the number of speakers. Returns false if there are fewer slots, or it follows no
    /// speakers.
    pub(crate) fn set_speakers(&mut self, speakers: usize) -> bool {
        let fits = self.speakers().is_some() && speakers <= self.slots.len();
        if fits {
            self.follow = Follow::Speakers(speakers);
        }
        fits
    }

    /// Assigns the slots to the followed publishers: for speakers, the first ones of `ranked` that
    /// are `eligible`.
    pub(super) fn assign(&mut self, ranked: &[PersonId], eligible: impl Fn(&PersonId) -> bool) {
        let followed: Vec<&PersonId> = match &self.follow {
            Follow::Nobody => Vec::new(),
            Follow::Feed(id) => Some(id).filter(|id| eligible(id)).into_iter().collect(),
            Follow::Speakers(n) => {
                let eligible = ranked.iter().filter(|id| eligible(id));
                eligible.take((*n).min(self.slots.len())).collect()
            }
        };
        let used = self.speakers().unwrap_or(self.slots.len());
        let mut waiting: VecDeque<&PersonId> = followed.into();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            let stays = slot
                .as_ref()
                .filter(|_| place < used)
                .and_then(|id| waiting.iter().position(|waiting| *waiting == id));
            match stays {
                Some(place) => drop(waiting.remove(place)),
                None => *slot = None,
            }
        }
        let free = self.slots.iter_mut().take(used);
        for slot in free.filter(|slot| slot.is_none()) {
            *slot = waiting.pop_front().cloned();
        }
    }

    /// Returns the occupant of a slot.
    pub(super) fn occupant(&self, slot: usize) -> Option<&PersonId> {
        self.slots.get(slot)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: u64) -> PersonId {
        id.to_string().into()
    }

    fn ids(ids: &[u64]) -> Vec<PersonId> {
        ids.iter().copied().map(id).collect()
    }

    /// Returns the occupants of the slots; 0 means nobody.
    fn seated(seating: &Seating) -> Vec<u64> {
        let id = |slot: &Option<PersonId>| {
            let id = slot.as_ref().and_then(|id| id.as_str().parse().ok());
            id.unwrap_or(0)
        };
        seating.slots.iter().map(id).collect()
    }

    #[test]
    fn who_has_a_seat_keeps_it_while_followed() {
        let mut seating = Seating::new(Follow::Speakers(3), 3);
        seating.assign(&ids(&[1, 2]), |_| true);
        assert_eq!(seated(&seating), [1, 2, 0]);
        seating.assign(&ids(&[3, 2, 4, 1]), |_| true);
        assert_eq!(seated(&seating), [3, 2, 4]);
        seating.assign(&ids(&[2]), |_| true);
        assert_eq!(seated(&seating), [0, 2, 0]);
    }

    #[test]
    fn who_is_not_eligible_gives_way_to_the_next() {
        let mut seating = Seating::new(Follow::Speakers(2), 2);
        seating.assign(&ids(&[1, 2, 3]), |who| *who != id(1));
        assert_eq!(seated(&seating), [2, 3]);
    }

    #[test]
    fn fewer_speakers_have_the_first_slots() {
        let mut seating = Seating::new(Follow::Speakers(3), 3);
        seating.assign(&ids(&[1, 2, 3]), |_| true);
        assert!(!seating.set_speakers(4));
        assert!(seating.set_speakers(2));
        seating.assign(&ids(&[3, 1, 2]), |_| true);
        assert_eq!(seated(&seating), [1, 3, 0]);
        assert!(!Seating::new(Follow::Feed(id(1)), 1).set_speakers(1));
    }

    #[test]
    fn one_publisher_is_followed_whenever_it_publishes() {
        let mut seating = Seating::new(Follow::Feed(id(7)), 1);
        seating.assign(&[], |_| false);
        assert_eq!(seated(&seating), [0]);
        seating.assign(&[], |_| true);
        assert_eq!(seated(&seating), [7]);
        assert_eq!(seating.occupant(0), Some(&id(7)));
        assert_eq!(seating.occupant(1), None);
    }
}
