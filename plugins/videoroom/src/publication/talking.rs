//! Listening: what the media plane hears of those who talk is told to all.

use portunus_core::media::TalkDetection;
use portunus_core::{Mid, Object};

use crate::id::Id;
use crate::options::RoomOptions;
use crate::room::RoomState;
use crate::roster::Participant;

impl RoomState {
    /// Listens to what somebody sends, where the room wants that and packets say how loud they are.
    pub(crate) fn listen(&mut self, id: &Id) {
        let Some(person) = self.people.get_mut(id) else {
            return;
        };
        let detection = person.detection(&self.options);
        let measured = self.speakers.measured();
        let mut silenced = Vec::new();
        let streams = person.media.iter_mut().flat_map(|media| &mut media.streams);
        for stream in streams {
            let heard = stream.has_levels() && stream.is_open();
            let wanted = detection.filter(|_| heard);
            let before = (stream.talk.detection, stream.talk.measured);
            let after = (wanted, measured && heard);
            if before == after {
                continue;
            }
            (stream.talk.detection, stream.talk.measured) = after;
            person.origin.listen(stream.mid, before, after);
            // Whoever is not heard any more does not talk.
            if wanted.is_none() && stream.talk.talking {
                silenced.push((stream.mid, stream.talk.level.unwrap_or(SILENCE)));
            }
        }
        for (mid, level) in silenced {
            self.heard(id, mid, false, level);
        }
    }

    /// Somebody has begun or ceased to talk: all are told.
    pub(crate) fn heard(&mut self, id: &Id, mid: Mid, talking: bool, level: f64) {
        let media = self.people.get_mut(id).and_then(|p| p.media.as_mut());
        let Some(stream) = media.and_then(|media| media.stream_mut(mid)) else {
            return;
        };
        stream.talk.level = Some(level);
        // What was heard before the stream was closed is no news.
        if stream.talk.talking == talking || (talking && stream.talk.detection.is_none()) {
            return;
        }
        stream.talk.talking = talking;
        let event = Object::new()
            .with(
                "videoroom",
                if talking {
                    "talking"
                } else {
                    "stopped-talking"
                },
            )
            .with("room", self.id.to_json())
            .with("id", id.to_json())
            .with("mindex", stream.index)
            .with("mid", mid.as_str())
            .with("audio-level-dBov-avg", level);
        self.tell_all(event);
    }
}

/// The level of silence, in -dBov.
const SILENCE: f64 = 127.0;

impl Participant {
    /// When it counts as talking, if the room wants to know.
    fn detection(&self, options: &RoomOptions) -> Option<TalkDetection> {
        let packets = self.talk.packets.unwrap_or(options.audio_active_packets);
        let level = self.talk.level.unwrap_or(options.audio_level_average);
        options.audiolevel_event.then(|| TalkDetection {
            packets: u32::try_from(packets).unwrap_or(u32::MAX),
            level: u8::try_from(level).unwrap_or(u8::MAX),
        })
    }
}
