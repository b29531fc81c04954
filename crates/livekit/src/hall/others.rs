//! Participants without a client of this door: those of other doors, ingresses and telephones. What
//! they do is reported once the room has changed.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, Weak};
use std::time::Duration;

use livekit_protocol::{JobType, ParticipantInfo, TrackInfo, participant_info};
use portunus_room::{PersonId, State};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Hall;
use crate::happening::Happening;

/// How long changes of a room are gathered.
const GATHERING: Duration = Duration::from_millis(50);

/// The participants that were reported.
#[derive(Debug, Default)]
pub(super) struct Others(HashMap<PersonId, Other>);

/// A participant, as it was reported.
#[derive(Debug)]
struct Other {
    info: ParticipantInfo,
    tracks: Vec<TrackInfo>,
    /// Whether this door at its node tells webhooks of it.
    is_told_there: bool,
}

/// Reports the participants without a client of this door until the room has ended.
pub(crate) async fn watch_others(hall: Weak<Hall>, mut changes: watch::Receiver<()>) {
    loop {
        let Some(hall) = hall.upgrade() else { return };
        hall.note_all();
        hall.report_others();
        drop(hall);
        if changes.changed().await.is_err() {
            return;
        }
        sleep(GATHERING).await;
    }
}

impl Hall {
    fn report_others(&self) {
        let state = self.room.lock();
        let changed = self.people().see_others(&state);
        for id in &changed {
            self.send_update(&state, id);
        }
        if !changed.is_empty() {
            // Somebody may share tracks with others than before.
            for member in self.people().members() {
                member.is_behind();
            }
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let is_reported = self.is_reported();
        if !is_reported {
            others.0.clear();
        }
        let present: HashSet<PersonId> = {
            let people = self.people();
            let all = state.people().filter(|person| !person.is_dummy());
            let all = all.map(|person| person.id());
            all.filter(|id| is_reported && !people.has_client(id))
                .cloned()
                .collect()
        };
        let gone = others.0.extract_if(|id, _| !present.contains(id));
        for (_, other) in gone.collect::<Vec<_>>() {
            self.report_other_gone(&state, other);
        }
        for id in present {
            let Some(info) = self.people().info(&state, &id) else {
                continue;
            };
            // Another one may have the same id by now.
            let before = others.0.remove(&id);
            let (before, former) = match before {
                Some(other) if other.info.sid == info.sid => (Some(other), None),
                former => (None, former),
            };
            if let Some(former) = former {
                self.report_other_gone(&state, former);
            }
            let person = state.person(&id);
            let is_told_there = person.is_some_and(|it| it.is_elsewhere() && it.note().is_some());
            let other = self.report_other(&state, before, (info, is_told_there));
            others.0.insert(id, other);
        }
        self.people().forget_others(&state);
    }

    fn report_other(
        &self,
        state: &State,
        before: Option<Other>,
        (info, is_noted): (ParticipantInfo, bool),
    ) -> Other {
        let room = self.info(state);
        let is_told_there = before.as_ref().map_or(is_noted, |it| it.is_told_there);
        let send = |happening: Happening| self.report_of(happening, is_told_there);
        let known = match before {
            Some(before) => before.tracks,
            None => {
                self.reports
                    .participant(JobType::JtParticipant, &room, &info);
                let joined = Happening::Joined(room.clone(), info.clone());
                send(joined);
                Vec::new()
            }
        };
        let is_in = |all: &[TrackInfo], track: &TrackInfo| all.iter().any(|it| it.sid == track.sid);
        for track in known.iter().filter(|track| !is_in(&info.tracks, track)) {
            let ended = Happening::Unpublished(room.clone(), info.clone(), track.clone());
            send(ended);
        }
        if known.is_empty() && !info.tracks.is_empty() {
            self.reports.participant(JobType::JtPublisher, &room, &info);
        }
        for track in info.tracks.iter().filter(|track| !is_in(&known, track)) {
            let new = Happening::Published(room.clone(), info.clone(), track.clone());
            send(new);
        }
        Other {
            tracks: info.tracks.clone(),
            info,
            is_told_there,
        }
    }

    fn report_other_gone(&self, state: &State, other: Other) {
        let room = self.info(state);
        let mut info = other.info;
        info.state = participant_info::State::Disconnected.into();
        info.tracks.clear();
        for track in other.tracks {
            let ended = Happening::Unpublished(room.clone(), info.clone(), track);
            self.report_of(ended, other.is_told_there);
        }
        self.report_of(Happening::Left(room, info), other.is_told_there);
    }

    fn report_of(&self, happening: Happening, is_told_there: bool) {
        match is_told_there {
            true => self.reports.send_far(&happening),
            false => self.reports.send(happening),
        }
    }
}
