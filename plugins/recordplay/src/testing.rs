//! The parsers of what other nodes send, for the fuzz targets.

pub use crate::cluster::read_message;
