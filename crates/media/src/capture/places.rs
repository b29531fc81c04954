//! The number of captures that run at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::CaptureError;

/// The maximum number of captures, as each has a thread.
const MOST: usize = 16;

/// The number of running captures.
#[derive(Debug, Clone, Default)]
pub(crate) struct Captures(Arc<AtomicUsize>);

/// The place of one capture. It is freed when this is dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Captures {
    /// Takes a place for one more capture.
    pub(crate) fn take_place(&self) -> Result<Place, CaptureError> {
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
