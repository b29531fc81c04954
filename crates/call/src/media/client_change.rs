//! The change of a running call to another client.

use portunus_core::sdp::{Description, Kind};
use portunus_core::{Handle, LocalJsep};

use crate::{CallError, CallMedia};

impl CallMedia {
    /// Offers the running call to another handle. [`CallMedia::move_to`] takes its client's answer;
    /// until then nothing changes.
    pub fn offer_to(&self, handle: &Handle) -> Result<LocalJsep, CallError> {
        Ok(handle.offer(self.session.offer_to_another(), false)?)
    }

    /// Moves the call to another handle, whose client has answered. The far end is not involved.
    /// Recordings of the former client end; forwarders continue with the new one.
    pub fn move_to(&mut self, handle: Handle, answer: &Description) {
        self.leave_client();
        self.handle = handle;
        self.session.moved(answer);
        self.apply();
        self.handle.request_keyframe();
    }

    /// Takes the client from the call, which waits for another one. Its legs stay.
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
