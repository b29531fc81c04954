//! The worker's end of a capture.

use std::sync::Arc;
use std::time::SystemTime;

use crossbeam_queue::ArrayQueue;
use portunus_rtc::{Direction, PacketObserver, Path};
use tokio::sync::oneshot;

use super::CaptureStats;
use super::progress::Progress;

/// Packets that wait for the disk at most.
const MOST_WAITING: usize = 2_048;

/// A packet on its way to the file.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) at: SystemTime,
    pub(super) direction: Direction,
    pub(super) path: Path,
    /// Its length, of which `bytes` may be only the start.
    pub(super) len: usize,
    pub(super) bytes: Box<[u8]>,
}

/// Packets on their way to the file.
pub(super) type Queue = ArrayQueue<Captured>;

/// Room for the packets of a capture.
pub(super) fn queue() -> Arc<Queue> {
    Arc::new(ArrayQueue::new(MOST_WAITING))
}

/// Takes the packets of a peer.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) queue: Arc<Queue>,
    pub(super) progress: Arc<Progress>,
    /// Bytes of each packet that are written.
    pub(super) truncate: usize,
}

impl PacketObserver for Observer {
    fn packet(&self, direction: Direction, path: Path, [head, tail]: [&[u8]; 2]) {
        if self.progress.has_ended() || self.queue.is_full() {
            return self.progress.dropped(1);
        }
        let len = head.len().saturating_add(tail.len());
        let bytes = head.iter().chain(tail).take(self.truncate).copied();
        let captured = Captured {
            at: SystemTime::now(),
            direction,
            path,
            len,
            bytes: bytes.collect(),
        };
        if self.queue.push(captured).is_err() {
            self.progress.dropped(1);
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.progress.close();
    }
}

/// A capture that is to begin.
#[derive(Debug)]
pub(crate) struct NewCapture {
    pub(crate) observer: Box<dyn PacketObserver>,
    pub(crate) capturing: Capturing,
}

/// A capture of a peer.
#[derive(Debug)]
pub(crate) struct Capturing {
    pub(super) progress: Arc<Progress>,
    /// Resolved once the file is complete.
    pub(super) done: oneshot::Receiver<()>,
}

impl Capturing {
    /// How it goes.
    pub(crate) fn stats(&self) -> CaptureStats {
        self.progress.stats()
    }

    /// Whether the file has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.progress.has_ended()
    }
}
