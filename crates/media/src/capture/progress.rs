//! The progress of a capture, updated by worker and writer.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{CaptureEnd, CaptureFormat, CaptureStats};

/// The progress of a capture.
#[derive(Debug)]
pub(super) struct Progress {
    path: PathBuf,
    format: CaptureFormat,
    packets: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
    end: OnceLock<CaptureEnd>,
    /// No more packets come.
    closed: AtomicBool,
}

impl Progress {
    pub(super) fn new(path: PathBuf, format: CaptureFormat) -> Self {
        Self {
            path,
            format,
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            end: OnceLock::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// Counts a packet that was written. The file has `bytes` bytes now.
    pub(super) fn wrote(&self, bytes: u64) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes that the header was written, of `bytes` bytes.
    pub(super) fn began(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Counts dropped packets.
    pub(super) fn dropped(&self, packets: u64) {
        self.dropped.fetch_add(packets, Ordering::Relaxed);
    }

    /// Notes why the file has ended. Only the first reason counts.
    pub(super) fn ended(&self, end: CaptureEnd) {
        let _ = self.end.set(end);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.get().is_some()
    }

    /// Notes that no more packets come, so that the writer finishes the file.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn stats(&self) -> CaptureStats {
        CaptureStats {
            path: self.path.clone(),
            format: self.format,
            packets: self.packets.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            end: self.end.get().cloned(),
        }
    }
}
