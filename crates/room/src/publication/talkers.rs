//! Who talks, as the media plane hears it.

use portunus_media::TalkDetection;
use portunus_rtp::Mid;

use super::Publications;
use super::stream::AudioMonitor;
use crate::roster::TalkSettings;
use crate::{PersonId, RoomSettings};

/// The level of silence, in -dBov.
const SILENCE: f64 = 127.0;

/// A participant has started or stopped talking.
#[derive(Debug, Clone, PartialEq)]
pub struct Talk {
    /// The participant.
    pub id: PersonId,
    /// The m-line.
    pub mid: Mid,
    /// The index of the m-line.
    pub index: usize,
    /// Whether it talks now.
    pub talking: bool,
    /// The average level in -dBov: 0 (loudest) to 127 (silence).
    pub level: f64,
}

impl Publications {
    /// Starts and stops the monitoring of a participant's audio levels: for talking as `detection`
    /// says, and for the share of speech if `measured`. Returns the m-lines that talked and are no
    /// longer monitored, with their last levels.
    pub(crate) fn monitor(
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
            let wanted = AudioMonitor {
                talking: detection.filter(|_| heard),
                speech: measured && heard,
            };
            let before = std::mem::replace(&mut stream.audio.monitor, wanted);
            if before == wanted {
                continue;
            }
            let origin = &publication.origin;
            origin.monitor(&self.media, stream.mid, before, wanted);
            // A participant that is not heard any more does not talk.
            if wanted.talking.is_none() && stream.audio.talking {
                silenced.push((stream.mid, stream.audio.average.unwrap_or(SILENCE)));
            }
        }
        silenced
    }

    /// Notes that a stream talks or is silent. Returns the change, if it is one.
    pub(crate) fn heard(
        &mut self,
        id: &PersonId,
        mid: Mid,
        talking: bool,
        level: f64,
    ) -> Option<Talk> {
        let stream = self.stream_mut(id, mid)?;
        let audio = &mut stream.audio;
        audio.average = Some(level);
        // A late report of a stream that was closed meanwhile is not a change.
        if audio.talking == talking || (talking && audio.monitor.talking.is_none()) {
            return None;
        }
        audio.talking = talking;
        Some(Talk {
            id: id.clone(),
            mid,
            index: stream.index,
            talking,
            level,
        })
    }

    /// Returns whether the share of speech of a stream is measured. The media has to be up.
    pub(crate) fn is_measured(&self, id: &PersonId, mid: Mid) -> bool {
        let stream = self.up(id).and_then(|known| known.stream(mid));
        stream.is_some_and(|stream| stream.is_open() && stream.audio.monitor.speech)
    }
}

/// Returns when a participant counts as talking, or `None` if the room does not notify of that.
pub(crate) fn detection(settings: TalkSettings, options: &RoomSettings) -> Option<TalkDetection> {
    let packets = settings.packets.unwrap_or(options.talk.packets);
    let level = settings.level.unwrap_or(options.talk.level);
    options.talk.notify.then(|| TalkDetection {
        packets: u32::try_from(packets).unwrap_or(u32::MAX),
        level: u8::try_from(level).unwrap_or(u8::MAX),
    })
}
