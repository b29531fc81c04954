//! Publishing, and changing how.

use portunus_record::Format;
use portunus_sdp::{Jsep, LocalJsep, SdpType};

use super::State;
use crate::publication::{Configure, Origin, Publication, Recorded, Stream, answer};
use crate::{ConnectionId, Notice, PersonId, Refusal};

/// What a [`Configure`] came to.
#[derive(Debug)]
pub struct Configured {
    /// The answer to the offer, if there was one.
    pub answer: Option<LocalJsep>,
    /// What is published has changed: call [`State::tell_updated`] once the publisher was told.
    pub changed: bool,
}

impl State {
    /// Changes how a participant publishes. With an offer it begins to publish, or renegotiates.
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

    /// Answers an offer.
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
        if is_new {
            self.publications.check_limit(self.settings.publishers)?;
        }
        let bitrate = configure.bitrate.unwrap_or(person.settings.bitrate);
        let name = format!("VideoRoom {}", self.name);
        let before = self.streams(id);
        let wanted = (forced, person.permissions);
        let (answer, streams) = answer(&self.settings, name, wanted, jsep, before, bitrate);
        configure.check_mids(&streams)?;
        let connection = person.connection().ok_or(Refusal::NotInRoom)?.clone();
        let local = connection.answer(answer)?;
        if is_new {
            let origin = Origin::Client(connection.clone());
            self.publications.start(id, origin, jsep.e2ee, streams);
        } else {
            self.publications.renegotiate(id, streams, jsep);
        }
        connection.cap(&self.publications.media, bitrate);
        Ok(local)
    }

    /// Applies what needs no negotiation; says whether streams are described otherwise by now.
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
            self.tell_others(id, Notice::Renamed { id, profile });
        }
        let (changed, described) = self.publications.configure(id, configure);
        if negotiated {
            self.relay_feed(id);
            self.reseat_all();
            self.publications.extend_remotes(&self.name, id);
        } else {
            for stream in changed {
                self.relay_stream(id, stream);
            }
        }
        self.update_media(id);
        self.record(id, configure.begins_recording());
        described
    }

    /// A PeerConnection is up. Returns false if it was before.
    pub fn media_up(&mut self, id: &PersonId) -> bool {
        let is_new = self.publications.came_up(id);
        if is_new {
            self.reseat_all();
        }
        is_new
    }

    /// Closes or opens a stream against its publisher's will.
    pub fn moderate(&mut self, id: &PersonId, mid: &str, mute: bool) -> Result<(), Refusal> {
        self.check_participant(id)?;
        if let Some(stream) = self.publications.moderate(id, mid, mute)? {
            self.relay_stream(id, stream);
            self.update_media(id);
            self.record(id, false);
        }
        self.tell_all(Notice::Moderated { id, mid, mute });
        Ok(())
    }

    /// Checks that there is a participant `id`. The dummy publisher does not count: nobody can moderate it.
    pub(super) fn check_participant(&self, id: &PersonId) -> Result<(), Refusal> {
        let person = self.roster.get(id).filter(|person| !person.is_dummy());
        person.map(drop).ok_or_else(|| Refusal::NoSuchUser {
            id: id.clone(),
            room: self.name.clone(),
        })
    }

    /// Records all that there is and that comes, or nothing any more.
    pub fn record_all(&mut self, on: bool, format: Option<Format>) -> Result<(), Refusal> {
        self.settings.record_format = format.or(self.settings.record_format);
        if on == self.settings.record {
            return Ok(());
        }
        let people = self.roster.ids();
        if on && !people.is_empty() {
            self.check_recording(None)?;
        }
        self.settings.record = on;
        for id in people {
            if let Some(person) = self.roster.get_mut(&id) {
                person.settings.record.on = on;
            }
            self.record(&id, on);
        }
        Ok(())
    }

    /// Checks that recordings of this name could be made.
    fn check_recording(&self, name: Option<&str>) -> Result<(), Refusal> {
        let dir = self.settings.rec_dir.as_deref();
        self.publications.check_recording(dir, name)
    }

    /// Brings the recordings of a participant up to date; those that failed begin `anew`, or do not.
    pub(super) fn record(&mut self, id: &PersonId, anew: bool) {
        if let Some(person) = self.roster.get(id) {
            let room = &self.settings;
            let of = Recorded {
                room: &self.name,
                id,
                display: person.profile.display.as_deref(),
                description: &room.description,
                dir: room.rec_dir.as_deref(),
                format: room.record_format,
            };
            let settings = &person.settings.record;
            self.publications.record(&of, settings, anew);
        }
    }

    /// Has the media plane listen to what somebody sends, keep it and ask for keyframes, as the room wants it.
    pub(super) fn update_media(&mut self, id: &PersonId) {
        self.listen(id);
        self.publications.update_keyframes(id, &self.settings);
    }

    /// What somebody publishes, stream by stream.
    pub(super) fn streams(&self, id: &PersonId) -> &[Stream] {
        self.publications.get(id).map_or(&[], Publication::streams)
    }
}
