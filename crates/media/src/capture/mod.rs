//! Captures: the packets of one peer, decrypted, into a file.
//!
//! The worker puts a packet into a bounded queue and never waits. A thread of the capture takes it from there and writes.

mod encode;
mod error;
mod observer;
mod options;
mod plane;
mod progress;
mod writer;

pub use error::CaptureError;
pub(crate) use observer::{Capturing, NewCapture};
pub use options::{CaptureEnd, CaptureFormat, CaptureOptions, CaptureStats};
pub(crate) use plane::Captures;
