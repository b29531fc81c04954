//! What administrators change of participants.

use livekit_protocol::{
    ParticipantInfo, ParticipantPermission, TrackInfo, TrackUnpublishedResponse,
    UpdateParticipantRequest, signal_response,
};
use portunus_room::{Configure, PersonId, Profile, State};

use crate::hall::Hall;
use crate::limits;
use crate::services::{Answer, Code, ServiceError};

impl Hall {
    /// Returns the description of a participant.
    pub(super) fn participant(&self, id: &PersonId) -> Answer<ParticipantInfo> {
        let state = self.room.lock();
        self.describe(&state, id)
    }

    fn describe(&self, state: &State, id: &PersonId) -> Answer<ParticipantInfo> {
        let person = state.person(id);
        let info = person.and_then(|_| self.people().info(state, id));
        info.ok_or_else(ServiceError::no_participant)
    }

    /// Mutes a track. Returns `None` if the participant has no such track.
    pub(super) fn mute(&self, id: &PersonId, sid: &str) -> Answer<Option<TrackInfo>> {
        let mut state = self.room.lock();
        let mid = {
            let mut people = self.people();
            let person = people.get_mut(id);
            let tracks = person.map(|person| person.tracks.iter_mut());
            let track = tracks.into_iter().flatten().find(|it| it.sid == sid);
            let Some(track) = track else {
                return Ok(None);
            };
            track.request.muted = true;
            track.mid
        };
        if let Some(mid) = mid
            && let Err(refusal) = state.moderate(id, mid.as_str(), true)
        {
            tracing::debug!(%refusal, "a track cannot be muted");
        }
        let info = self.describe(&state, id)?;
        Ok(info.tracks.into_iter().find(|track| track.sid == sid))
    }

    /// Changes a participant.
    pub(super) fn change(&self, request: UpdateParticipantRequest) -> Answer<ParticipantInfo> {
        let id = self.id_of(&request.identity);
        let mut state = self.room.lock();
        // One of another door is known from here on.
        self.describe(&state, &id)?;
        {
            let mut people = self.people();
            let person = people.get_mut(&id);
            let person = person.ok_or_else(ServiceError::no_participant)?;
            let mut attributes = person.attributes.clone();
            for (name, value) in request.attributes {
                match value.is_empty() {
                    true => drop(attributes.remove(&name)),
                    false => drop(attributes.insert(name, value)),
                }
            }
            if !limits::attributes_fit(&attributes) {
                let text = "attribute size exceeds limits";
                return Err(ServiceError::new(Code::InvalidArgument, text));
            }
            person.attributes = attributes;
        }
        let text = |text: String| (!text.is_empty()).then_some(text);
        let configure = Configure {
            profile: Profile {
                display: text(request.name),
                metadata: text(request.metadata),
            },
            ..Configure::default()
        };
        let connection = state.person(&id).and_then(|it| Some(it.connection()?.id()));
        if let Some(connection) = connection
            && let Err(refusal) = state.configure(&id, connection, &configure, None)
        {
            tracing::debug!(%refusal, "a participant cannot be changed");
        }
        if let Some(permission) = request.permission {
            self.permit(&mut state, &id, permission);
        }
        self.send_update(&state, &id);
        self.describe(&state, &id)
    }

    /// Gives a participant other permissions, and takes back what they do not cover.
    fn permit(&self, state: &mut State, id: &PersonId, permission: ParticipantPermission) {
        let mut people = self.people();
        let Some(person) = people.get_mut(id) else {
            return;
        };
        let sources = &permission.can_publish_sources;
        let may = |source: i32| {
            permission.can_publish && (sources.is_empty() || sources.contains(&source))
        };
        let lost = person.tracks.iter().filter(|it| !may(it.request.source));
        let lost: Vec<_> = lost.map(|it| (it.sid.clone(), it.mid)).collect();
        person.permission = permission;
        let member = person.member.clone();
        drop(people);
        for (track_sid, mid) in lost {
            // It ends at once for the others. The client takes it out of its next offer.
            if let Some(mid) = mid
                && let Err(refusal) = state.moderate(id, mid.as_str(), true)
            {
                tracing::debug!(%refusal, "a track cannot be ended");
            }
            if let Some(member) = &member {
                let ended = TrackUnpublishedResponse { track_sid };
                let message = signal_response::Message::TrackUnpublished(ended);
                member.out.message(message);
            }
        }
        // Its subscriptions may begin or end.
        if let Some(member) = &member {
            member.is_behind();
        }
    }
}
