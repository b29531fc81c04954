//! The worker's side of a capture.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::SystemTime;

use crossbeam_queue::ArrayQueue;
use portunus_rtc::{Direction, PacketObserver, Path};
use tokio::sync::oneshot;

use super::places::Place;
use super::progress::Progress;
use super::writer::{Writer, start};
use super::{CaptureOptions, CaptureStats};

/// The maximum number of packets that wait for the disk.
const MOST_WAITING: usize = 2_048;

/// A packet on its way to the file.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) at: SystemTime,
    pub(super) direction: Direction,
    pub(super) path: Path,
    /// Its length. `bytes` may be truncated.
    pub(super) len: usize,
    pub(super) bytes: Box<[u8]>,
}

/// Packets on their way to the file.
pub(super) type Queue = ArrayQueue<Captured>;

/// Returns an empty queue.
pub(super) fn queue() -> Arc<Queue> {
    Arc::new(ArrayQueue::new(MOST_WAITING))
}

/// Queues the packets of a peer.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) queue: Arc<Queue>,
    pub(super) progress: Arc<Progress>,
    /// The maximum number of bytes of each packet.
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

/// A new capture.
#[derive(Debug)]
pub(crate) struct NewCapture {
    pub(crate) observer: Box<dyn PacketObserver>,
    pub(crate) capturing: Capturing,
}

impl NewCapture {
    /// Creates the file of a capture, and starts the thread that writes it. It blocks.
    pub(crate) fn open(options: CaptureOptions, place: Place) -> io::Result<Self> {
        let CaptureOptions {
            path,
            format,
            truncate,
            max_bytes,
        } = options;
        // The media of peers is private: other users of the machine must not read it.
        let mut new = OpenOptions::new();
        let file = new.write(true).create_new(true).mode(0o600).open(&path)?;
        let (queue, progress) = (queue(), Arc::new(Progress::new(path, format)));
        let (ended, done) = oneshot::channel();
        let what = (format, max_bytes);
        let writer = Writer::new(file, what, Arc::clone(&queue), Arc::clone(&progress));
        start(writer, ended, place)?;
        let observer = Observer {
            queue,
            progress: Arc::clone(&progress),
            truncate: truncate.unwrap_or(usize::MAX),
        };
        Ok(Self {
            observer: Box::new(observer),
            capturing: Capturing { progress, done },
        })
    }
}

/// A capture of a peer.
#[derive(Debug)]
pub(crate) struct Capturing {
    progress: Arc<Progress>,
    /// Closed once the file is complete.
    done: oneshot::Receiver<()>,
}

impl Capturing {
    /// Waits until the file is complete.
    pub(crate) async fn completed(self) -> CaptureStats {
        // Nothing is ever sent: an error means that the writer has ended.
        let _ = self.done.await;
        self.progress.stats()
    }

    /// Returns the progress of the capture.
    pub(crate) fn stats(&self) -> CaptureStats {
        self.progress.stats()
    }

    /// Whether the file has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.progress.has_ended()
    }
}
