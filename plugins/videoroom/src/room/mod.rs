//! A room: what happens in it, part by part.
//!
//! The parts keep their own: [`Roster`] who is there, [`Publications`] what they send, [`Subscriptions`] what is received,
//! [`Speakers`] who has the floor, and [`News`] whom the others have not been told of. What happens in a room is here, as
//! the steps that it takes of them.

mod join;
mod leave;
mod people;
mod publish;
mod relay;
mod remote;
mod speech;
mod subscribe;
mod telling;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portunus_core::Fields;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;

use crate::dummy::Dummy;
use crate::id::{Id, Ids};
use crate::news::News;
use crate::options::RoomOptions;
use crate::publication::{Origin, Publications, dummy_streams};
use crate::refusal::Refusal;
use crate::roster::{MediaSettings, Party, Profile, Roster};
use crate::speakers::Speakers;
use crate::subscription::Subscriptions;

pub(crate) use join::Join;
pub(crate) use remote::{NewRemote, hear};

/// A room. Whatever happens in it happens under its lock, so that all see it in the same order.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: Id,
    state: Mutex<RoomState>,
}

/// What is in a room.
#[derive(Debug)]
pub(crate) struct RoomState {
    pub(crate) id: Id,
    pub(crate) options: RoomOptions,
    pub(crate) access: Access,
    pub(crate) destroyed: bool,
    roster: Roster,
    publications: Publications,
    subscriptions: Subscriptions,
    speakers: Speakers,
    news: News,
}

/// Who may join.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) checked: bool,
    pub(crate) tokens: HashSet<String>,
}

impl Access {
    /// Checks the token of somebody who wants to join.
    fn check(&self, token: Option<&str>) -> Result<(), Refusal> {
        match token {
            _ if !self.checked => Ok(()),
            None => Err(Refusal::Unauthorized("a token is needed")),
            Some(token) if self.tokens.contains(token) => Ok(()),
            Some(_) => Err(Refusal::Unauthorized("wrong token")),
        }
    }
}

impl Room {
    pub(crate) fn new(
        id: Id,
        ids: Ids,
        options: RoomOptions,
        tokens: Option<Vec<String>>,
        (media, recorder): (MediaPlane, Recorder),
    ) -> Self {
        let access = Access {
            checked: tokens.is_some(),
            tokens: tokens.into_iter().flatten().collect(),
        };
        let mut state = RoomState {
            id: id.clone(),
            options,
            access,
            destroyed: false,
            roster: Roster::default(),
            publications: Publications::new(media, recorder),
            subscriptions: Subscriptions::default(),
            speakers: Speakers::default(),
            news: News::default(),
        };
        state.measure_speech();
        if let Some(dummy) = state.options.dummy.clone() {
            state.add_dummy(&dummy, ids);
        }
        Room {
            state: Mutex::new(state),
            id,
        }
    }

    /// What is in it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomState {
    /// Checks that a request may manage the room.
    pub(crate) fn check_secret(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        self.options.check_secret(fields)
    }

    /// Adds the room's dummy publisher, of which nobody is told.
    fn add_dummy(&mut self, dummy: &Dummy, ids: Ids) {
        let Ok(id) = self.roster.free_id(None, ids) else {
            return;
        };
        let profile = Profile {
            display: Some(Dummy::DISPLAY.to_owned()),
            metadata: None,
        };
        let settings = MediaSettings::default();
        self.roster.add(id.clone(), Party::Dummy, profile, settings);
        let e2ee = dummy.e2ee || self.options.require_e2ee;
        let streams = dummy_streams(dummy, &self.options);
        self.publications.start(&id, Origin::Dummy, e2ee, streams);
        self.media_up(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tokens_is_for_those_who_have_one() {
        let mut access = Access::default();
        assert!(access.check(None).is_ok());
        access.checked = true;
        access.tokens.insert("open".to_owned());
        assert!(access.check(Some("open")).is_ok());
        assert!(access.check(Some("shut")).is_err());
        assert!(access.check(None).is_err());
    }
}
