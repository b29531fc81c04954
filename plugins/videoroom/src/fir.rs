//! Keyframes that a room asks its publishers for every so often (`fir_freq`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_core::sdp::Kind;

use crate::room::Room;

/// Starts asking, if the room wants that; ends when the room does, or when it wants another interval.
pub(crate) fn start(room: &Arc<Room>) {
    let interval = room.lock().options.fir_freq;
    if interval == 0 {
        return;
    }
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(ask(Arc::downgrade(room), interval));
    }
}

async fn ask(room: Weak<Room>, interval: u64) {
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        let Some(room) = room.upgrade() else { return };
        let state = room.lock();
        if state.destroyed || state.options.fir_freq != interval {
            return;
        }
        for publisher in state.publishers() {
            let streams = publisher.up().into_iter().flat_map(|media| &media.streams);
            let video = streams.filter(|stream| stream.kind == Kind::Video && stream.is_open());
            video.for_each(|stream| publisher.origin.request_keyframe_on(stream.mid));
        }
    }
}
