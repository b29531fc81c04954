//! Captures: the decrypted packets of one peer, written to a file.
//!
//! The worker puts packets into a bounded queue and never waits. A thread for each capture writes
//! them.

mod error;
mod format;
mod observer;
mod options;
mod places;
mod progress;
mod writer;

pub use error::CaptureError;
pub(crate) use observer::{Capturing, NewCapture};
pub use options::{CaptureEnd, CaptureFormat, CaptureOptions, CaptureStats};
pub(crate) use places::Captures;
