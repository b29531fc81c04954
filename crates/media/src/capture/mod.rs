//! Captures: the packets of one peer, decrypted, into a file.

mod error;
mod options;

pub use error::CaptureError;
pub use options::{CaptureEnd, CaptureFormat, CaptureOptions, CaptureStats};
