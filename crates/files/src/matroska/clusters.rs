//! The clusters of a file: when one is closed, and how.

use super::MatroskaWriter;
use super::ebml::{Id, UNKNOWN_SIZE, wide_size};
use crate::container::Edits;

/// The bytes of a cluster before its body: identifier and size.
pub(super) const CLUSTER_HEAD: u64 = 12;
/// The longest cluster in ms.
const LONGEST_CLUSTER: u64 = 2_000;
/// The shortest cluster before a keyframe, in ms.
const SHORTEST_CLUSTER: u64 = 1_000;

/// The open cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Its position in the file.
    pub(super) at: u64,
    /// The times of its first and of its last block.
    pub(super) time: u64,
    pub(super) last: u64,
    /// Whether the index has a position in it.
    pub(super) indexed: bool,
}

impl Cluster {
    /// Whether a frame needs a new cluster. Times never go back in a cluster.
    pub(super) fn is_over(&self, time: u64, video_keyframe: bool) -> bool {
        let length = time.saturating_sub(self.time);
        time < self.last
            || length >= LONGEST_CLUSTER
            || video_keyframe && length >= SHORTEST_CLUSTER
    }
}

impl MatroskaWriter {
    /// Ends the cluster: writes its size, and the duration so far.
    pub(super) fn close_cluster(&mut self, out: &mut Edits) {
        let (Some(cluster), Some(begun)) = (self.cluster.take(), self.begun) else {
            return;
        };
        let size = self.len.saturating_sub(cluster.at + CLUSTER_HEAD);
        self.patch(out, cluster.at + 4, wide_size(size).to_vec());
        let duration = (self.end() as f64).to_be_bytes();
        self.patch(out, begun.duration, duration.to_vec());
    }

    /// Starts a cluster of unknown size.
    pub(super) fn open_cluster(&mut self, time: u64, out: &mut Edits) {
        let at = self.len;
        let before = out.append.len();
        Id::CLUSTER.put(&mut out.append);
        out.append.extend(UNKNOWN_SIZE);
        Id::TIMESTAMP.put(&mut out.append);
        out.append.push(0x84);
        out.append.extend((time as u32).to_be_bytes());
        self.len += (out.append.len() - before) as u64;
        self.cluster = Some(Cluster {
            at,
            time,
            last: time,
            indexed: false,
        });
    }
}
