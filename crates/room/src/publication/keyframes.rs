//! Keyframes of what publishers send: new subscribers get what was kept from the last one on (`bufferkf_ms`), and
//! publishers are asked for one when none has come for a time (`fir_freq`).

use std::time::Duration;

use portunus_media::{KeyframeCache, KeyframeInterval};
use portunus_sdp::Kind;

use super::{Publications, Stream};
use crate::{PersonId, RoomSettings};

/// What is kept of one stream at most, besides the keyframe itself: 4 Mbit/s for two seconds. A new subscriber gets it
/// all at once.
const MAX_BYTES: usize = 1 << 20;

impl Publications {
    /// Says of what somebody sends whether it is kept, and when it is asked for keyframes, as the room wants it. What a
    /// stream sent while it was closed is never kept: nobody was to see it.
    pub(crate) fn update_keyframes(&mut self, id: &PersonId, options: &RoomSettings) {
        let Some(publication) = self.by_feed.get_mut(id) else {
            return;
        };
        let e2ee = publication.e2ee;
        for stream in &mut publication.streams {
            let wanted = cache(options, stream).filter(|_| !e2ee);
            if stream.kept != wanted
                && let Some(source) = publication.origin.source(stream.mid)
            {
                stream.kept = wanted;
                self.media.keep_keyframe(source, wanted);
            }
            let wanted = interval(options, stream, e2ee);
            if stream.asked_every != wanted
                && let Some(source) = publication.origin.source(stream.mid)
            {
                stream.asked_every = wanted;
                self.media.ask_keyframes(source, wanted);
            }
        }
    }
}

/// When a stream is asked for a keyframe that nobody needs.
fn interval(options: &RoomSettings, stream: &Stream, e2ee: bool) -> Option<KeyframeInterval> {
    let suits = stream.kind == Kind::Video && stream.is_open();
    (suits && options.fir_freq > 0).then(|| KeyframeInterval {
        every: Duration::from_secs(options.fir_freq),
        opaque: e2ee,
    })
}

/// What is kept of a stream. Of several layers a new subscriber needs one only, of which nobody knows yet which: there a
/// keyframe is asked for.
fn cache(options: &RoomSettings, stream: &Stream) -> Option<KeyframeCache> {
    let single = !stream.simulcast && !stream.svc;
    let suits = stream.kind == Kind::Video && single && stream.is_open();
    (suits && options.bufferkf_ms > 0).then(|| KeyframeCache {
        max_age: Duration::from_millis(options.bufferkf_ms),
        max_bytes: MAX_BYTES,
    })
}
