//! Keyframes of publishers: the cache for new subscribers, and the requests at an interval.

use std::time::Duration;

use portunus_media::{KeyframeCache, KeyframeInterval};
use portunus_sdp::Kind;

use super::stream::{Keyframes, Layering};
use super::{Publications, Stream};
use crate::{PersonId, RoomSettings};

/// The limit of a stream's cache besides the keyframe itself: 4 Mbit/s for two seconds. A new
/// subscriber gets all of it at once.
const MAX_BYTES: usize = 1 << 20;

impl Publications {
    /// Brings the keyframe cache and the interval of keyframe requests of all of a participant's
    /// streams up to date. A closed stream is never cached, because nobody may see it.
    pub(crate) fn update_keyframes(&mut self, id: &PersonId, options: &RoomSettings) {
        let Some(publication) = self.by_feed.get_mut(id) else {
            return;
        };
        let e2ee = publication.e2ee;
        for stream in &mut publication.streams {
            let wanted = Keyframes {
                cache: cache(options, stream).filter(|_| !e2ee),
                interval: interval(options, stream, e2ee),
            };
            if stream.keyframes == wanted {
                continue;
            }
            let Some(source) = publication.origin.source(stream.mid) else {
                continue;
            };
            let before = std::mem::replace(&mut stream.keyframes, wanted);
            if before.cache != wanted.cache {
                self.media.keep_keyframe(source, wanted.cache);
            }
            if before.interval != wanted.interval {
                self.media.ask_keyframes(source, wanted.interval);
            }
        }
    }
}

/// Returns the interval of keyframe requests that no subscriber has caused.
fn interval(options: &RoomSettings, stream: &Stream, e2ee: bool) -> Option<KeyframeInterval> {
    let seconds = options.keyframes.interval_s;
    let suits = stream.kind == Kind::Video && stream.is_open();
    (suits && seconds > 0).then(|| KeyframeInterval {
        every: Duration::from_secs(seconds),
        opaque: e2ee,
    })
}

/// Returns the cache of a stream. A stream with layers has none: which of them a new subscriber
/// needs is not known, so a keyframe is requested for it.
fn cache(options: &RoomSettings, stream: &Stream) -> Option<KeyframeCache> {
    let ms = options.keyframes.cache_ms;
    let single = stream.format.layering() == Layering::Single;
    let suits = stream.kind == Kind::Video && single && stream.is_open();
    (suits && ms > 0).then(|| KeyframeCache {
        max_age: Duration::from_millis(ms),
        max_bytes: MAX_BYTES,
    })
}
