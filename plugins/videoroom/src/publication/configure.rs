//! Changing how somebody publishes.

use portunus_core::record::Format;
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{FieldError, Fields, Jsep, Right, Rights, equal_in_constant_time};
use portunus_resources::Id;

use super::answer::Forced;
use super::{Forwarder, Publication, Publications, Stream};
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::roster::{MediaSettings, Profile, TalkSettings};

/// A participant's `configure`, `publish`, or the second half of its `joinandconfigure`.
#[derive(Debug)]
pub(crate) struct Configure {
    /// bit/s; 0: no cap
    bitrate: Option<u64>,
    record: Option<bool>,
    /// It may be told why something is not recorded.
    told_why: bool,
    filename: Option<String>,
    record_format: Option<Format>,
    secret: Option<String>,
    profile: Profile,
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
    pub(crate) fn read(fields: Fields<'_>, rights: Rights) -> Result<Self, Refusal> {
        let text = |name| fields.string(name).map(|text| text.map(str::to_owned));
        fields.boolean("update")?;
        fields.boolean("restart")?;
        let settings = match fields.objects("streams")? {
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
        for entry in fields.objects("descriptions")?.into_iter().flatten() {
            let mid = entry.required_string("mid")?.to_owned();
            let description = entry.required_string("description")?.to_owned();
            descriptions.push((mid, description));
        }
        Ok(Configure {
            bitrate: fields.positive("bitrate")?,
            record: fields.boolean("record")?,
            told_why: rights.may(Right::Record),
            filename: text("filename")?.filter(|_| rights.may(Right::Record)),
            record_format: fields.record_format()?,
            secret: text("secret")?,
            profile: Profile::read(fields)?,
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
    pub(crate) fn forced(&self, options: &RoomOptions) -> Result<Forced, Refusal> {
        let codec = |name: &str, requested: &Option<String>, list: &[CodecName]| {
            let Some(requested) = requested else {
                return Ok(None);
            };
            let codec = CodecName::from_name(requested).filter(|codec| list.contains(codec));
            let refusal = || Refusal::value(name, "not a codec of this room");
            codec.ok_or_else(refusal).map(Some)
        };
        Ok(Forced {
            audio: codec("audiocodec", &self.audiocodec, &options.audiocodec)?,
            video: codec("videocodec", &self.videocodec, &options.videocodec)?,
        })
    }

    /// Whether it may begin recordings, and asks for that or says what they are called. Whoever may not is not told.
    pub(crate) fn records(&self, options: &RoomOptions) -> bool {
        let asks = self.record == Some(true) || self.filename.is_some();
        asks && self.may_record(options)
    }

    /// Whether it asks for what a room lets nobody do but who shows its secret.
    pub(crate) fn needs_secret(&self, options: &RoomOptions) -> bool {
        options.lock_record && (self.record.is_some() || self.filename.is_some())
    }

    /// What the files of recordings are to be called.
    pub(crate) fn filename(&self) -> Option<&str> {
        self.filename.as_deref()
    }

    /// Whether it may change what is recorded.
    fn may_record(&self, options: &RoomOptions) -> bool {
        match &options.access.secret {
            Some(secret) if options.lock_record => {
                let shown = self.secret.as_deref().unwrap_or_default();
                equal_in_constant_time(secret, shown)
            }
            _ => true,
        }
    }

    /// Whether it asks for recording by itself: what failed is begun anew.
    pub(crate) fn begins_recording(&self) -> bool {
        self.record == Some(true)
    }

    /// The cap on what is sent, in bit/s.
    pub(crate) const fn bitrate(&self) -> Option<u64> {
        self.bitrate
    }

    /// What is to be shown of the participant from now on.
    pub(crate) fn profile(&self) -> Profile {
        self.profile.clone()
    }

    /// Changes how a participant's media is treated.
    pub(crate) fn apply(&self, settings: &mut MediaSettings, options: &RoomOptions) {
        settings.bitrate = self.bitrate.unwrap_or(settings.bitrate);
        settings.talk.packets = self.talk.packets.or(settings.talk.packets);
        settings.talk.level = self.talk.level.or(settings.talk.level);
        if self.may_record(options) {
            let record = &mut settings.record;
            record.told_why = self.told_why;
            record.on = self.record.unwrap_or(record.on);
            record.name = self.filename.clone().or(record.name.take());
            record.format = self.record_format.or(record.format);
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

    /// Checks that all m-lines that it names are among these.
    pub(crate) fn check_mids(&self, streams: &[Stream]) -> Result<(), Refusal> {
        for mid in self.settings.iter().filter_map(|s| s.mid.as_deref()) {
            if !streams.iter().any(|stream| stream.mid.as_str() == mid) {
                return Err(Refusal::NoSuchFeed(format!("mid {mid}")));
            }
        }
        Ok(())
    }
}

/// What a `configure` changed of the streams.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The places of those that are let out, or not, or with another delay.
    pub(crate) streams: Vec<usize>,
    /// Some are described otherwise.
    pub(crate) described: bool,
}

impl Publications {
    /// Changes how streams are sent.
    pub(crate) fn configure(&mut self, id: &Id, configure: &Configure) -> Changes {
        let mut changes = Changes::default();
        let Some(publication) = self.by_feed.get_mut(id) else {
            return changes;
        };
        for stream in &mut publication.streams {
            let before = (stream.is_open(), stream.delay);
            stream.send = configure.sends(stream.kind).unwrap_or(stream.send);
            let mut keyframe = false;
            for setting in &configure.settings {
                keyframe |= setting.apply(stream) && setting.keyframe;
            }
            if keyframe && stream.kind == Kind::Video {
                publication.origin.request_keyframe_on(stream.mid);
            }
            if before != (stream.is_open(), stream.delay) {
                changes.streams.push(stream.index);
            }
            let mid = stream.mid.as_str();
            let text = configure.descriptions.iter().find(|(m, _)| m == mid);
            if let Some((_, text)) = text {
                stream.description = Some(text.clone());
                changes.described = true;
            }
        }
        changes
    }

    /// Takes the streams of a new exchange, with what stays of those before.
    pub(crate) fn renegotiate(&mut self, id: &Id, streams: Vec<Stream>, jsep: &Jsep) {
        if let Some(publication) = self.by_feed.get_mut(id) {
            let ended = publication.renegotiate(streams, jsep);
            self.drop_forwarders(&ended);
        }
    }
}

impl Publication {
    /// Takes the streams of a new exchange, with what stays of those before; gives the forwarders that do not.
    fn renegotiate(&mut self, streams: Vec<Stream>, jsep: &Jsep) -> Vec<Forwarder> {
        self.e2ee = jsep.e2ee;
        let mut ended = Vec::new();
        let mut before = std::mem::take(&mut self.streams).into_iter();
        self.streams = streams;
        for stream in &mut self.streams {
            let Some(old) = before.next() else { break };
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
