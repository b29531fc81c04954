//! Settings of publishers.

use portunus_record::Format;
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Jsep, Kind};
use serde::Deserialize;

use super::answer::Forced;
use super::{Forwarder, Publication, Publications, Stream};
use crate::roster::{MediaSettings, Profile, TalkSettings};
use crate::{PersonId, Refusal, RoomSettings};

/// Settings of a publisher. `None` leaves a setting as it is.
#[derive(Debug, Clone, Default)]
pub struct Configure {
    /// The cap on its bitrate, in bit/s; 0 means no cap.
    pub bitrate: Option<u64>,
    /// The change of its recordings. `None` as well if the client may not change them.
    pub record: Option<RecordChange>,
    /// Its name and metadata.
    pub profile: Profile,
    /// When it counts as talking.
    pub talk: TalkSettings,
    /// Whether its audio is relayed.
    pub audio: Option<bool>,
    /// Whether its video is relayed.
    pub video: Option<bool>,
    /// Whether its data is relayed.
    pub data: Option<bool>,
    /// The settings of single streams.
    pub streams: Vec<StreamSetting>,
    /// New descriptions of streams.
    pub descriptions: Vec<StreamDescription>,
    /// The audio codec for the answer to an offer. The room has to have it.
    pub audiocodec: Option<String>,
    /// The video codec for the answer to an offer. The room has to have it.
    pub videocodec: Option<String>,
    /// The wishes of the door for single m-lines of the answer to an offer.
    pub lines: Vec<LineWish>,
    /// Whether the door takes the data of the participant, so that nobody can subscribe to it.
    pub keeps_data: bool,
    /// Whether the home of the room has given the participant a place among the publishers.
    pub has_place: bool,
}

/// A wish of the door for an m-line of the answer to an offer. `None` means as it is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineWish {
    /// The m-line.
    pub mid: Mid,
    /// The codec, where the room has it.
    pub codec: Option<CodecName>,
    /// Whether Opus may be sent discontinuously, where the room permits it.
    pub dtx: Option<bool>,
    /// Whether Opus may be stereo.
    pub stereo: Option<bool>,
    /// Whether Opus may be sent with redundancy (RFC 2198).
    pub red: bool,
}

impl LineWish {
    /// Returns the wish to have an m-line as it is offered, without redundancy.
    pub const fn of(mid: Mid) -> Self {
        LineWish {
            mid,
            codec: None,
            dtx: None,
            stereo: None,
            red: false,
        }
    }
}

/// The description of a stream for people.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct StreamDescription {
    /// The m-line.
    pub mid: String,
    /// The text.
    pub description: String,
}

/// A change of a participant's recordings. `None` leaves a setting as it is.
#[derive(Debug, Clone, Default)]
pub struct RecordChange {
    /// Whether it is recorded. `true` restarts failed recordings.
    pub on: Option<bool>,
    /// The prefix of file names.
    pub name: Option<String>,
    /// The format of the files.
    pub format: Option<Format>,
    /// Whether the client may know why a recording failed.
    pub told_why: bool,
}

/// Settings of one stream, or of all video.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StreamSetting {
    /// The m-line. `None` means all video; `send` is ignored then.
    pub mid: Option<String>,
    /// Whether it is relayed.
    pub send: Option<bool>,
    /// Whether a keyframe is requested.
    pub keyframe: bool,
    /// The least playout delay, in 10 ms. A negative one removes both limits.
    pub min_delay: Option<i64>,
    /// The greatest playout delay, in 10 ms. A negative one removes both limits.
    pub max_delay: Option<i64>,
}

impl StreamSetting {
    /// Applies the setting to a stream. Returns whether it concerns the stream.
    fn apply(&self, stream: &mut Stream) -> bool {
        let named = self.mid.as_deref() == Some(stream.mid.as_str());
        let all = self.mid.is_none() && stream.kind == Kind::Video;
        if !named && !all {
            return false;
        }
        if let Some(send) = self.send.filter(|_| named) {
            stream.gate.send = send;
        }
        stream.delay.set(self.min_delay, self.max_delay);
        true
    }
}

impl Configure {
    /// Returns the forced codecs. Refuses those that the room does not have.
    pub(crate) fn forced(&self, settings: &RoomSettings) -> Result<Forced, Refusal> {
        let codec = |kind, wanted: &Option<String>, list: &[CodecName]| {
            let Some(wanted) = wanted else {
                return Ok(None);
            };
            let codec = CodecName::from_name(wanted).filter(|codec| list.contains(codec));
            codec.ok_or(Refusal::ForeignCodec(kind)).map(Some)
        };
        Ok(Forced {
            audio: codec(Kind::Audio, &self.audiocodec, &settings.codecs.audio)?,
            video: codec(Kind::Video, &self.videocodec, &settings.codecs.video)?,
        })
    }

    /// Returns whether it asks for recordings, or names their files.
    pub(crate) fn records(&self) -> bool {
        self.begins_recording() || self.filename().is_some()
    }

    /// Returns the prefix of file names of recordings.
    pub(crate) fn filename(&self) -> Option<&str> {
        self.record.as_ref()?.name.as_deref()
    }

    /// Returns whether it asks for recordings, so that failed ones restart.
    pub(crate) fn begins_recording(&self) -> bool {
        let on = self.record.as_ref().and_then(|record| record.on);
        on == Some(true)
    }

    /// Changes the settings of a participant.
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

    /// Returns its setting for streams of `kind`.
    fn sends(&self, kind: Kind) -> Option<bool> {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => self.data,
        }
    }

    /// Checks that all m-lines that it names are among `streams`.
    pub(crate) fn check_mids(&self, streams: &[Stream]) -> Result<(), Refusal> {
        for mid in self.streams.iter().filter_map(|s| s.mid.as_deref()) {
            if !streams.iter().any(|stream| stream.mid.as_str() == mid) {
                return Err(Refusal::NoSuchFeed(format!("mid {mid}")));
            }
        }
        Ok(())
    }
}

/// The streams that a [`Configure`] has changed.
#[derive(Debug, Default)]
pub(crate) struct ChangedStreams {
    /// The indices of streams that are relayed now, or not any more, or with another delay.
    pub(crate) relayed: Vec<usize>,
    /// Whether one of them has a new description.
    pub(crate) described: bool,
}

impl Publications {
    /// Applies the settings of streams.
    pub(crate) fn configure(&mut self, id: &PersonId, configure: &Configure) -> ChangedStreams {
        let mut changed = ChangedStreams::default();
        let Some(publication) = self.by_feed.get_mut(id) else {
            return changed;
        };
        for stream in &mut publication.streams {
            let before = (stream.is_open(), stream.delay);
            let gate = &mut stream.gate;
            gate.send = configure.sends(stream.kind).unwrap_or(gate.send);
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
                changed.relayed.push(stream.index);
            }
            let mid = stream.mid.as_str();
            let new = configure.descriptions.iter().find(|new| new.mid == mid);
            if let Some(new) = new {
                stream.description = Some(new.description.clone());
                changed.described = true;
            }
        }
        changed
    }

    /// Replaces a participant's streams by those of a new exchange, which keep the state of theirs.
    pub(crate) fn renegotiate(&mut self, id: &PersonId, streams: Vec<Stream>, jsep: &Jsep) {
        if let Some(publication) = self.by_feed.get_mut(id) {
            for forwarder in publication.renegotiate(streams, jsep) {
                self.media.remove_route(forwarder.route);
            }
        }
    }
}

impl Publication {
    /// Replaces the streams. Returns the forwarders that do not continue.
    fn renegotiate(&mut self, streams: Vec<Stream>, jsep: &Jsep) -> Vec<Forwarder> {
        self.e2ee = jsep.e2ee;
        let mut ended = Vec::new();
        let mut before = std::mem::take(&mut self.streams).into_iter();
        self.streams = streams;
        for stream in &mut self.streams {
            let Some(old) = before.next() else { break };
            if old.mid == stream.mid {
                stream.continue_from(old, jsep);
            } else {
                ended.extend(old.forwarders);
            }
        }
        ended
    }
}

impl Stream {
    /// Takes over the state of the same m-line before a new exchange.
    fn continue_from(&mut self, old: Stream, jsep: &Jsep) {
        let same_codec = old.format.codec == self.format.codec;
        // An offer without SVC on any m-line may just not announce it.
        let is_same = same_codec && !self.format.simulcast;
        self.format.svc |= old.format.svc && is_same && jsep.svc.is_empty();
        // Another codec needs another file.
        self.recording = old.recording.filter(|_| same_codec);
        self.description = old.description;
        self.gate = old.gate;
        self.delay = old.delay;
        self.audio = old.audio;
        self.keyframes = old.keyframes;
        self.forwarders = old.forwarders;
        self.far_layer = old.far_layer;
    }
}
