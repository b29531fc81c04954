//! Keeping what publishers send from their last keyframe on, so that new subscribers have a picture at once.

use std::time::Duration;

use portunus_core::media::KeyframeCache;
use portunus_core::sdp::Kind;

use crate::id::Id;
use crate::options::RoomOptions;
use crate::participant::Stream;
use crate::room::RoomState;

/// What is kept of one stream at most, besides the keyframe itself: 4 Mbit/s for two seconds. A new subscriber gets it
/// all at once.
const MAX_BYTES: usize = 1 << 20;

impl RoomState {
    /// Keeps what somebody sends, where the room wants that. What a stream sent while it was closed is never kept: nobody
    /// was to see it.
    pub(crate) fn keep_keyframes(&mut self, id: &Id) {
        let Some(person) = self.people.get_mut(id) else {
            return;
        };
        let Some(media) = &mut person.media else {
            return;
        };
        let e2ee = media.e2ee;
        for stream in &mut media.streams {
            let wanted = cache(&self.options, stream).filter(|_| !e2ee);
            if stream.kept != wanted
                && let Some(source) = person.origin.source(stream.mid)
            {
                stream.kept = wanted;
                self.media.keep_keyframe(source, wanted);
            }
        }
    }
}

/// What is kept of a stream. Of several layers a new subscriber needs one only, of which nobody knows yet which: there a
/// keyframe is asked for.
fn cache(options: &RoomOptions, stream: &Stream) -> Option<KeyframeCache> {
    let single = !stream.simulcast && !stream.svc;
    let suits = stream.kind == Kind::Video && single && stream.is_open();
    (suits && options.bufferkf_ms > 0).then(|| KeyframeCache {
        max_age: Duration::from_millis(options.bufferkf_ms),
        max_bytes: MAX_BYTES,
    })
}
