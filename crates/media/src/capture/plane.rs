//! How captures begin and end.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;

use super::observer::{Capturing, NewCapture, Observer, queue};
use super::progress::Progress;
use super::writer::{Writer, start};
use super::{CaptureError, CaptureOptions, CaptureStats};
use crate::command::Command;
use crate::{MediaPlane, PeerId};

/// Captures that run at a time: each has a thread.
const MOST: usize = 16;

/// How many captures are running.
#[derive(Debug, Clone, Default)]
pub(crate) struct Captures(Arc<AtomicUsize>);

/// The place of one of them, free again once it is dropped.
struct Place(Arc<AtomicUsize>);

impl Captures {
    fn take_place(&self) -> Result<Place, CaptureError> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&self.0));
        match before < MOST {
            true => Ok(place),
            false => Err(CaptureError::TooMany { most: MOST }),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl MediaPlane {
    /// Writes the RTP and RTCP packets of a peer, decrypted, to a new file, until [`MediaPlane::stop_capture`], the end of the
    /// peer, or of the room that the file has. [`crate::PeerStats::capture`] says how it goes.
    pub async fn capture(&self, peer: PeerId, options: CaptureOptions) -> Result<(), CaptureError> {
        let place = self.captures().take_place()?;
        let path = options.path.clone();
        let opening = tokio::task::spawn_blocking(move || begin(options, place));
        let failed = |error: io::Error| CaptureError::File {
            path: path.clone(),
            error,
        };
        let capture = opening.await.map_err(|error| failed(error.into()))?;
        let capture = Box::new(capture.map_err(failed)?);
        let (reply, begun) = oneshot::channel();
        self.send_to(
            peer.worker,
            Command::Capture {
                peer,
                capture,
                reply,
            },
        );
        let begun = begun.await.unwrap_or(Err(CaptureError::NoPeer));
        if begun.is_err() {
            // Nothing was written to it.
            let _ = tokio::task::spawn_blocking(move || fs::remove_file(path)).await;
        }
        begun
    }

    /// Ends the capture of a peer. When this returns, the file is complete.
    pub async fn stop_capture(&self, peer: PeerId) -> Result<CaptureStats, CaptureError> {
        let (reply, stopped) = oneshot::channel();
        self.send_to(peer.worker, Command::StopCapture { peer, reply });
        let stopped = stopped.await.unwrap_or(Err(CaptureError::NoPeer));
        let Capturing { progress, done } = stopped?;
        // Nothing is ever sent: an error says that the writer has ended.
        let _ = done.await;
        Ok(progress.stats())
    }
}

fn begin(options: CaptureOptions, place: Place) -> io::Result<NewCapture> {
    let CaptureOptions {
        path,
        format,
        truncate,
        max_bytes,
    } = options;
    // What peers say and show is not for all users of the machine.
    let mut new = OpenOptions::new();
    let file = new.write(true).create_new(true).mode(0o600).open(&path)?;
    let (queue, progress) = (queue(), Arc::new(Progress::new(path, format)));
    let (ended, done) = oneshot::channel();
    let what = (format, max_bytes);
    let writer = Writer::new(file, what, Arc::clone(&queue), Arc::clone(&progress));
    start(writer, ended, place)?;
    let observer = Observer {
        queue,
        progress: Arc::clone(&progress),
        truncate: truncate.unwrap_or(usize::MAX),
    };
    Ok(NewCapture {
        observer: Box::new(observer),
        capturing: Capturing { progress, done },
    })
}
