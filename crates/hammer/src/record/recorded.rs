//! What a server that recorded has written.

use serde::{Deserialize, Serialize};

use crate::figures::{bytes, count, percent};

/// The share of packets that a file may lack: what was on its way at the end.
const MISSING: f64 = 0.001;

/// The files of recorded publishers, as they were read when all had left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Files of media.
    pub files: u32,
    /// Their bytes, and those of what was written beside them.
    pub bytes: u64,
    /// Packets that all publishers sent.
    pub sent_packets: u64,
    /// Those of them that are in the files.
    pub found_packets: u64,
    /// Files that could not be read to their end.
    #[serde(default)]
    pub unreadable_files: u32,
    /// How often the disk was made to stall meanwhile.
    #[serde(default)]
    pub stalls: u32,
}

impl Recorded {
    /// The share of what was sent that is in the files.
    pub fn found_share(&self) -> f64 {
        self.found_packets as f64 / self.sent_packets.max(1) as f64
    }

    /// Bytes on the disk for each packet that is in the files.
    pub fn bytes_per_packet(&self) -> f64 {
        self.bytes as f64 / self.found_packets.max(1) as f64
    }

    /// In one line.
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

    /// What makes the recording doubtful.
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
