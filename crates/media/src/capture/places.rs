//! The captures that run at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_graph::PeerId;

use super::CaptureError;

/// The maximum number of captures, as each has a thread.
const MOST: usize = 16;

/// The peers of the running captures.
#[derive(Debug, Clone, Default)]
pub(crate) struct Captures(Arc<Mutex<Vec<PeerId>>>);

/// The place of one capture. It is freed when this is dropped.
pub(crate) struct Place {
    captures: Captures,
    peer: PeerId,
}

impl Captures {
    /// Takes a place for one more capture.
    pub(crate) fn take_place(&self, peer: PeerId) -> Result<Place, CaptureError> {
        let mut peers = self.lock();
        if peers.len() >= MOST {
            return Err(CaptureError::TooMany { most: MOST });
        }
        peers.push(peer);
        let captures = self.clone();
        Ok(Place { captures, peer })
    }

    /// Returns whether a capture of `peer` is running.
    pub(crate) fn has(&self, peer: PeerId) -> bool {
        self.lock().contains(&peer)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PeerId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut peers = self.captures.lock();
        if let Some(index) = peers.iter().position(|peer| *peer == self.peer) {
            peers.swap_remove(index);
        }
    }
}
