//! Publishing, and changing how.

use portunus_core::record::Format;
use portunus_core::sdp::{Description, Kind};
use portunus_core::{HandleId, Jsep, JsepKind, LocalJsep, Object};
use portunus_resources::Id;
use serde_json::Value;

use super::RoomState;
use crate::publication::{Configure, Origin, Publication, Recorded, Stream, answer, check_e2ee};
use crate::refusal::Refusal;

/// What came of a `configure`.
#[derive(Debug)]
pub(crate) struct Configured {
    /// Members for the answer: the codecs and streams, if there was an offer.
    pub(crate) members: Object,
    pub(crate) jsep: Option<LocalJsep>,
    /// What is published has changed: others are told once the publisher was.
    pub(crate) changed: bool,
}

impl RoomState {
    /// Applies a participant's `configure`; with an offer it publishes or renegotiates.
    pub(crate) fn configure(
        &mut self,
        id: &Id,
        handle: HandleId,
        configure: &Configure,
        jsep: Option<&Jsep>,
    ) -> Result<Configured, Refusal> {
        self.roster.joined(id, handle)?;
        if configure.records(&self.options) {
            self.check_recording(configure.filename())?;
        }
        let mut configured = Configured {
            members: Object::new(),
            jsep: None,
            changed: false,
        };
        match jsep {
            Some(jsep) if jsep.kind == JsepKind::Answer => {
                return Err(Refusal::WrongSdpType("type"));
            }
            Some(jsep) => {
                let is_new = self.publications.get(id).is_none();
                configured.jsep = Some(self.negotiate(id, configure, jsep)?);
                configured.changed = !is_new;
            }
            None => configure.check_mids(self.streams(id))?,
        }
        let described = self.apply(id, configure, jsep.is_some());
        configured.changed |= described && jsep.is_none();
        if let (Some(media), Some(jsep)) = (self.publications.get(id), jsep) {
            configured.members = agreed(media, &jsep.description);
        }
        Ok(configured)
    }

    /// Answers an offer.
    fn negotiate(
        &mut self,
        id: &Id,
        configure: &Configure,
        jsep: &Jsep,
    ) -> Result<LocalJsep, Refusal> {
        check_e2ee(self.options.require_e2ee, jsep.e2ee)?;
        let forced = configure.forced(&self.options)?;
        let person = self.roster.named(id)?;
        let is_new = self.publications.get(id).is_none();
        if is_new {
            self.publications.check_limit(self.options.publishers)?;
        }
        let bitrate = configure.bitrate().unwrap_or(person.settings.bitrate);
        let name = format!("VideoRoom {}", self.id);
        let before = self.streams(id);
        let (answer, streams) = answer(&self.options, name, forced, jsep, before, bitrate);
        configure.check_mids(&streams)?;
        let handle = person.handle().ok_or(Refusal::NotInRoom)?.clone();
        let local = handle.answer(answer)?;
        if is_new {
            let origin = Origin::Client(handle.clone());
            self.publications.start(id, origin, jsep.e2ee, streams);
        } else {
            self.publications.renegotiate(id, streams, jsep);
        }
        handle.set_bitrate((bitrate > 0).then_some(bitrate));
        Ok(local)
    }

    /// Applies what needs no negotiation; says whether streams are described otherwise by now.
    fn apply(&mut self, id: &Id, configure: &Configure, negotiated: bool) -> bool {
        let Some(person) = self.roster.get_mut(id) else {
            return false;
        };
        let renamed = person.rename(configure.profile());
        configure.apply(&mut person.settings, &self.options);
        if configure.bitrate().is_some() && !negotiated {
            person.cap();
        }
        for event in renamed {
            self.tell_others(id, event);
        }
        let changes = self.publications.configure(id, configure);
        if negotiated {
            self.relay_feed(id);
            self.reseat_all();
            self.publications.extend_remotes(&self.id, id);
        } else {
            for stream in changes.streams {
                self.relay_stream(id, stream);
            }
        }
        self.update_media(id);
        self.record(id, configure.begins_recording());
        changes.described
    }

    /// A PeerConnection is up; false if it was before.
    pub(crate) fn media_up(&mut self, id: &Id) -> bool {
        let is_new = self.publications.came_up(id);
        if is_new {
            self.reseat_all();
        }
        is_new
    }

    /// Closes or opens a stream against its publisher's will.
    pub(crate) fn moderate(&mut self, id: &Id, mid: &str, mute: bool) -> Result<(), Refusal> {
        self.check_treatable(id)?;
        if let Some(stream) = self.publications.moderate(id, mid, mute)? {
            self.relay_stream(id, stream);
            self.update_media(id);
            self.record(id, false);
        }
        let event = self
            .event()
            .with("id", id.to_json())
            .with("mid", mid)
            .with("moderation", moderation(mute));
        self.tell_all(event);
        Ok(())
    }

    /// Checks that there is a participant whom moderators may treat: the dummy publisher is none.
    pub(super) fn check_treatable(&self, id: &Id) -> Result<(), Refusal> {
        let person = self.roster.get(id).filter(|person| !person.is_dummy());
        person.map(drop).ok_or_else(|| Refusal::NoSuchUser {
            id: id.clone(),
            room: self.id.clone(),
        })
    }

    /// Records all that there is and that comes, or nothing any more.
    pub(crate) fn record_all(&mut self, on: bool, format: Option<Format>) -> Result<(), Refusal> {
        self.options.record_format = format.or(self.options.record_format);
        if on == self.options.record {
            return Ok(());
        }
        let people = self.roster.ids();
        if on && !people.is_empty() {
            self.check_recording(None)?;
        }
        self.options.record = on;
        for id in people {
            if let Some(person) = self.roster.get_mut(&id) {
                person.settings.record.on = on;
            }
            self.record(&id, on);
        }
        Ok(())
    }

    /// The room has other options: publishers are asked for keyframes as they say.
    pub(crate) fn keyframes_changed(&mut self) {
        for id in self.roster.ids() {
            self.publications.update_keyframes(&id, &self.options);
        }
    }

    /// Checks that recordings of this name could be made.
    fn check_recording(&self, name: Option<&str>) -> Result<(), Refusal> {
        let dir = self.options.rec_dir.as_deref();
        self.publications.check_recording(dir, name)
    }

    /// Brings the recordings of a participant up to date; those that failed begin `anew`, or do not.
    pub(super) fn record(&mut self, id: &Id, anew: bool) {
        if let Some(person) = self.roster.get(id) {
            let options = &self.options;
            let of = Recorded {
                room: &self.id,
                id,
                display: person.display(),
                description: &options.description,
                dir: options.rec_dir.as_deref(),
                format: options.record_format,
            };
            let settings = &person.settings.record;
            self.publications.record(&of, settings, anew);
        }
    }

    /// Has the media plane listen to what somebody sends, keep it and ask for keyframes, as the room wants it.
    pub(super) fn update_media(&mut self, id: &Id) {
        self.listen(id);
        self.publications.update_keyframes(id, &self.options);
    }

    /// What somebody publishes, stream by stream.
    pub(super) fn streams(&self, id: &Id) -> &[Stream] {
        self.publications.get(id).map_or(&[], Publication::streams)
    }
}

/// What a moderator has done to a stream.
pub(crate) const fn moderation(mute: bool) -> &'static str {
    match mute {
        true => "muted",
        false => "unmuted",
    }
}

/// What the publisher is told of an exchange: the codecs, and its streams.
fn agreed(media: &Publication, offer: &Description) -> Object {
    let offered = |kind| offer.media.iter().any(|media| media.kind == kind);
    let codec = |kind| media.codec(kind).or(offered(kind).then_some("none"));
    let streams: Vec<Value> = media.streams().iter().map(Stream::own).collect();
    Object::new()
        .with_some("audio_codec", codec(Kind::Audio))
        .with_some("video_codec", codec(Kind::Video))
        .with("streams", streams)
}
