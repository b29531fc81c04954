//! Rooms that get another home.

use std::sync::Arc;

use portunus_resources::{AllowedTokens, Id, Maker, RoomContent as _};

use super::visits::Visited;
use super::{TextRooms, lock};
use crate::contact::{Contact, NodeName, RoomMessage};
use crate::other_nodes::OtherNodes as _;
use crate::post::Reachable;
use crate::room::{Origin, Room};
use crate::shared::Shared;

/// How many looks, of which there is one a second, a room of a lost node stays without members.
const UNUSED: u32 = 60;

impl TextRooms {
    /// Looks where a room is at home, after a change, and moves members there. `is_lost` says that
    /// the former home was lost, so that it does not tell what has become of the room.
    pub(super) fn settle(&self, room: &str, is_lost: bool) {
        let Some(shared) = self.shared() else { return };
        let Some(id) = shared.rooms.ids().parse(room) else {
            return;
        };
        let home = self.home(&id);
        let visited = lock(&self.0.visits).home(room);
        match (home, visited) {
            (Some(home), Some(visited)) => {
                let listing = {
                    let listings = lock(&self.0.listings);
                    listings.home(room).map(|(_, listing)| listing.clone())
                };
                lock(&self.0.visits).note_listing(room, listing);
                if home != visited {
                    self.move_members(&home, room);
                }
            }
            (Some(home), None) => self.yield_room(&shared, &id, &home),
            (None, Some(_)) => self.take_room(&shared, &id, is_lost),
            (None, None) => {}
        }
    }

    fn move_members(&self, home: &NodeName, room: &str) {
        let Some(presence) = lock(&self.0.visits).move_to(home, room) else {
            return;
        };
        tracing::info!(room, %home, "textroom: the members go on at another node");
        let message = RoomMessage::Present {
            rooms: vec![presence],
            all: false,
        };
        self.send(home, &message);
    }

    /// Another node has a room of this one for a longer time. The members go there if operators have
    /// configured both. Otherwise two clients have made a room of the same id at the same moment, and
    /// one of them ends.
    fn yield_room(&self, shared: &Shared, id: &Id, home: &NodeName) {
        if !shared.rooms.exists(id) {
            return;
        }
        let Ok(room) = shared.rooms.get(id) else {
            return;
        };
        let mut state = room.lock();
        if !state.origin.is_shared {
            tracing::info!(%id, %home, "textroom: another node has a room of this id already");
            state.end(None);
            drop(state);
            // It may be gone already.
            let _ = shared.rooms.remove(&room);
            return;
        }
        let names = state.names();
        let members = state.take_members();
        drop(state);
        if !members.is_empty() {
            let name = id.to_string();
            lock(&self.0.visits).add(home, &name, members, names);
            self.move_members(home, &name);
        }
    }

    /// No other node has a room any more whose members are here.
    fn take_room(&self, shared: &Arc<Shared>, id: &Id, is_lost: bool) {
        let name = id.to_string();
        let own = match shared.rooms.exists(id) {
            true => shared.rooms.get(id).ok(),
            false => None,
        };
        if own.is_none() && !is_lost {
            // Its home has ended it, and tells the members.
            return;
        }
        let taken = lock(&self.0.visits).take(&name);
        let Some((visited, handles)) = taken else {
            return;
        };
        let room = own.or_else(|| adopt(shared, id, &visited));
        let Some(room) = room else {
            // Nobody can check its tokens any more.
            let event = shared.destroyed(id);
            for handle in handles.values() {
                Contact::Here(handle.clone()).send(&event);
            }
            return;
        };
        tracing::info!(%id, "textroom: a room goes on at this node");
        let mut state = room.lock();
        for (guest, name) in &visited.own {
            if let Some(handle) = handles.get(guest) {
                state.restore(Contact::Here(handle.clone()), name);
            }
        }
        state.restore_history(&visited.history);
        let names = visited.names.unwrap_or_default();
        state.tell_gone(names.into_keys());
        drop(state);
        let mut visits = lock(&self.0.visits);
        for guest in visited.own.keys() {
            visits.come(*guest, Arc::downgrade(&room));
        }
        drop(visits);
        // Other nodes may have taken it, too.
        self.tell_changed_rooms();
    }

    /// Ends rooms of lost nodes that nobody is in any more.
    pub(super) fn end_unused(&self) {
        let Some(shared) = self.shared() else { return };
        for room in shared.rooms.all() {
            let mut state = room.lock();
            if state.origin.is_adopted && state.idle() >= UNUSED {
                state.end(None);
                drop(state);
                // It may be gone already.
                let _ = shared.rooms.remove(&room);
            }
        }
    }
}

/// Makes the room of a lost node here, if that can be.
fn adopt(shared: &Shared, id: &Id, visited: &Visited) -> Option<Arc<Room>> {
    let listing = visited.listing.as_ref().filter(|it| !it.checks_tokens)?;
    let origin = Origin {
        is_shared: true,
        is_adopted: true,
        ..listing.origin
    };
    let make = |options| {
        let tokens = AllowedTokens::default();
        let (maker, reachable) = (Maker::Operator, Reachable::Outgoing);
        shared.make(Some(id.clone()), options, tokens, maker, reachable, origin)
    };
    let options = listing.options.clone();
    let made = make(options.clone()).or_else(|refusal| {
        tracing::warn!(%id, %refusal, "textroom: a room of a lost node posts nothing here");
        let post = None;
        make(crate::options::RoomOptions { post, ..options })
    });
    made.ok()
}
