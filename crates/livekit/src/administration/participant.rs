//! What administrators change of participants.

use livekit_protocol::{
    MuteTrackRequest, ParticipantInfo, ParticipantPermission, TrackInfo, TrackUnpublishedResponse,
    UpdateParticipantRequest, signal_response,
};
use portunus_room::{Configure, PersonId, Profile, State, StreamSetting};
use portunus_rtp::Mid;

use crate::hall::{Hall, Role};
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

    /// Mutes or unmutes a track. The participant of this door may unmute it again, as with LiveKit.
    /// Returns `None` if the participant has no such track.
    pub(crate) fn mute(&self, id: &PersonId, sid: &str, muted: bool) -> Answer<Option<TrackInfo>> {
        let mut state = self.room.lock();
        let (mids, member) = {
            let mut people = self.people();
            let Some(person) = people.get_mut(id) else {
                return Ok(None);
            };
            let member = person.member.clone();
            let track = person.tracks.iter_mut().find(|it| it.sid == sid);
            let Some(track) = track else {
                return Ok(None);
            };
            track.request.muted = muted;
            (track.mids().collect::<Vec<_>>(), member)
        };
        let Some(member) = member else {
            // Clients of other doors are told by the room.
            for mid in mids {
                if let Err(refusal) = state.moderate(id, mid.as_str(), muted) {
                    tracing::debug!(%refusal, "a track cannot be muted");
                }
            }
            return self.muted(&state, id, sid);
        };
        let setting = |mid: &Mid| StreamSetting {
            mid: Some(mid.as_str().to_owned()),
            send: Some(!muted),
            ..StreamSetting::default()
        };
        let configure = Configure {
            streams: mids.iter().map(setting).collect(),
            ..Configure::default()
        };
        if let Some(key) = member.key(Role::Publisher)
            && let Err(refusal) = state.configure(id, key, &configure, None)
        {
            tracing::debug!(%refusal, "a track cannot be muted");
        }
        let mute = MuteTrackRequest {
            sid: sid.to_owned(),
            muted,
        };
        member.out.message(signal_response::Message::Mute(mute));
        self.send_update(&state, id);
        self.muted(&state, id, sid)
    }

    fn muted(&self, state: &State, id: &PersonId, sid: &str) -> Answer<Option<TrackInfo>> {
        let info = self.describe(state, id)?;
        Ok(info.tracks.into_iter().find(|track| track.sid == sid))
    }

    /// Changes a participant.
    pub(crate) fn change(&self, request: UpdateParticipantRequest) -> Answer<ParticipantInfo> {
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
        let member = self.people().get(&id).and_then(|it| it.member.clone());
        if let Some(member) = member {
            member.changes_claims();
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
        let lost = lost.map(|it| (it.sid.clone(), it.mids().collect::<Vec<_>>()));
        let lost: Vec<_> = lost.collect();
        person.permission = permission;
        let member = person.member.clone();
        drop(people);
        for (track_sid, mids) in lost {
            // It ends at once for the others. The client takes it out of its next offer.
            for mid in mids {
                if let Err(refusal) = state.moderate(id, mid.as_str(), true) {
                    tracing::debug!(%refusal, "a track cannot be ended");
                }
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
