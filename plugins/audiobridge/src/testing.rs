//! The parsers of what other nodes send, for the fuzz targets.

pub use crate::cluster::testing::{read_frames, read_message, read_record};
