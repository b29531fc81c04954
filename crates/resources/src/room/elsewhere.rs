//! What other nodes of a cluster have done to rooms that this node has, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Room, RoomContent};
use crate::{Id, Refusal, Resource as _, Resources};

impl<S: RoomContent> Resources<Room<S>> {
    /// Ends the room `id`, since another node has done so.
    pub fn end_too(&self, id: &Id) {
        if !self.exists(id) {
            return;
        }
        let Ok(room) = self.get(id) else { return };
        if self.remove(&room).is_ok() {
            tracing::info!(room = %id, "a room was destroyed at another node");
            let mut state = room.lock();
            state.end(None);
            state.notify(None, || state.notice("destroyed").into());
        }
    }

    /// Ends the room `id` and removes it from the file of permanent rooms, since another node has
    /// done so `ago`. A room that was made since stays. Returns whether it is ended.
    pub fn end_permanently_too(&self, id: &Id, ago: Duration) -> bool {
        if self.is_made_within(id, ago) {
            return false;
        }
        self.end_too(id);
        let now = Instant::now();
        self.ended().note(id, now.checked_sub(ago).unwrap_or(now));
        if let Some(saved) = self.saved()
            && saved.has(id)
        {
            saved.remove_soon(id.clone(), id.clone()).detach();
        }
        true
    }

    /// Another node has the room `id`. Returns how long ago it was ended permanently, which that node
    /// may not know.
    pub fn is_listed_elsewhere(&self, id: &Id) -> Option<Duration> {
        self.ended().listed(id, Instant::now())
    }

    /// Repeats a permanent change of the room `id` that its home has made. `edit` changes the room.
    /// Does nothing if neither the configuration nor the file of this node has the room.
    pub fn edit_permanently_too<E: From<Refusal>>(
        &self,
        id: &Id,
        edit: impl FnOnce(&mut S) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.saved().is_some_and(|saved| saved.has(id)) || !self.exists(id) {
            return Ok(());
        }
        let room = self.get(id)?;
        {
            let mut state = room.lock();
            edit(&mut state)?;
            state.notify(None, || state.notice("edited").into());
        }
        self.keep_too(&room);
        Ok(())
    }

    /// Notes a room as it is in the file of permanent rooms, if this node has it there or in its
    /// configuration: another node has changed it permanently.
    pub fn keep_too(&self, room: &Arc<Room<S>>) {
        let Some(saved) = self.saved().filter(|saved| saved.has(room.id())) else {
            return;
        };
        let writing = {
            let state = room.lock();
            let is_there = !state.has_ended();
            is_there.then(|| saved.keep_soon(state.to_configured()))
        };
        if let Some(writing) = writing {
            writing.detach();
        }
    }
}
