//! Settings that administrators change at run time.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use portunus_sdp::negotiated::Fingerprint;

use super::MediaPlane;
use crate::command::Command;
use crate::{MediaIdentity, MediaSettings};

impl MediaPlane {
    /// The present settings.
    pub fn settings(&self) -> MediaSettings {
        let settings = self.shared.settings.lock();
        *settings.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the minimum time for which packets can be retransmitted, up to a second, the default.
    pub fn set_nack_queue(&self, queue: Duration) {
        self.configure(|it| it.nack_queue = queue.min(MediaSettings::NACK_QUEUE));
    }

    /// Sets whether packets from before the last keyframe are not retransmitted.
    pub fn set_nack_optimizations(&self, on: bool) {
        self.configure(|it| it.nack_optimizations = on);
    }

    /// Sets the time without media after which clients are notified. Zero disables that; plugins
    /// are notified after a second then.
    pub fn set_no_media(&self, silence: Duration) {
        let silence = Some(silence).filter(|silence| !silence.is_zero());
        self.configure(|it| it.no_media = silence);
    }

    /// Sets the number of lost packets per second that is reported as a slow link. 0 disables it.
    pub fn set_slow_link_threshold(&self, packets: u32) {
        self.configure(|it| it.slow_link_threshold = packets);
    }

    fn configure(&self, change: impl FnOnce(&mut MediaSettings)) {
        let settings = self.shared.settings.lock();
        let mut settings = settings.unwrap_or_else(PoisonError::into_inner);
        change(&mut settings);
        for port in &self.shared.workers {
            port.inbox.send(Command::Configure(*settings));
        }
    }

    /// The fingerprint of the certificate of new peers.
    pub fn fingerprint(&self) -> Fingerprint {
        self.locked_fingerprint().clone()
    }

    pub(super) fn locked_fingerprint(&self) -> MutexGuard<'_, Fingerprint> {
        let fingerprint = self.shared.fingerprint.lock();
        fingerprint.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the certificate of new peers. Returns whether it differs from the present one.
    pub fn set_identity(&self, identity: MediaIdentity) -> bool {
        let mut fingerprint = self.locked_fingerprint();
        let is_new = *fingerprint != *identity.0.fingerprint();
        if is_new {
            *fingerprint = identity.0.fingerprint().clone();
            for port in &self.shared.workers {
                port.inbox.send(Command::SetIdentity(identity.clone()));
            }
        }
        is_new
    }
}
