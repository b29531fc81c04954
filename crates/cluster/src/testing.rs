//! The parsers of what comes from outside, for the fuzz targets.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::authority::{Authority, Revocations};
use crate::{Frame, FrameError, HomeRecord, NodeRecord, RecordError};

/// Reads a frame of the control link.
pub fn read_frame(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
    Frame::decode(Bytes::copy_from_slice(bytes))
}

/// Reads the value of a node.
pub fn read_node(bytes: &[u8]) -> Result<NodeRecord, RecordError> {
    NodeRecord::parse(bytes)
}

/// Reads a list of revoked certificates that another node has sent. Returns whether this cluster's
/// authority, which is made for it, has signed it.
pub fn read_revocations(bytes: &[u8]) -> bool {
    static AUTHORITY: OnceLock<Option<Authority>> = OnceLock::new();
    let authority = AUTHORITY.get_or_init(|| Authority::make().ok());
    let authority = authority.as_ref().map(Authority::certificate);
    authority
        .is_some_and(|authority| Revocations::read(bytes, std::slice::from_ref(authority)).is_ok())
}

/// Reads the value of a home.
pub fn read_home(bytes: &[u8]) -> Result<HomeRecord, RecordError> {
    HomeRecord::parse(bytes)
}
