//! Options and progress of captures.

use std::path::PathBuf;

/// The options of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    /// The file, which must not exist yet.
    pub path: PathBuf,
    /// The format of the file.
    pub format: CaptureFormat,
    /// The maximum number of bytes of each packet, from the RTP header on. `None` means all.
    pub truncate: Option<usize>,
    /// The size at which the file is closed, in bytes.
    pub max_bytes: u64,
}

impl CaptureOptions {
    /// The default size at which the file is closed.
    pub const MAX_BYTES: u64 = 256 << 20;

    /// Captures whole packets, up to [`Self::MAX_BYTES`].
    pub fn new(path: impl Into<PathBuf>, format: CaptureFormat) -> Self {
        Self {
            path: path.into(),
            format,
            truncate: None,
            max_bytes: Self::MAX_BYTES,
        }
    }
}

/// The format of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaptureFormat {
    /// A pcap file of IP packets with the real addresses. Packets over TCP are written as UDP.
    Pcap,
    /// Text that `text2pcap -D -n -l 1 -i 17 -u 1000,2000 -t '%H:%M:%S.'` reads.
    Text2pcap,
}

/// The progress of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureStats {
    /// The file.
    pub path: PathBuf,
    /// The format of the file.
    pub format: CaptureFormat,
    /// Packets written.
    pub packets: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// Packets dropped because too many waited for the disk, or because the file had ended.
    pub dropped: u64,
    /// Why the file has ended. `None` while the capture runs.
    pub end: Option<CaptureEnd>,
}

/// Why the file of a capture has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureEnd {
    /// The capture was stopped, or the peer is gone.
    Stopped,
    /// The file has reached its maximum size.
    Full,
    /// The system refused to write, for example because the disk is full. The text says why.
    Refused(String),
}
