//! Keyframes that a room asks its publishers for every so often (`fir_freq`).

use std::sync::{Arc, Weak};
use std::time::Duration;

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
            publisher.handle.request_keyframe();
        }
    }
}
