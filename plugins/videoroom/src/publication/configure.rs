//! Publishing, and changing how.

use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{
    FieldError, Fields, HandleId, Jsep, JsepKind, LocalJsep, Object, equal_in_constant_time,
};
use serde_json::{Map, Value};

use super::answer::{self, Forced};
use crate::id::Id;
use crate::members;
use crate::publication::{Forwarder, Published, Stream};
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::TalkSettings;

/// A participant's `configure`, `publish`, or the second half of its `joinandconfigure`.
#[derive(Debug)]
pub(crate) struct Configure {
    /// bit/s; 0: no cap
    bitrate: Option<u64>,
    record: Option<bool>,
    filename: Option<String>,
    secret: Option<String>,
    display: Option<String>,
    metadata: Option<Map<String, Value>>,
    talk: TalkSettings,
    /// `send` by kind of media.
    audio: Option<bool>,
    video: Option<bool>,
    data: Option<bool>,
    settings: Vec<Setting>,
    descriptions: Vec<(String, String)>,
    audiocodec: Option<String>,
    videocodec: Option<String>,
}

/// What is set of one stream, or of all.
#[derive(Debug)]
struct Setting {
    mid: Option<String>,
    send: Option<bool>,
    keyframe: bool,
    min_delay: Option<i64>,
    max_delay: Option<i64>,
}

impl Setting {
    fn read(fields: Fields<'_>) -> Result<Self, FieldError> {
        Ok(Setting {
            mid: fields.string("mid")?.map(str::to_owned),
            send: fields.boolean("send")?,
            keyframe: fields.boolean("keyframe")?.unwrap_or(false),
            min_delay: fields.integer("min_delay")?,
            max_delay: fields.integer("max_delay")?,
        })
    }

    /// Without an m-line it is for all video, and closes or opens nothing.
    fn apply(&self, stream: &mut Stream) -> bool {
        let named = self.mid.as_deref() == Some(stream.mid.as_str());
        let all = self.mid.is_none() && stream.kind == Kind::Video;
        if !named && !all {
            return false;
        }
        if let Some(send) = self.send.filter(|_| named) {
            stream.send = send;
        }
        stream.delay.set(self.min_delay, self.max_delay);
        true
    }
}

impl Configure {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let text = |name| fields.string(name).map(|text| text.map(str::to_owned));
        fields.boolean("update")?;
        fields.boolean("restart")?;
        let settings = match members::objects(fields, "streams")? {
            Some(entries) => entries.into_iter().map(Setting::read).collect(),
            None => Setting::read(fields).map(|setting| vec![setting]),
        };
        let settings: Vec<Setting> = settings?;
        if settings.len() > 1 && settings.iter().any(|setting| setting.mid.is_none()) {
            return Err(Refusal::value(
                "mid",
                "needed where there are several streams",
            ));
        }
        let mut descriptions = Vec::new();
        for entry in members::objects(fields, "descriptions")?
            .into_iter()
            .flatten()
        {
            let mid = entry.required_string("mid")?.to_owned();
            let description = entry.required_string("description")?.to_owned();
            descriptions.push((mid, description));
        }
        Ok(Configure {
            bitrate: fields.positive("bitrate")?,
            record: fields.boolean("record")?,
            filename: text("filename")?,
            secret: text("secret")?,
            display: text("display")?,
            metadata: members::object(fields, "metadata")?.cloned(),
            talk: TalkSettings::read(fields)?,
            audio: fields.boolean("audio")?,
            video: fields.boolean("video")?,
            data: fields.boolean("data")?,
            settings,
            descriptions,
            audiocodec: text("audiocodec")?,
            videocodec: text("videocodec")?,
        })
    }

    /// The codecs that it insists on, if the room has them.
    fn forced(&self, room: &RoomState) -> Result<Forced, Refusal> {
        let codec = |name: &str, requested: &Option<String>, list: &[CodecName]| {
            let Some(requested) = requested else {
                return Ok(None);
            };
            let codec = CodecName::from_name(requested).filter(|codec| list.contains(codec));
            let refusal = || Refusal::value(name, "not a codec of this room");
            codec.ok_or_else(refusal).map(Some)
        };
        Ok(Forced {
            audio: codec("audiocodec", &self.audiocodec, &room.options.audiocodec)?,
            video: codec("videocodec", &self.videocodec, &room.options.videocodec)?,
        })
    }

    /// Whether it may change what is recorded: whoever may not is not told.
    fn may_record(&self, room: &RoomState) -> bool {
        match &room.options.secret {
            Some(secret) if room.options.lock_record => {
                let shown = self.secret.as_deref().unwrap_or_default();
                equal_in_constant_time(secret, shown)
            }
            _ => true,
        }
    }

    /// What it says of the sending of streams of `kind`.
    fn sends(&self, kind: Kind) -> Option<bool> {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => self.data,
        }
    }
}

/// What came of a `configure`.
#[derive(Debug)]
pub(crate) struct Configured {
    /// Members for the answer: the codecs and streams, if there was an offer.
    pub(crate) members: Object,
    pub(crate) jsep: Option<LocalJsep>,
    /// What is published has changed: others are told once the publisher was.
    pub(crate) tell: bool,
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
        self.person(id, handle)?;
        if configure.may_record(self)
            && (configure.record == Some(true) || configure.filename.is_some())
        {
            self.check_recording(configure.filename.as_deref())?;
        }
        let mut configured = Configured {
            members: Object::new(),
            jsep: None,
            tell: false,
        };
        match jsep {
            Some(jsep) if jsep.kind == JsepKind::Answer => {
                return Err(Refusal::WrongSdpType("type"));
            }
            Some(jsep) => self.negotiate(id, configure, jsep, &mut configured)?,
            None => self.check_mids(id, configure, None)?,
        }
        self.apply(id, configure, jsep.is_some(), &mut configured);
        Ok(configured)
    }

    fn negotiate(
        &mut self,
        id: &Id,
        configure: &Configure,
        jsep: &Jsep,
        configured: &mut Configured,
    ) -> Result<(), Refusal> {
        self.check_e2ee(jsep.e2ee)?;
        let forced = configure.forced(self)?;
        let person = self.people.get(id).ok_or(Refusal::NotInRoom)?;
        let is_new = person.media.is_none();
        if is_new {
            self.check_limit()?;
        }
        let before = person.media.as_ref().map(|media| media.streams.as_slice());
        let bitrate = configure.bitrate.unwrap_or(person.bitrate);
        let name = format!("VideoRoom {}", self.id);
        let before = before.unwrap_or_default();
        let (answer, streams) = answer::answer(&self.options, name, forced, jsep, before, bitrate);
        self.check_mids(id, configure, Some(&streams))?;
        let handle = person.origin.handle().ok_or(Refusal::NotInRoom)?.clone();
        let local = handle.answer(answer)?;
        let offered = |kind| {
            jsep.description
                .media
                .iter()
                .any(|media| media.kind == kind)
        };
        match self.people.get_mut(id).and_then(|p| p.media.as_mut()) {
            Some(media) => {
                let ended = media.renegotiate(streams, jsep);
                self.drop_forwarders(&ended);
            }
            None => {
                let media = Published {
                    active: None,
                    e2ee: jsep.e2ee,
                    streams,
                    remotizations: Vec::new(),
                };
                self.start_media(id, media);
            }
        }
        let media = self.people.get(id).and_then(|p| p.media.as_ref());
        let codec = |kind| {
            let codec = media.and_then(|media| media.codec(kind));
            codec.or(offered(kind).then_some("none"))
        };
        configured.members = Object::new()
            .with_some("audio_codec", codec(Kind::Audio))
            .with_some("video_codec", codec(Kind::Video));
        configured.jsep = Some(local);
        configured.tell = !is_new;
        handle.set_bitrate((bitrate > 0).then_some(bitrate));
        Ok(())
    }

    /// Checks the m-lines that are named against `streams`, or else against those that are published.
    fn check_mids(
        &self,
        id: &Id,
        configure: &Configure,
        streams: Option<&[Stream]>,
    ) -> Result<(), Refusal> {
        let media = self.people.get(id).and_then(|p| p.media.as_ref());
        let published = media.map(|media| media.streams.as_slice());
        let streams = streams.or(published).unwrap_or_default();
        for mid in configure.settings.iter().filter_map(|s| s.mid.as_deref()) {
            if !streams.iter().any(|stream| stream.mid.as_str() == mid) {
                return Err(Refusal::NoSuchFeed(format!("mid {mid}")));
            }
        }
        Ok(())
    }

    /// Applies what needs no negotiation.
    fn apply(&mut self, id: &Id, configure: &Configure, negotiated: bool, out: &mut Configured) {
        self.rename(id, configure);
        let Some(person) = self.people.get_mut(id) else {
            return;
        };
        if let Some(bitrate) = configure.bitrate {
            person.bitrate = bitrate;
            if !negotiated {
                person.origin.set_bitrate((bitrate > 0).then_some(bitrate));
            }
        }
        person.talk.packets = configure.talk.packets.or(person.talk.packets);
        person.talk.level = configure.talk.level.or(person.talk.level);
        let mut described = false;
        let mut changed = Vec::new();
        if let Some(media) = &mut person.media {
            for stream in &mut media.streams {
                let before = (stream.is_open(), stream.delay);
                stream.send = configure.sends(stream.kind).unwrap_or(stream.send);
                let mut keyframe = false;
                for setting in &configure.settings {
                    keyframe |= setting.apply(stream) && setting.keyframe;
                }
                if keyframe && stream.kind == Kind::Video {
                    person.origin.request_keyframe_on(stream.mid);
                }
                if negotiated || before != (stream.is_open(), stream.delay) {
                    changed.push(stream.index);
                }
                let mid = stream.mid.as_str();
                let text = configure.descriptions.iter().find(|(m, _)| m == mid);
                if let Some((_, text)) = text {
                    stream.description = Some(text.clone());
                    described = true;
                }
            }
            if negotiated {
                let own: Vec<_> = media.streams.iter().map(Stream::own).collect();
                out.members = std::mem::take(&mut out.members).with("streams", own);
            }
        }
        out.tell |= described && !negotiated;
        for stream in changed {
            self.relay_stream(id, stream);
        }
        if negotiated {
            self.reseat_all();
            self.extend_remotizations(id);
        }
        self.listen(id);
        self.tend_keyframes(id);
        self.configure_recording(id, configure);
    }

    fn configure_recording(&mut self, id: &Id, configure: &Configure) {
        if configure.may_record(self)
            && let Some(person) = self.people.get_mut(id)
        {
            let settings = &mut person.record;
            settings.on = configure.record.unwrap_or(settings.on);
            settings.name = configure.filename.clone().or(settings.name.take());
        }
        self.record(id, configure.record == Some(true));
    }

    /// Changes what is shown of somebody; others are told if they were shown something else before.
    fn rename(&mut self, id: &Id, configure: &Configure) {
        let Some(person) = self.people.get_mut(id) else {
            return;
        };
        let change = Object::new()
            .with("videoroom", "event")
            .with("id", person.id.to_json());
        let mut told = Vec::new();
        if let Some(display) = configure.display.clone() {
            let before = person.display.replace(display);
            if before.is_some_and(|before| Some(before) != person.display) {
                told.push(person.labelled(change.clone()));
            }
        }
        if let Some(metadata) = configure.metadata.clone() {
            let before = person.metadata.replace(metadata);
            if before.is_some_and(|before| Some(before) != person.metadata) {
                told.push(change.with_some("metadata", person.metadata.clone()));
            }
        }
        for event in told {
            self.tell_others(id, event);
        }
    }
}

impl Published {
    /// Takes the streams of a new exchange, with what stays of those before; gives the forwarders that do not.
    fn renegotiate(&mut self, streams: Vec<Stream>, jsep: &Jsep) -> Vec<Forwarder> {
        self.e2ee = jsep.e2ee;
        let mut ended = Vec::new();
        let mut before = std::mem::take(&mut self.streams).into_iter();
        self.streams = streams;
        for stream in &mut self.streams {
            let Some(old) = before.next() else { break };
            stream.receivers = old.receivers;
            if old.mid == stream.mid {
                stream.description = old.description;
                stream.send = old.send;
                stream.moderated = old.moderated;
                // An offer that does not say it of any m-line says nothing of it.
                let is_same = old.codec == stream.codec && !stream.simulcast;
                stream.svc |= old.svc && is_same && jsep.svc.is_empty();
                stream.delay = old.delay;
                stream.talk = old.talk;
                stream.kept = old.kept;
                stream.asked_every = old.asked_every;
                // Another codec begins another file.
                stream.recording = old.recording.filter(|_| old.codec == stream.codec);
                stream.forwarders = old.forwarders;
            } else {
                ended.extend(old.forwarders);
            }
        }
        ended
    }
}
