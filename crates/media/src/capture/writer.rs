//! The thread that writes the file of a capture.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use super::observer::Queue;
use super::progress::Progress;
use super::{CaptureEnd, CaptureFormat, format};

/// How long the thread sleeps while the queue is empty.
const SLEEP: Duration = Duration::from_millis(20);
/// The size of the write buffer in bytes.
const BUFFER: usize = 64 << 10;

/// Writes the packets of a peer to a file.
pub(super) struct Writer<W: Write> {
    file: BufWriter<W>,
    format: CaptureFormat,
    max_bytes: u64,
    bytes: u64,
    scratch: Vec<u8>,
    queue: Arc<Queue>,
    progress: Arc<Progress>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(
        file: W,
        (format, max_bytes): (CaptureFormat, u64),
        queue: Arc<Queue>,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            file: BufWriter::with_capacity(BUFFER, file),
            format,
            max_bytes,
            bytes: 0,
            scratch: Vec::new(),
            queue,
            progress,
        }
    }

    /// Writes until no more packets come or the file ends. Calls `pause` while the queue is empty.
    pub(super) fn run(mut self, pause: impl FnMut()) {
        let end = match self.write_all(pause) {
            Ok(end) => end,
            Err(error) => {
                tracing::warn!(%error, "a capture cannot be written");
                CaptureEnd::Refused(error.to_string())
            }
        };
        self.progress.ended(end);
        while self.queue.pop().is_some() {
            self.progress.dropped(1);
        }
    }

    fn write_all(&mut self, mut pause: impl FnMut()) -> io::Result<CaptureEnd> {
        format::begin(self.format, &mut self.scratch);
        self.write_scratch()?;
        self.progress.began(self.bytes);
        loop {
            // Everything was queued before the capture was closed.
            let is_closed = self.progress.is_closed();
            while let Some(captured) = self.queue.pop() {
                format::packet(self.format, &captured, &mut self.scratch);
                if self.bytes.saturating_add(self.scratch.len() as u64) > self.max_bytes {
                    self.progress.dropped(1);
                    self.file.flush()?;
                    return Ok(CaptureEnd::Full);
                }
                self.write_scratch()?;
                self.progress.wrote(self.bytes);
            }
            self.file.flush()?;
            if is_closed {
                return Ok(CaptureEnd::Stopped);
            }
            pause();
        }
    }

    fn write_scratch(&mut self) -> io::Result<()> {
        self.file.write_all(&self.scratch)?;
        self.bytes = self.bytes.saturating_add(self.scratch.len() as u64);
        self.scratch.clear();
        Ok(())
    }
}

/// Starts the thread. It drops `done` and `place` when the file is complete.
pub(super) fn start(
    writer: Writer<File>,
    done: oneshot::Sender<()>,
    place: impl Send + 'static,
) -> io::Result<()> {
    let run = move || {
        writer.run(|| thread::sleep(SLEEP));
        drop(place);
        drop(done);
    };
    let builder = thread::Builder::new().name("capture".to_owned());
    builder.spawn(run).map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a failed test panics")]
    use std::net::SocketAddr;

    use portunus_rtc::{Direction, PacketObserver, Path};

    use super::super::observer::{Observer, queue};
    use super::*;

    const PACKET: [u8; 100] = [0x80; 100];

    /// Takes so many bytes, as a disk does that is nearly full.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn observer() -> Observer {
        let progress = Progress::new("/a/capture".into(), CaptureFormat::Pcap);
        Observer {
            queue: queue(),
            progress: Arc::new(progress),
            truncate: usize::MAX,
        }
    }

    fn observe(observer: &Observer, packets: usize) {
        let at = SocketAddr::from(([127, 0, 0, 1], 1));
        for _ in 0..packets {
            let path = Path::udp(at, at);
            observer.packet(Direction::Incoming, path, [&PACKET, &[]]);
        }
    }

    /// Writes what an observer got, which has gone.
    fn write(observer: Observer, disk: Disk, max_bytes: u64) -> super::super::CaptureStats {
        let (queue, progress) = (Arc::clone(&observer.queue), Arc::clone(&observer.progress));
        drop(observer);
        let what = (CaptureFormat::Pcap, max_bytes);
        Writer::new(disk, what, queue, Arc::clone(&progress)).run(|| unreachable!("it is closed"));
        progress.stats()
    }

    #[test]
    fn what_was_seen_is_in_the_file_when_the_peer_is_gone() {
        let observer = observer();
        observe(&observer, 10);
        let stats = write(observer, Disk(usize::MAX), u64::MAX);
        assert_eq!((stats.packets, stats.dropped), (10, 0));
        assert_eq!(stats.bytes, 24 + 10 * (16 + 28 + 100));
        assert_eq!(stats.end, Some(CaptureEnd::Stopped));
    }

    #[test]
    fn a_file_has_no_more_bytes_than_it_may_have() {
        let observer = observer();
        observe(&observer, 10);
        let stats = write(observer, Disk(usize::MAX), 1_000);
        assert_eq!((stats.packets, stats.dropped), (6, 4));
        assert!(stats.bytes <= 1_000, "{}", stats.bytes);
        assert_eq!(stats.end, Some(CaptureEnd::Full));
    }

    #[test]
    fn a_full_disk_ends_a_capture_and_is_told() {
        let observer = observer();
        observe(&observer, 1_000);
        let stats = write(observer, Disk(70_000), u64::MAX);
        let Some(CaptureEnd::Refused(why)) = stats.end else {
            panic!("{stats:?}");
        };
        assert!(why.contains("space") || why.contains("full"), "{why}");
        assert!(stats.dropped > 0);
    }

    #[test]
    fn what_waits_for_the_disk_is_bounded_and_what_is_left_out_is_counted() {
        let observer = observer();
        observe(&observer, 5_000);
        let stats = write(observer, Disk(usize::MAX), u64::MAX);
        assert_eq!((stats.packets, stats.dropped), (2_048, 2_952));
    }

    #[test]
    fn what_comes_after_the_end_is_counted_and_kept_nowhere() {
        let observer = observer();
        observer.progress.ended(CaptureEnd::Full);
        observe(&observer, 5);
        assert!(observer.queue.is_empty());
        assert_eq!(observer.progress.stats().dropped, 5);
    }
}
