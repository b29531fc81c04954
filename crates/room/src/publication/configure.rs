//! Changing how somebody publishes.

use portunus_record::Format;
use portunus_sdp::{CodecName, Jsep, Kind};
use serde::Deserialize;

use super::answer::Forced;
use super::{Forwarder, Publication, Publications, Stream};
use crate::roster::{MediaSettings, Profile, TalkSettings};
use crate::{PersonId, Refusal, RoomSettings};

/// How a participant publishes from now on. What is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct Configure {
    /// The cap on what is sent, in bit/s; 0 means no cap.
    pub bitrate: Option<u64>,
    /// What changes of its recordings. `None` for somebody who may not change them.
    pub record: Option<RecordChange>,
    /// What it shows of itself.
    pub profile: Profile,
    /// When it counts as talking.
    pub talk: TalkSettings,
    /// Whether its audio is let out.
    pub audio: Option<bool>,
    /// Whether its video is let out.
    pub video: Option<bool>,
    /// Whether its data is let out.
    pub data: Option<bool>,
    /// What is set of single streams.
    pub streams: Vec<StreamSetting>,
    /// New descriptions of streams, by their mids.
    pub descriptions: Vec<(String, String)>,
    /// The name of the codec of audio that an offer is answered with. The room has to have it.
    pub audiocodec: Option<String>,
    /// The same for video.
    pub videocodec: Option<String>,
}

/// What a participant changes of its recordings. What is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct RecordChange {
    /// Whether it is recorded. `true` begins what failed anew.
    pub on: Option<bool>,
    /// What names of files begin with.
    pub name: Option<String>,
    /// The format of the files.
    pub format: Option<Format>,
    /// It may be told why something is not recorded.
    pub told_why: bool,
}

/// What is set of one stream, or of all video.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StreamSetting {
    /// The m-line. `None` means all video, which is neither let out nor held back by it.
    pub mid: Option<String>,
    /// Whether it is let out.
    pub send: Option<bool>,
    /// Its publisher is asked for a keyframe.
    pub keyframe: bool,
    /// The least playout delay, in units of 10 ms; a negative one turns both off.
    pub min_delay: Option<i64>,
    /// The greatest playout delay, in units of 10 ms; a negative one turns both off.
    pub max_delay: Option<i64>,
}

impl StreamSetting {
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
    /// The codecs that it insists on, if the room has them.
    pub(crate) fn forced(&self, settings: &RoomSettings) -> Result<Forced, Refusal> {
        let codec = |kind, wanted: &Option<String>, list: &[CodecName]| {
            let Some(wanted) = wanted else {
                return Ok(None);
            };
            let codec = CodecName::from_name(wanted).filter(|codec| list.contains(codec));
            codec.ok_or(Refusal::ForeignCodec(kind)).map(Some)
        };
        Ok(Forced {
            audio: codec(Kind::Audio, &self.audiocodec, &settings.audiocodec)?,
            video: codec(Kind::Video, &self.videocodec, &settings.videocodec)?,
        })
    }

    /// Whether it asks for recordings, or says what they are called.
    pub(crate) fn records(&self) -> bool {
        self.begins_recording() || self.filename().is_some()
    }

    /// What the files of recordings are to be called.
    pub(crate) fn filename(&self) -> Option<&str> {
        self.record.as_ref()?.name.as_deref()
    }

    /// Whether it asks for recording by itself: what failed is begun anew.
    pub(crate) fn begins_recording(&self) -> bool {
        let on = self.record.as_ref().and_then(|record| record.on);
        on == Some(true)
    }

    /// Changes how a participant's media is treated.
    pub(crate) fn apply(&self, settings: &mut MediaSettings) {
        settings.bitrate = self.bitrate.unwrap_or(settings.bitrate);
        settings.talk.packets = self.talk.packets.or(settings.talk.packets);
        settings.talk.level = self.talk.level.or(settings.talk.level);
        if let Some(change) = &self.record {
            let record = &mut settings.record;
            record.told_why = change.told_why;
            record.on = change.on.unwrap_or(record.on);
            record.name = change.name.clone().or(record.name.take());
            record.format = change.format.or(record.format);
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
        for mid in self.streams.iter().filter_map(|s| s.mid.as_deref()) {
            if !streams.iter().any(|stream| stream.mid.as_str() == mid) {
                return Err(Refusal::NoSuchFeed(format!("mid {mid}")));
            }
        }
        Ok(())
    }
}

impl Publications {
    /// Changes how streams are sent. Returns the places of those that are let out now, or not, or with another delay, and
    /// whether some are described otherwise.
    pub(crate) fn configure(&mut self, id: &PersonId, configure: &Configure) -> (Vec<usize>, bool) {
        let (mut changed, mut described) = (Vec::new(), false);
        let Some(publication) = self.by_feed.get_mut(id) else {
            return (changed, described);
        };
        for stream in &mut publication.streams {
            let before = (stream.is_open(), stream.delay);
            stream.send = configure.sends(stream.kind).unwrap_or(stream.send);
            let mut keyframe = false;
            for setting in &configure.streams {
                keyframe |= setting.apply(stream) && setting.keyframe;
            }
            if keyframe && stream.kind == Kind::Video {
                publication
                    .origin
                    .request_keyframe_on(&self.media, stream.mid);
            }
            if before != (stream.is_open(), stream.delay) {
                changed.push(stream.index);
            }
            let mid = stream.mid.as_str();
            let text = configure.descriptions.iter().find(|(m, _)| m == mid);
            if let Some((_, text)) = text {
                stream.description = Some(text.clone());
                described = true;
            }
        }
        (changed, described)
    }

    /// Takes the streams of a new exchange, with what stays of those before.
    pub(crate) fn renegotiate(&mut self, id: &PersonId, streams: Vec<Stream>, jsep: &Jsep) {
        if let Some(publication) = self.by_feed.get_mut(id) {
            for forwarder in publication.renegotiate(streams, jsep) {
                self.media.remove_route(forwarder.route);
            }
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
