//! The files written by a server that recorded.

use serde::{Deserialize, Serialize};

use crate::figures::{bytes, count, percent};

/// The share of packets that a file may lack, because they were on their way at the end.
const MISSING: f64 = 0.001;

/// The files of recorded publishers, as read after all had left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The number of media files.
    pub files: u32,
    /// Their size, including files written beside them.
    pub bytes: u64,
    /// Packets that all publishers sent.
    pub sent_packets: u64,
    /// Sent packets that are in the files.
    pub found_packets: u64,
    /// Files that could not be read to their end.
    #[serde(default)]
    pub unreadable_files: u32,
    /// How often the disk was made to stall meanwhile.
    #[serde(default)]
    pub stalls: u32,
}

impl Recorded {
    /// Returns the share of the sent packets that is in the files.
    pub fn found_share(&self) -> f64 {
        self.found_packets as f64 / self.sent_packets.max(1) as f64
    }

    /// Returns the bytes on the disk per packet in the files.
    pub fn bytes_per_packet(&self) -> f64 {
        self.bytes as f64 / self.found_packets.max(1) as f64
    }

    /// Formats the figures in one line.
    pub(crate) fn to_text(&self) -> String {
        let (files, bytes) = (count(self.files.into()), bytes(self.bytes as f64));
        let (found, sent) = (
            count(self.found_packets as f64),
            count(self.sent_packets as f64),
        );
        let stalls = match self.stalls {
            0 => String::new(),
            stalls => format!("; the disk stalled {stalls} times"),
        };
        format!("{files} files, {bytes}: {found} of {sent} packets are in them{stalls}")
    }

    /// Returns the reasons to doubt the recording.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let missing = 1.0 - self.found_share();
        if missing > MISSING {
            let share = percent(missing);
            doubts.push(format!("{share} of the packets are in no file"));
        }
        if self.unreadable_files > 0 {
            let (some, all) = (self.unreadable_files, self.files);
            doubts.push(format!("{some} of {all} files cannot be read to their end"));
        }
        doubts
    }
}
