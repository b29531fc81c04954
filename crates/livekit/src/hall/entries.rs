//! Who may join a room. In a cluster its home decides: of two clients with one identity the later
//! one stays, wherever they are.
//!
//! The home numbers the clients that it lets in. Nodes learn of each other's clients in any order, and
//! each keeps the one with the greatest number.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use livekit_protocol::{DisconnectReason, leave_request};
use portunus_room::{ClaimRefusal, Displaced, PersonId, State};

use super::far::{FarContent, Replaced};
use super::out::leave;
use super::room_note::RoomNote;
use super::{Event, Hall, Member, Role, now_ms};

/// The most sessions that are kept from joining.
const MAX_BARRED: usize = 256;

/// The sessions that others have replaced before they were in the room, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Barred(VecDeque<String>);

/// What the home of a room says of a client that wants to join.
#[derive(Debug)]
pub(crate) enum Entry {
    /// This node decides.
    Unasked,
    /// The client may join. The room is like this.
    Let(Box<RoomNote>),
}

/// The reason why a client cannot join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EntryRefusal {
    /// The room has as many participants as it may have.
    #[error("room has exceeded its max participants")]
    Full,
    /// A participant that cannot be replaced has the identity.
    #[error("another participant has this identity")]
    Taken,
    /// The room is over.
    #[error("requested room does not exist")]
    Gone,
}

impl Hall {
    /// Lets a client with this session join, at `node` or (`None`) here: it gets the identity, and one
    /// of the places. Returns when it was let in, as a number that is greater than those before.
    pub(crate) fn admit(
        &self,
        identity: &str,
        sid: &str,
        node: Option<&str>,
    ) -> Result<u64, EntryRefusal> {
        let id = self.id_of(identity);
        let limit = usize::try_from(self.options().max_participants);
        let limit = limit.ok().filter(|limit| *limit > 0);
        let mut state = self.room.lock();
        if state.is_destroyed() {
            return Err(EntryRefusal::Gone);
        }
        if self.rooms.others().is_none() {
            if state.person(&id).is_some() && self.member(&id).is_none() {
                return Err(EntryRefusal::Taken);
            }
            check_limit(&state, &id, limit)?;
            return Ok(self.ticket(self.people().get(&id).map_or(0, |it| it.ticket)));
        }
        let far = state.person(&id).and_then(|person| person.node());
        let far = far.map(str::to_owned).filter(|far| Some(&**far) != node);
        let is_here = state.person(&id).is_some_and(|it| !it.is_elsewhere());
        let (member, is_named, former, ticket) = {
            let mut people = self.people();
            let info = people.info(&state, &id);
            let person = people.get(&id);
            let member = person.and_then(|person| person.member.clone());
            let is_named = person.is_some_and(|person| person.identity.is_some());
            let ticket = person.map_or(0, |person| person.ticket);
            (member, is_named, info.map(|info| info.sid), ticket)
        };
        let is_of_other_door = far.is_some() && !is_named;
        if is_of_other_door || is_here && member.is_none() {
            return Err(EntryRefusal::Taken);
        }
        let claimed = state.claim_over(&id, (node.unwrap_or_default(), sid), limit);
        let claimed = claimed.map_err(|refusal| match refusal {
            ClaimRefusal::Full => EntryRefusal::Full,
            ClaimRefusal::Refused(_) => EntryRefusal::Taken,
        })?;
        if let Some(Displaced { node, session }) = claimed
            && !node.is_empty()
        {
            self.tell_replaced(&node, identity, session);
        }
        if let (Some(far), Some(former)) = (far, former) {
            self.tell_replaced(&far, identity, former);
            state.yield_id(&id);
        }
        if node.is_some() {
            // One of this node that is about to join has no claim any more.
            self.replace(&mut state, &id);
        }
        Ok(self.ticket(ticket))
    }

    /// Returns the number of a client that is let in: microseconds since 1970, but more than the last
    /// one, and than that of `before`, whom it may replace. The caller holds the lock of the room.
    fn ticket(&self, before: u64) -> u64 {
        let now = u64::try_from(now_ms()).unwrap_or_default();
        let last = self.last_ticket.load(Ordering::Relaxed).max(before);
        let ticket = last.saturating_add(1).max(now.saturating_mul(1_000));
        self.last_ticket.store(ticket, Ordering::Relaxed);
        ticket
    }

    /// Returns whether another client with the identity of this one was let in later, and is in the
    /// room already.
    pub(crate) fn has_later(&self, state: &State, member: &Member) -> bool {
        let mut people = self.people();
        // Brings what is known of it up to date.
        let is_there = people.info(state, &member.id).is_some();
        let other = people.get(&member.id).map_or(0, |person| person.ticket);
        is_there && is_displaced(member.ticket, other)
    }

    fn tell_replaced(&self, node: &str, identity: &str, sid: String) {
        let identity = identity.to_owned();
        let replaced = Replaced { identity, sid };
        self.tell_node(node, FarContent::Replaced(replaced), false);
    }

    /// Another client has the identity of a session of this node: ends it, or keeps it from joining.
    pub(super) fn take_replaced(&self, Replaced { identity, sid }: Replaced) {
        let id = self.id_of(&identity);
        let mut state = self.room.lock();
        if self.member(&id).is_some_and(|member| member.sid == sid) {
            self.replace(&mut state, &id);
            return;
        }
        let mut barred = self.barred.lock().unwrap_or_else(PoisonError::into_inner);
        if barred.0.len() >= MAX_BARRED {
            barred.0.pop_front();
        }
        barred.0.push_back(sid);
    }

    /// Returns whether another client has replaced a session that is about to join.
    pub(crate) fn is_barred(&self, sid: &str) -> bool {
        let barred = self.barred.lock().unwrap_or_else(PoisonError::into_inner);
        barred.0.iter().any(|it| it == sid)
    }

    fn member(&self, id: &PersonId) -> Option<Arc<Member>> {
        let people = self.people();
        people.get(id)?.member.clone()
    }

    /// Ends the session of a client of this node, as another one has its identity.
    pub(crate) fn replace(&self, state: &mut State, id: &PersonId) {
        let member = {
            let mut people = self.people();
            let person = people.get_mut(id);
            person.and_then(|person| {
                let member = person.member.clone()?;
                person.disconnect_reason = DisconnectReason::DuplicateIdentity;
                Some(member)
            })
        };
        let Some(member) = member else { return };
        let reason = DisconnectReason::DuplicateIdentity;
        member.out.message(farewell());
        member.out.close();
        for role in [Role::Subscriber, Role::Publisher] {
            if let Some(key) = member.key(role) {
                state.leave_subscriber(key);
            }
        }
        if let Some(key) = member.key(Role::Publisher) {
            state.gone(id, key);
        }
        member.happens(Event::End(reason));
    }
}

/// Returns whether a client gives way to another one with its identity. One of whom it is not known
/// when it was let in does not, since the home has an earlier version.
pub(crate) const fn is_displaced(ticket: u64, other: u64) -> bool {
    ticket != 0 && ticket < other
}

/// Returns the last message to a client whose identity another one has.
pub(crate) fn farewell() -> livekit_protocol::signal_response::Message {
    let action = leave_request::Action::Disconnect;
    leave(DisconnectReason::DuplicateIdentity, action)
}

/// Checks that there is room for a participant, unless it is there already.
fn check_limit(state: &State, id: &PersonId, limit: Option<usize>) -> Result<(), EntryRefusal> {
    let people = state.people().filter(|person| !person.is_dummy());
    let others = people.filter(|person| person.id() != id).count();
    match limit.is_some_and(|limit| others >= limit) {
        true => Err(EntryRefusal::Full),
        false => Ok(()),
    }
}
