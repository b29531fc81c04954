//! Captures of peers.

use super::Peers;
use crate::CaptureError;
use crate::capture::{Capturing, NewCapture};
use crate::plane::PeerId;

impl Peers {
    /// Begins to capture the packets of a peer.
    pub(in crate::worker) fn begin_capture(
        &mut self,
        peer: PeerId,
        new: NewCapture,
    ) -> Result<(), CaptureError> {
        let (_, peer) = self.find_mut(peer).ok_or(CaptureError::NoPeer)?;
        let running = peer.capture.as_ref().filter(|it| !it.has_ended());
        if let Some(running) = running {
            let path = running.stats().path;
            return Err(CaptureError::AlreadyStarted { path });
        }
        peer.connection.transport.observe(Some(new.observer));
        peer.capture = Some(Box::new(new.capturing));
        Ok(())
    }

    /// Ends the capture of a peer, which is handed out.
    pub(in crate::worker) fn stop_capture(
        &mut self,
        peer: PeerId,
    ) -> Result<Capturing, CaptureError> {
        let (_, peer) = self.find_mut(peer).ok_or(CaptureError::NoPeer)?;
        let capturing = peer.capture.take().ok_or(CaptureError::NotStarted)?;
        peer.connection.transport.observe(None);
        Ok(*capturing)
    }
}
