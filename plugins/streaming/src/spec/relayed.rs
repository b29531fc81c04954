//! Mountpoints of other nodes of the cluster.

use super::MediaSpec;

/// A mountpoint whose media comes from another node. No request and no section makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedSpec {
    /// The node that has it.
    pub node: String,
    /// Its streams.
    pub media: Vec<MediaSpec>,
    /// Media is encrypted end to end.
    pub e2ee: bool,
    /// Viewers may set a playout delay.
    pub playoutdelay_ext: bool,
    /// The id of abs-capture-time in its packets.
    pub abs_capture_time: Option<u8>,
}
