//! Keyframes that a room asks its publishers for every so often (`fir_freq`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_core::sdp::Kind;

use crate::room::Room;

/// Asks in the interval that the room wants from now on, and no more in the one before; ends when the room does.
pub(crate) fn start(room: &Arc<Room>) {
    let mut state = room.lock();
    if let Some(before) = state.fir.take() {
        before.abort();
    }
    let interval = state.options.fir_freq;
    if interval > 0
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        let asking = runtime.spawn(ask(Arc::downgrade(room), interval));
        state.fir = Some(asking.abort_handle());
    }
}

async fn ask(room: Weak<Room>, interval: u64) {
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        let Some(room) = room.upgrade() else { return };
        let state = room.lock();
        if state.destroyed {
            return;
        }
        for publisher in state.publishers() {
            let streams = publisher.up().into_iter().flat_map(|media| &media.streams);
            let video = streams.filter(|stream| stream.kind == Kind::Video && stream.is_open());
            video.for_each(|stream| publisher.origin.request_keyframe_on(stream.mid));
        }
    }
}
