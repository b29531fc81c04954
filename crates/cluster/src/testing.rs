//! The parsers of what comes from outside, for the fuzz targets.

use bytes::Bytes;

use crate::{Frame, FrameError, HomeRecord, NodeRecord, RecordError};

/// Reads a frame of the control link.
pub fn read_frame(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
    Frame::decode(Bytes::copy_from_slice(bytes))
}

/// Reads the value of a node.
pub fn read_node(bytes: &[u8]) -> Result<NodeRecord, RecordError> {
    NodeRecord::parse(bytes)
}

/// Reads the value of a home.
pub fn read_home(bytes: &[u8]) -> Result<HomeRecord, RecordError> {
    HomeRecord::parse(bytes)
}
