//! Captures of peers.

use std::{fs, io};

use portunus_graph::PeerId;
use tokio::sync::oneshot;

use super::MediaPlane;
use crate::capture::{CaptureError, CaptureOptions, CaptureStats, NewCapture};
use crate::command::PeerCommand;

impl MediaPlane {
    /// Writes the decrypted RTP and RTCP packets of a peer to a new file, until
    /// [`MediaPlane::stop_capture`], the end of the peer, or the maximum size.
    /// [`crate::PeerStats::capture`] has the progress.
    pub async fn capture(&self, peer: PeerId, options: CaptureOptions) -> Result<(), CaptureError> {
        let place = self.shared.captures.take_place(peer)?;
        let path = options.path.clone();
        let opening = tokio::task::spawn_blocking(move || NewCapture::open(options, place));
        let failed = |error: io::Error| CaptureError::File {
            path: path.clone(),
            error,
        };
        let capture = opening.await.map_err(|error| failed(error.into()))?;
        let capture = Box::new(capture.map_err(failed)?);
        let (reply, begun) = oneshot::channel();
        self.send(peer, PeerCommand::Capture { capture, reply });
        let begun = begun.await.unwrap_or(Err(CaptureError::NoPeer));
        if begun.is_err() {
            // The file is empty.
            let _ = tokio::task::spawn_blocking(move || fs::remove_file(path)).await;
        }
        begun
    }

    /// Returns whether the packets of a peer are being captured.
    pub fn is_captured(&self, peer: PeerId) -> bool {
        self.shared.captures.has(peer)
    }

    /// Ends the capture of a peer. Returns when the file is complete.
    pub async fn stop_capture(&self, peer: PeerId) -> Result<CaptureStats, CaptureError> {
        let (reply, stopped) = oneshot::channel();
        self.send(peer, PeerCommand::StopCapture(reply));
        let stopped = stopped.await.unwrap_or(Err(CaptureError::NoPeer));
        Ok(stopped?.completed().await)
    }
}
