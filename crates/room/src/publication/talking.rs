//! Listening: what the media plane hears of those who talk.

use portunus_media::TalkDetection;
use portunus_rtp::Mid;

use super::Publications;
use crate::roster::TalkSettings;
use crate::{PersonId, RoomSettings, Talk};

/// The level of silence, in -dBov.
const SILENCE: f64 = 127.0;

impl Publications {
    /// Has the media plane listen to what somebody sends, where packets say how loud they are: for talking as `detection`
    /// says, and for how much is spoken if that is `measured`. Gives what is heard no more of those who talked.
    pub(crate) fn listen(
        &mut self,
        id: &PersonId,
        detection: Option<TalkDetection>,
        measured: bool,
    ) -> Vec<(Mid, f64)> {
        let mut silenced = Vec::new();
        let Some(publication) = self.by_feed.get_mut(id) else {
            return silenced;
        };
        for stream in &mut publication.streams {
            let heard = stream.has_levels() && stream.is_open();
            let wanted = detection.filter(|_| heard);
            let before = (stream.talk.detection, stream.talk.measured);
            let after = (wanted, measured && heard);
            if before == after {
                continue;
            }
            (stream.talk.detection, stream.talk.measured) = after;
            publication
                .origin
                .listen(&self.media, stream.mid, before, after);
            // Whoever is not heard any more does not talk.
            if wanted.is_none() && stream.talk.talking {
                silenced.push((stream.mid, stream.talk.level.unwrap_or(SILENCE)));
            }
        }
        silenced
    }

    /// Somebody was heard to talk, or to be silent; returns what is to be told, if that is news.
    pub(crate) fn heard(
        &mut self,
        id: &PersonId,
        mid: Mid,
        talking: bool,
        level: f64,
    ) -> Option<Talk> {
        let stream = self.stream_mut(id, mid)?;
        stream.talk.level = Some(level);
        // What was heard before the stream was closed is no news.
        if stream.talk.talking == talking || (talking && stream.talk.detection.is_none()) {
            return None;
        }
        stream.talk.talking = talking;
        Some(Talk {
            id: id.clone(),
            mid,
            index: stream.index,
            talking,
            level,
        })
    }

    /// Whether it is measured how much is spoken on a stream of somebody whose media is up.
    pub(crate) fn is_measured(&self, id: &PersonId, mid: Mid) -> bool {
        let stream = self.up(id).and_then(|known| known.stream(mid));
        stream.is_some_and(|stream| stream.is_open() && stream.talk.measured)
    }
}

/// When somebody counts as talking, if the room wants to know.
pub(crate) fn detection(settings: TalkSettings, options: &RoomSettings) -> Option<TalkDetection> {
    let packets = settings.packets.unwrap_or(options.audio_active_packets);
    let level = settings.level.unwrap_or(options.audio_level_average);
    options.audiolevel_event.then(|| TalkDetection {
        packets: u32::try_from(packets).unwrap_or(u32::MAX),
        level: u8::try_from(level).unwrap_or(u8::MAX),
    })
}
