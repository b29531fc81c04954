//! Publications: their negotiation, their settings, moderation and recording.

use portunus_record::Format;
use portunus_sdp::{Jsep, LocalJsep, SdpType};

use super::State;
use crate::publication::{
    AnswerRequest, Answered, Configure, Origin, Publication, Recorded, Stream,
};
use crate::subscription::Subscriber;
use crate::{ConnectionId, Notice, PersonId, Refusal};

/// The outcome of a [`Configure`].
#[derive(Debug)]
pub struct Configured {
    /// The answer to the offer, if there was one.
    pub answer: Option<LocalJsep>,
    /// Whether the publication has changed. The door calls [`State::send_updated`] after its
    /// answer.
    pub changed: bool,
}

impl State {
    /// Changes the settings of a participant. An offer starts or renegotiates its publication.
    pub fn configure(
        &mut self,
        id: &PersonId,
        connection: ConnectionId,
        configure: &Configure,
        jsep: Option<&Jsep>,
    ) -> Result<Configured, Refusal> {
        self.roster.joined(id, connection)?;
        if configure.records() {
            self.check_recording(configure.filename())?;
        }
        let mut configured = Configured {
            answer: None,
            changed: false,
        };
        match jsep {
            Some(jsep) if jsep.kind == SdpType::Answer => return Err(Refusal::WrongSdpType),
            Some(jsep) => {
                let is_new = self.publications.get(id).is_none();
                configured.answer = Some(self.negotiate(id, configure, jsep)?);
                configured.changed = !is_new;
            }
            None => configure.check_mids(self.streams(id))?,
        }
        let described = self.apply(id, configure, jsep.is_some());
        configured.changed |= described && jsep.is_none();
        Ok(configured)
    }

    /// Answers a publisher's offer.
    fn negotiate(
        &mut self,
        id: &PersonId,
        configure: &Configure,
        jsep: &Jsep,
    ) -> Result<LocalJsep, Refusal> {
        self.settings.check_e2ee(jsep.e2ee)?;
        let forced = configure.forced(&self.settings)?;
        let person = self.roster.named(id)?;
        let is_new = self.publications.get(id).is_none();
        if is_new && !configure.keeps_data && !configure.has_place {
            self.check_places(None)?;
        }
        let bitrate = configure.bitrate.unwrap_or(person.settings.bitrate);
        let request = AnswerRequest {
            room: &self.settings,
            name: format!("VideoRoom {}", self.name),
            forced,
            permissions: person.permissions,
            bitrate,
            lines: &configure.lines,
            keeps_data: configure.keeps_data,
        };
        let Answered {
            mut description,
            streams,
        } = request.answer(jsep, self.streams(id));
        configure.check_mids(&streams)?;
        // A participant of such a door may only receive by this PeerConnection.
        let publishes = !configure.keeps_data || streams.iter().any(|stream| !stream.disabled);
        if is_new && publishes && configure.keeps_data && !configure.has_place {
            self.check_places(None)?;
        }
        let connection = person.connection().ok_or(Refusal::NotInRoom)?.clone();
        let key = connection.id();
        let (room, offer) = (&self.settings, &jsep.description);
        let takes = self.subscriptions.get(key).is_ok();
        if takes {
            let all = &self.publications;
            let take = |it: &mut Subscriber| it.take(offer, &mut description, room, all);
            self.subscriptions.change(key, take)?;
        }
        let local = connection.answer(description)?;
        if takes {
            self.change_subscriber(key, |it, all| it.relay(all))?;
        }
        if is_new && !publishes {
            return Ok(local);
        }
        if is_new {
            let origin = Origin::Client(connection.clone());
            self.publications.start(id, origin, jsep.e2ee, streams);
            self.changes.send_replace(());
        } else {
            self.publications.renegotiate(id, streams, jsep);
        }
        connection.cap(&self.publications.media, bitrate);
        Ok(local)
    }

    /// Applies the settings. Returns whether streams have new descriptions.
    fn apply(&mut self, id: &PersonId, configure: &Configure, negotiated: bool) -> bool {
        let Some(person) = self.roster.get_mut(id) else {
            return false;
        };
        let renamed = person.rename(configure.profile.clone());
        configure.apply(&mut person.settings);
        if let (Some(bitrate), Some(client), false) =
            (configure.bitrate, person.connection(), negotiated)
        {
            client.cap(&self.publications.media, bitrate);
        }
        for profile in renamed {
            let profile = &profile;
            self.send_to_others(id, Notice::Renamed { id, profile });
        }
        let changed = self.publications.configure(id, configure);
        if negotiated {
            self.relay_feed(id);
            self.reseat_all();
            self.publications.extend_remotes(&self.name, id);
        } else {
            for stream in changed.relayed {
                self.relay_stream(id, stream);
            }
        }
        self.update_media(id);
        self.record(id, configure.begins_recording());
        changed.described
    }

    /// Notes that a publisher's PeerConnection is up. Returns false if it was before.
    pub fn media_up(&mut self, id: &PersonId) -> bool {
        let is_new = self.publications.came_up(id);
        if is_new {
            self.reseat_all();
        }
        is_new
    }

    /// Mutes or unmutes a stream for a moderator.
    pub fn moderate(&mut self, id: &PersonId, mid: &str, mute: bool) -> Result<(), Refusal> {
        self.check_participant(id)?;
        if let Some(stream) = self.publications.moderate(id, mid, mute)? {
            self.relay_stream(id, stream);
            self.update_media(id);
            self.record(id, false);
        }
        self.send_to_all(Notice::Moderated { id, mid, mute });
        Ok(())
    }

    /// Checks that there is a participant `id`. A placeholder does not count, as it has no
    /// moderation.
    pub(super) fn check_participant(&self, id: &PersonId) -> Result<(), Refusal> {
        let person = self.roster.get(id).filter(|person| !person.is_dummy());
        person.map(drop).ok_or_else(|| Refusal::NoSuchUser {
            id: id.clone(),
            room: self.name.clone(),
        })
    }

    /// Records all present and future participants, or none. Those at other nodes are recorded
    /// there.
    pub fn record_all(&mut self, on: bool, format: Option<Format>) -> Result<(), Refusal> {
        self.settings.recording.format = format.or(self.settings.recording.format);
        if on == self.settings.recording.on {
            return Ok(());
        }
        let people = self.roster.iter();
        let people = people.filter(|person| !person.is_elsewhere());
        let people: Vec<_> = people.map(|person| person.id().clone()).collect();
        if on && !people.is_empty() {
            self.check_recording(None)?;
        }
        self.settings.recording.on = on;
        self.changes.send_replace(());
        for id in people {
            if let Some(person) = self.roster.get_mut(&id) {
                person.settings.record.on = on;
            }
            self.record(&id, on);
        }
        Ok(())
    }

    /// Checks that recordings with this name prefix can be made.
    fn check_recording(&self, name: Option<&str>) -> Result<(), Refusal> {
        let dir = self.settings.recording.dir.as_deref();
        self.publications.check_recording(dir, name)
    }

    /// Brings the recordings of a participant up to date. Restarts failed ones if `anew`.
    pub(super) fn record(&mut self, id: &PersonId, anew: bool) {
        if let Some(person) = self.roster.get(id) {
            let room = &self.settings;
            let of = Recorded {
                room: &self.name,
                id,
                display: person.profile.display.as_deref(),
                description: &room.description,
                dir: room.recording.dir.as_deref(),
                format: room.recording.format,
            };
            let settings = &person.settings.record;
            self.publications.record(&of, settings, anew);
        }
    }

    /// Brings the monitoring and the keyframe handling of a publication up to date.
    pub(super) fn update_media(&mut self, id: &PersonId) {
        self.changes.send_replace(());
        self.listen(id);
        self.publications.update_keyframes(id, &self.settings);
    }

    /// Returns the streams of a publication. They are empty without one.
    pub(super) fn streams(&self, id: &PersonId) -> &[Stream] {
        self.publications.get(id).map_or(&[], Publication::streams)
    }
}
