//! Captures of peers.

use super::Peers;
use crate::CaptureError;
use crate::PeerId;
use crate::capture::{Capturing, NewCapture};

impl Peers {
    /// Starts to capture the packets of a peer.
    pub(in crate::worker) fn begin_capture(
        &mut self,
        peer: PeerId,
        new: NewCapture,
    ) -> Result<(), CaptureError> {
        let (_, peer) = self.find_mut(peer).ok_or(CaptureError::NoPeer)?;
        let running = peer.record.capture().filter(|it| !it.has_ended());
        if let Some(running) = running {
            let path = running.stats().path;
            return Err(CaptureError::AlreadyStarted { path });
        }
        peer.connection.transport.observe(Some(new.observer));
        peer.record.set_capture(new.capturing);
        Ok(())
    }

    /// Stops the capture of a peer, and returns it.
    pub(in crate::worker) fn stop_capture(
        &mut self,
        peer: PeerId,
    ) -> Result<Capturing, CaptureError> {
        let (_, peer) = self.find_mut(peer).ok_or(CaptureError::NoPeer)?;
        let capturing = peer.record.take_capture().ok_or(CaptureError::NotStarted)?;
        peer.connection.transport.observe(None);
        Ok(capturing)
    }
}
