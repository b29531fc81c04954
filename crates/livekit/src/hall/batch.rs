//! Updates about participants who publish nothing, in rooms of many. They are told together, so that
//! a thousand joins are not a million messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use livekit_protocol::ParticipantInfo;
use portunus_room::{PersonId, State};
use tokio::time::Instant;

use super::{Hall, frame_of};
use crate::frame::Frame;

/// The number of participants from which on a room is one of many.
const MANY: usize = 50;

/// The participants to tell of, and those that are gone.
#[derive(Debug, Default)]
pub(super) struct Batch {
    changed: BTreeSet<PersonId>,
    gone: Vec<ParticipantInfo>,
}

impl Hall {
    /// Returns an update about a participant, or `None` if the others do not see it, or are told
    /// later.
    pub(crate) fn update_soon(&self, state: &State, id: &PersonId) -> Option<Arc<Frame>> {
        if self.is_batched(state, id) {
            self.batch().changed.insert(id.clone());
            return None;
        }
        self.update(state, id)
    }

    /// Tells all clients of this door about a participant, at once or later.
    pub(crate) fn send_soon(&self, state: &State, id: &PersonId) {
        match self.is_batched(state, id) {
            true => drop(self.batch().changed.insert(id.clone())),
            false => self.send_update(state, id),
        }
    }

    /// Returns the last update about a participant, or `None` if the others are told later.
    pub(crate) fn departure(&self, id: &PersonId, info: ParticipantInfo) -> Option<Arc<Frame>> {
        self.departed().add(info.clone(), Instant::now());
        let mut batch = self.batch();
        batch.changed.remove(id);
        if self.has_many() && !info.is_publisher {
            batch.gone.push(info);
            return None;
        }
        Some(frame_of(vec![info]))
    }

    /// Tells the clients what was put off.
    pub(crate) fn send_batch(&self) {
        let batch = std::mem::take(&mut *self.batch());
        if batch.changed.is_empty() && batch.gone.is_empty() {
            return;
        }
        let state = self.room.lock();
        let mut people = self.people();
        let mut infos = batch.gone;
        for id in &batch.changed {
            people.change(id);
            let is_there = state.person(id).is_some() && !people.is_hidden(id);
            infos.extend(people.info(&state, id).filter(|_| is_there));
        }
        let frame = frame_of(infos);
        for member in people.members() {
            member.out.send(&frame);
        }
    }

    fn is_batched(&self, state: &State, id: &PersonId) -> bool {
        self.has_many() && state.published(id).is_none()
    }

    fn has_many(&self) -> bool {
        self.people().count() > MANY
    }
}
