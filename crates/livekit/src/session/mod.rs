//! One participant: its requests, its PeerConnections and its subscriptions.

mod admission;
mod data_tracks;
mod peer;
mod permissions;
mod publications;
mod quality;
mod requests;
mod sharing;
mod subscriptions;
mod tokens;
mod wishes;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use livekit_protocol::{
    ClientInfo, DisconnectReason, RoomMovedResponse, leave_request, participant_info,
    signal_response,
};
use portunus_room::{Connection, PersonId};
use portunus_sdp::{CodecName, Kind};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

pub(crate) use crate::hall::leave;
pub(crate) use admission::{JoinError, Joined, Joining, server_info};
pub(crate) use permissions::Permissions;

use crate::hall::{Event, Input, Member, Move, Role, now_ms};
use crate::link::Link;
use crate::token::Renewal;
use data_tracks::DataWishes;
use peer::Peer;
use publications::Unbound;
use quality::{Wanted, unbalance_all};
use wishes::Wishes;

/// How long a participant may take until its media can flow.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// How long a participant without media may take to resume.
const RESUME_LIMIT: Duration = Duration::from_secs(5);

/// The time in which a client that has closed a PeerConnection may send `leave`.
const LEAVE_LIMIT: Duration = Duration::from_millis(500);

/// Why a PeerConnection has ended that its client has closed.
const CLOSED_BY_CLIENT: &str = "DTLS alert";

/// How long changes of subscriptions are gathered for one offer.
const GATHERING: Duration = Duration::from_millis(10);

/// How long changes of a participant are gathered for one token.
const CLAIMS_GATHERING: Duration = Duration::from_millis(100);

/// How often a client gets another token.
const REFRESHING: Duration = Duration::from_secs(300);

/// The last protocol whose clients do not know that they are moved.
const MOVES_SINCE: i32 = 15;

/// The number of requests that wait for a session.
const INPUTS: usize = 64;

/// The number of events that wait for a session.
const EVENTS: usize = 256;

/// A participant.
#[derive(Debug)]
pub(crate) struct Session {
    member: Arc<Member>,
    link: Link,
    publisher: Arc<Peer>,
    /// `None` with one PeerConnection.
    subscriber: Option<Arc<Peer>>,
    client: ClientInfo,
    wishes: Wishes,
    /// The codecs of tracks that the client does not accept.
    refused: HashMap<String, Vec<CodecName>>,
    /// The tracks that it subscribed to and that have not appeared, and until when they may.
    missing: HashMap<String, Instant>,
    /// The data tracks that it wants.
    data: DataWishes,
    /// Offered m-lines whose description has not come yet.
    unbound: Vec<Unbound>,
    /// Whether the publisher's PeerConnection is up.
    publisher_up: bool,
    /// Whether the client was asked for an offer with more m-lines.
    asked: bool,
    /// Whether media could flow once.
    was_up: bool,
    /// When it has to go, unless its media flows by then.
    deadline: Option<(Instant, DisconnectReason)>,
    /// When the server asks a client that has closed a PeerConnection to join again.
    leaving: Option<Instant>,
    /// When its subscriptions are brought up to date.
    gathering: Option<Instant>,
    /// The layers of its tracks that are wanted.
    wanted: Wanted,
    /// When it is looked at which layers are wanted.
    balancing: Option<Instant>,
    /// When the quality of its connection is looked at.
    measuring: Instant,
    /// When its client gets another token.
    refreshing: Instant,
    /// Makes its tokens.
    token: Renewal,
    /// Whether its next connection breaks, for a test of the client: with a first message or without.
    breaks: Option<bool>,
    /// Why it ends.
    ended: Option<DisconnectReason>,
}

impl Session {
    /// Serves the participant until it goes.
    async fn run(mut self, mut inputs: mpsc::Receiver<Input>, mut events: mpsc::Receiver<Event>) {
        let member = self.member.clone();
        while self.ended.is_none() {
            let next = self.next_deadline();
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    if matches!(event, Event::Closed { .. }) {
                        self.requests_left(&mut inputs).await;
                    }
                    self.happened(event);
                }
                () = member.wake.notified() => self.woken(),
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    self.tick(Instant::now()).await;
                }
                Some(input) = inputs.recv() => {
                    self.request(input).await;
                }
            }
        }
        self.leave_room();
    }

    /// Handles the requests that arrived before the connection ended. One of them may be `leave`.
    async fn requests_left(&mut self, inputs: &mut mpsc::Receiver<Input>) {
        while self.ended.is_none()
            && let Ok(input) = inputs.try_recv()
        {
            self.request(input).await;
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let deadline = self.deadline.map(|(deadline, _)| deadline);
        let regular = [self.measuring, self.refreshing];
        let others = deadline
            .into_iter()
            .chain(self.leaving)
            .chain(self.gathering)
            .chain(self.balancing)
            .chain(self.member.answer_due());
        others.chain(regular).min()
    }

    fn woken(&mut self) {
        if self.member.is_stale.load(Ordering::Acquire) && self.gathering.is_none() {
            self.gathering = Some(Instant::now() + GATHERING);
        }
        if self.member.is_unbalanced.load(Ordering::Acquire) {
            self.balancing = Some(Instant::now() + GATHERING);
        }
        if self.member.has_other_claims.swap(false, Ordering::AcqRel) {
            self.refreshing = self.refreshing.min(Instant::now() + CLAIMS_GATHERING);
        }
    }

    async fn tick(&mut self, now: Instant) {
        if let Some((deadline, reason)) = self.deadline
            && deadline <= now
        {
            self.end(reason);
        }
        if self.leaving.is_some_and(|time| time <= now) {
            self.leaving = None;
            self.rejoin();
        }
        if self.gathering.is_some_and(|time| time <= now) {
            self.gathering = None;
            self.member.is_stale.store(false, Ordering::Release);
            self.reconcile();
            self.reconcile_data(false);
        }
        if self.balancing.is_some_and(|time| time <= now) {
            self.balancing = None;
            self.balance(now);
        }
        if self.refreshing <= now {
            self.refresh_token();
        }
        if self.measuring <= now {
            self.report_missing(now);
            self.measure().await;
        }
        if self.member.answer_due().is_some_and(|due| due <= now) {
            self.silent();
        }
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Up(role) => self.up(role),
            Event::HungUp(role, reason) => self.hung_up(role, &reason),
            Event::Closed { generation } => {
                if !self.member.out.ended(generation) {
                    return;
                }
                // Media goes on without the WebSocket.
                let ends = !self.was_up || self.leaving.is_some();
                if ends && self.ended.is_none() {
                    self.ended = Some(DisconnectReason::SignalClose);
                }
            }
            Event::Resume { sync_state, wire } => {
                // The client may have left meanwhile.
                let _ = wire.send(self.resume());
                if let Some(state) = sync_state {
                    self.sync(&state);
                }
            }
            Event::Move(to) => self.move_to(*to),
            Event::End(reason) => self.ended = Some(reason),
        }
    }

    /// Returns the PeerConnection that has to be up for the participant to be active.
    fn primary(&self) -> Role {
        match (&self.subscriber, self.permissions().can_subscribe) {
            (Some(_), true) => Role::Subscriber,
            (Some(_) | None, _) => Role::Publisher,
        }
    }

    fn permissions(&self) -> livekit_protocol::ParticipantPermission {
        let people = self.member.hall.people();
        let person = people.get(&self.member.id);
        person.map(|it| it.permission.clone()).unwrap_or_default()
    }

    fn up(&mut self, role: Role) {
        let hall = &self.member.hall;
        if role == Role::Publisher {
            self.publisher_up = true;
            let mut state = hall.room.lock();
            if state.media_up(&self.member.id) {
                state.announce(&self.member.id, &hall.room);
                hall.report_tracks(&state, &self.member);
            }
        }
        if role != self.primary() {
            return;
        }
        self.was_up = true;
        self.deadline = None;
        let state = hall.room.lock();
        let mut people = hall.people();
        let person = people.get_mut(&self.member.id);
        let Some(person) = person.filter(|it| it.state != participant_info::State::Active) else {
            return;
        };
        person.state = participant_info::State::Active;
        drop(people);
        hall.send_soon(&state, &self.member.id);
        hall.report_joined(&state, &self.member);
        hall.report_tracks(&state, &self.member);
        drop(state);
        self.member.is_behind();
        self.send_qualities();
    }

    /// Has the client join anew, because media does not flow any more.
    fn hung_up(&mut self, role: Role, reason: &str) {
        tracing::debug!(
            sid = self.member.sid,
            ?role,
            reason,
            "a PeerConnection has ended"
        );
        let hall = self.member.hall.clone();
        {
            let mut state = hall.room.lock();
            if role == Role::Publisher {
                // Without a publication there is nothing to end.
                let _ = state.media_ended(&self.member.id);
            }
            if let Some(key) = self.member.key(role) {
                state.subscriber_hung_up(key);
            }
        }
        match reason == CLOSED_BY_CLIENT {
            true => self.leaving = Some(Instant::now() + LEAVE_LIMIT),
            false => self.rejoin(),
        }
    }

    /// Has the client join anew. A resume would not help, since the PeerConnection cannot continue.
    fn rejoin(&mut self) {
        let reason = DisconnectReason::StateMismatch;
        let message = leave(reason, leave_request::Action::Reconnect);
        self.member.out.message(message);
        self.member.out.close();
        let deadline = Instant::now() + RESUME_LIMIT;
        self.deadline = Some((deadline, DisconnectReason::ConnectionTimeout));
    }

    /// Has the client join another room, and ends the session. The client publishes its tracks anew.
    fn move_to(&mut self, to: Move) {
        let Some(token) = self.token_for(&to.room.name) else {
            tracing::debug!("a participant cannot be moved: it has left, or its API key is gone");
            return;
        };
        let participant = {
            let state = self.member.hall.room.lock();
            self.member.hall.people().info(&state, &self.member.id)
        };
        // Former clients know no moves, but reconnect with their last token.
        self.send(signal_response::Message::RefreshToken(token.clone()));
        if self.client.protocol > MOVES_SINCE {
            self.send(signal_response::Message::RoomMoved(RoomMovedResponse {
                room: Some(to.room),
                token,
                participant,
                other_participants: to.participants,
            }));
        }
        let reason = DisconnectReason::Migration;
        self.send(leave(reason, leave_request::Action::Reconnect));
        self.ended = Some(reason);
    }

    /// Has a client that does not answer the server's offer join anew.
    fn silent(&mut self) {
        tracing::debug!(sid = self.member.sid, "a client does not answer an offer");
        self.member.answered();
        self.mismatch();
        self.member.out.close();
        let deadline = Instant::now() + RESUME_LIMIT;
        self.deadline = Some((deadline, DisconnectReason::StateMismatch));
    }

    /// Ends the session and tells the client.
    fn end(&mut self, reason: DisconnectReason) {
        let message = leave(reason, leave_request::Action::Disconnect);
        self.member.out.message(message);
        self.ended = Some(reason);
    }

    /// Takes the participant out of the room.
    fn leave_room(&mut self) {
        let (member, hall) = (&self.member, &self.member.hall);
        member.out.close();
        let mut state = hall.room.lock();
        let feeds: Vec<PersonId> = state.feeds().cloned().collect();
        if let Some(subscriber) = &self.subscriber {
            state.leave_subscriber(subscriber.id());
        }
        let own = self.publisher.id();
        state.leave_subscriber(own);
        unbalance_all(hall, feeds.iter());
        {
            let mut people = hall.people();
            if let Some(person) = people.get_mut(&member.id)
                && person.sid == member.sid
                && let Some(reason) = self.ended
            {
                person.disconnect_reason = reason;
            }
        }
        hall.report_left(&state, member, self.was_up);
        state.gone(&member.id, own);
        Session::forget_data(member);
        let mut people = hall.people();
        let is_own = people
            .get(&member.id)
            .is_some_and(|it| it.sid == member.sid);
        if is_own {
            people.remove(&member.id);
        }
        tracing::debug!(sid = member.sid, reason = ?self.ended, at = now_ms(), "session ended");
    }
}

/// Returns the kind of media of LiveKit's track type, or `None` if it is not audio or video.
const fn kind_of(track_type: i32) -> Option<Kind> {
    match track_type {
        0 => Some(Kind::Audio),
        1 => Some(Kind::Video),
        _ => None,
    }
}
