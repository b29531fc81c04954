//! What happens in a room, told to webhooks and agents.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use livekit_protocol::{JobType, ParticipantInfo, Room, RoomEndReason, participant_info};
use portunus_room::State;

use super::{Hall, Member, Person};
use crate::agents::Agents;
use crate::happening::{Happening, Observer};
use crate::webhook::Webhooks;

/// Who wants to know what happens.
#[derive(Debug, Clone)]
pub(crate) struct Reports {
    pub(crate) webhooks: Webhooks,
    pub(crate) agents: Agents,
    /// The recordings that begin by themselves.
    pub(crate) egresses: Arc<dyn Observer>,
}

impl Reports {
    /// Tells webhooks and the recordings that begin by themselves.
    pub(super) fn send(&self, happening: Happening) {
        self.egresses.happened(&happening);
        self.webhooks.send(happening);
    }

    /// The same about somebody at another node, which tells webhooks itself.
    pub(super) fn send_far(&self, happening: &Happening) {
        self.egresses.happened(happening);
    }

    /// Dispatches agents for a participant.
    pub(super) fn participant(&self, kind: JobType, room: &Room, of: &ParticipantInfo) {
        self.agents.participant(kind, room, of);
    }

    fn is_used(&self) -> bool {
        self.webhooks.is_used() || self.agents.is_used() || self.egresses.is_interested()
    }
}

impl Hall {
    /// Tells that the room begins, once.
    pub(crate) fn report_started(&self) {
        if !self.is_started.swap(true, Ordering::AcqRel) {
            let room = self.info(&self.room.lock());
            let agents = self.options().agents.clone();
            self.reports.agents.room_started(&room, &agents);
            let egress = self.options().egress.clone();
            self.reports.egresses.room_started(&room, egress);
            self.report_room(Happening::RoomStarted(room));
        }
    }

    /// Notes that the home of the room, another node, tells webhooks of the room.
    pub(crate) fn is_followed(&self) {
        self.is_followed.store(true, Ordering::Release);
    }

    fn report_room(&self, happening: Happening) {
        match self.is_followed.load(Ordering::Acquire) {
            true => self.reports.send_far(&happening),
            false => self.reports.send(happening),
        }
    }

    /// Tells that the room has ended, if it was told that it began.
    pub(crate) fn report_finished(&self, reason: RoomEndReason) {
        if self.is_started.swap(false, Ordering::AcqRel) {
            self.reports.agents.room_finished(&self.name);
            let room = self.info(&self.room.lock());
            self.report_room(Happening::RoomFinished(room, reason));
        }
    }

    /// Tells that the media of a participant can flow.
    pub(crate) fn report_joined(&self, state: &State, member: &Member) {
        if self.is_reported() {
            let participant = self.person_of(state, member);
            let room = self.info(state);
            self.reports
                .participant(JobType::JtParticipant, &room, &participant);
            self.reports.send(Happening::Joined(room, participant));
        }
    }

    /// Tells which tracks of a participant are new, and which have ended.
    pub(crate) fn report_tracks(&self, state: &State, member: &Member) {
        if !self.is_reported() {
            return;
        }
        let participant = self.person_of(state, member);
        let present = match participant.state() {
            participant_info::State::Active => participant.tracks.clone(),
            _ => return,
        };
        let before = std::mem::replace(&mut *member.reported(), present.clone());
        let ended = before
            .iter()
            .filter(|old| present.iter().all(|new| new.sid != old.sid));
        for track in ended {
            let participant = participant.clone();
            let ended = Happening::Unpublished(self.info(state), participant, track.clone());
            self.reports.send(ended);
        }
        if before.is_empty() && !present.is_empty() {
            let room = self.info(state);
            self.reports
                .participant(JobType::JtPublisher, &room, &participant);
        }
        let new = present
            .iter()
            .filter(|new| before.iter().all(|old| new.sid != old.sid));
        for track in new {
            let participant = participant.clone();
            let new = Happening::Published(self.info(state), participant, track.clone());
            self.reports.send(new);
        }
    }

    /// Tells that a participant leaves, and its tracks with it.
    pub(crate) fn report_left(&self, state: &State, member: &Member, was_up: bool) {
        if !self.is_reported() {
            return;
        }
        let mut participant = self.person_of(state, member);
        participant.state = participant_info::State::Disconnected.into();
        for track in std::mem::take(&mut *member.reported()) {
            let participant = participant.clone();
            let ended = Happening::Unpublished(self.info(state), participant, track);
            self.reports.send(ended);
        }
        participant.tracks.clear();
        let person = |it: &Person| it.sid == member.sid && it.is_agent();
        if self.people().get(&member.id).is_some_and(person) {
            let agents = &self.reports.agents;
            agents.participant_left(&self.name, &member.identity);
        }
        let room = self.info(state);
        self.reports.send(match was_up {
            true => Happening::Left(room, participant),
            false => Happening::Aborted(room, participant),
        });
    }

    pub(super) fn is_reported(&self) -> bool {
        self.reports.is_used()
    }

    /// Returns the description of a participant. One that is out of the room already has its ids
    /// only.
    fn person_of(&self, state: &State, member: &Member) -> ParticipantInfo {
        let mut people = self.people();
        let info = people.info(state, &member.id);
        info.filter(|info| info.sid == member.sid)
            .unwrap_or_else(|| ParticipantInfo {
                sid: member.sid.clone(),
                identity: member.identity.clone(),
                ..ParticipantInfo::default()
            })
    }
}
