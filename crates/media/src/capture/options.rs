//! What is captured, and how it goes.

use std::path::PathBuf;

/// How the packets of a peer are captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    /// The file, which must not exist yet.
    pub path: PathBuf,
    /// What is written.
    pub format: CaptureFormat,
    /// Bytes of each packet that are written, from the RTP header on; none: all of them.
    pub truncate: Option<usize>,
    /// Bytes after which the file is closed.
    pub max_bytes: u64,
}

impl CaptureOptions {
    /// A file is closed after so many bytes, unless something else is asked for.
    pub const MAX_BYTES: u64 = 256 << 20;

    /// All of each packet, up to [`Self::MAX_BYTES`].
    pub fn new(path: impl Into<PathBuf>, format: CaptureFormat) -> Self {
        Self {
            path: path.into(),
            format,
            truncate: None,
            max_bytes: Self::MAX_BYTES,
        }
    }
}

/// What a capture is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaptureFormat {
    /// A pcap file of IP packets with the real addresses. What travels by TCP is written as if it were UDP.
    Pcap,
    /// Text that `text2pcap -D -n -l 1 -i 17 -u 1000,2000 -t '%H:%M:%S.'` reads.
    Text2pcap,
}

/// How a capture goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureStats {
    /// The file.
    pub path: PathBuf,
    /// What is written.
    pub format: CaptureFormat,
    /// Packets that were written.
    pub packets: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Packets that were left out, because too many waited for the disk, or after the file had ended.
    pub dropped: u64,
    /// Why nothing more is written; none: it goes on.
    pub end: Option<CaptureEnd>,
}

/// Why nothing more is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureEnd {
    /// It was stopped, or the peer is gone.
    Stopped,
    /// The file has as many bytes as it may have.
    Full,
    /// The system refused to write, as when the disk is full; the text says why.
    Refused(String),
}
