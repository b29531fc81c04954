//! A running call that goes on with another client.

use portunus_core::sdp::{Description, Kind};
use portunus_core::{Handle, LocalJsep};

use crate::{CallError, CallMedia};

impl CallMedia {
    /// Offers the running call to another handle. Its client's answer goes to [`CallMedia::move_to`]; until then the call stays where it is.
    pub fn offer_to(&self, handle: &Handle) -> Result<LocalJsep, CallError> {
        Ok(handle.offer(self.session.offer_to_another(), false)?)
    }

    /// The call goes on with another handle, whose client has answered. The far end learns nothing of it. Recordings of what the
    /// former client sent end; forwarders go on with the new one.
    pub fn move_to(&mut self, handle: Handle, answer: &Description) {
        self.leave_client();
        self.handle = handle;
        self.session.moved(answer);
        self.apply();
        self.handle.request_keyframe();
    }

    /// The client is gone, and the call waits for another one: its legs stay.
    pub fn leave_client(&mut self) {
        self.end_recordings_of_client();
        self.starve_forwarders_of_client();
        let handle = self.handle.clone();
        for side in [&mut self.audio, &mut self.video].into_iter().flatten() {
            side.part(&handle);
        }
    }

    /// Whether there is a medium of this kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.session.agreed_on(kind).is_some()
    }
}
