//! The queue of lines to be written. Threads that log never wait for the reader of the log.
//!
//! `tracing-appender` is similar, but limits the number of lines and not their bytes, cannot be
//! flushed while it runs, and may write to the standard output at its end.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::line::{self, Form};

/// The most lines that wait.
const MAX_LINES: usize = 4_096;
/// The most bytes of lines that wait.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The shortest interval of reports of lost lines.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// The pause before writing again to a full non-blocking output.
const RETRY: Duration = Duration::from_millis(10);

thread_local! {
    /// On the writing thread: the lines that it logs itself, which bypass the queue.
    static OWN: RefCell<Option<Vec<Raw>>> = const { RefCell::new(None) };
}

/// A line as it was logged.
#[derive(Debug)]
struct Raw {
    bytes: Vec<u8>,
    form: Form,
}

/// The counters of the queue.
#[derive(Debug, Default)]
struct Counts {
    /// Bytes that wait.
    waiting: AtomicUsize,
    queued: AtomicU64,
    /// Lines that have left the queue.
    taken: AtomicU64,
    dropped: AtomicU64,
    /// The reported part of `dropped`.
    reported: AtomicU64,
}

impl Counts {
    fn take_dropped(&self) -> u64 {
        let dropped = self.dropped.load(Ordering::Relaxed);
        dropped.saturating_sub(self.reported.swap(dropped, Ordering::Relaxed))
    }
}

/// The sender's side of the queue.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    lines: SyncSender<Raw>,
    counts: Arc<Counts>,
}

impl Queue {
    /// Starts the thread that writes lines to `out`. Every few seconds it calls `report` with the
    /// number of lines dropped since the last call. Lines that `report` logs are written
    /// immediately.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        report: impl FnMut(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let (lines, receiver) = sync_channel(MAX_LINES);
        let counts = Arc::new(Counts::default());
        let writer = Writer {
            receiver,
            counts: Arc::clone(&counts),
            out,
            report,
            line: String::new(),
        };
        thread::Builder::new()
            .name("log".into())
            .spawn(move || writer.run())?;
        Ok(Self { lines, counts })
    }

    /// Queues a line, or drops it if too much waits.
    pub(super) fn push(&self, bytes: &[u8], form: Form) {
        let raw = || Raw {
            bytes: bytes.to_owned(),
            form,
        };
        // Access fails on an ending thread, which is not the writing one.
        let is_own = OWN.try_with(|own| {
            let mut own = own.try_borrow_mut().ok()?;
            own.as_mut().map(|own| own.push(raw()))
        });
        if is_own.is_ok_and(|own| own.is_some()) {
            return;
        }
        let counts = &self.counts;
        let before = counts.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        // Counted first, so that a line is never taken before it counts as queued.
        counts.queued.fetch_add(1, Ordering::Relaxed);
        let has_room = before.saturating_add(bytes.len()) <= MAX_BYTES;
        if !has_room || self.lines.try_send(raw()).is_err() {
            counts.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            counts.queued.fetch_sub(1, Ordering::Relaxed);
            counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the present lines are written, at most `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let counts = &self.counts;
        let queued = counts.queued.load(Ordering::Relaxed);
        let begun = Instant::now();
        while counts.taken.load(Ordering::Acquire) < queued && begun.elapsed() < limit {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the lines dropped since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Returns the lines dropped since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        self.counts.take_dropped()
    }
}

/// The writing thread.
struct Writer<W, R> {
    receiver: Receiver<Raw>,
    counts: Arc<Counts>,
    out: W,
    report: R,
    /// The line in progress.
    line: String,
}

impl<W: Write, R: FnMut(u64)> Writer<W, R> {
    fn run(mut self) {
        OWN.set(Some(Vec::new()));
        let mut reported = Instant::now();
        loop {
            match self.receiver.recv_timeout(REPORT_INTERVAL) {
                Ok(raw) => {
                    let len = raw.bytes.len();
                    let is_written = self.write(&raw);
                    let counts = &self.counts;
                    counts.waiting.fetch_sub(len, Ordering::Relaxed);
                    counts
                        .dropped
                        .fetch_add(u64::from(!is_written), Ordering::Relaxed);
                    counts.taken.fetch_add(1, Ordering::Release);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                (self.report)(self.counts.take_dropped());
                for raw in OWN
                    .with_borrow_mut(|own| own.as_mut().map(std::mem::take))
                    .unwrap_or_default()
                {
                    self.write(&raw);
                }
            }
        }
    }

    /// Writes a line. Returns false if the output is gone.
    fn write(&mut self, raw: &Raw) -> bool {
        self.line.clear();
        line::finish(&raw.bytes, raw.form, &mut self.line);
        let mut left = self.line.as_bytes();
        while !left.is_empty() {
            match self.out.write(left) {
                Ok(0) => return false,
                Ok(len) => left = left.get(len..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY),
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
    use super::*;

    const TEXT: Form = Form::Text { colors: false };

    #[test]
    fn nobody_waits_for_an_output_that_is_full() {
        let (reader, writer) = io::pipe().unwrap();
        let queue = Queue::start(writer, |_| {}).unwrap();
        let line = |n: usize| format!("{n} {}\n", "x".repeat(100));
        let lines = MAX_LINES * 4;
        let begun = Instant::now();
        for n in 0..lines {
            queue.push(line(n).as_bytes(), TEXT);
        }
        queue.flush(Duration::from_millis(50));
        assert!(begun.elapsed() < Duration::from_secs(10));
        let dropped = usize::try_from(queue.take_dropped()).unwrap();
        assert!((MAX_LINES..lines).contains(&dropped), "{dropped}");
        assert_eq!(queue.take_dropped(), 0);
        // The reader is back: queued lines arrive whole and in order.
        drop(queue);
        let read = io::read_to_string(reader).unwrap();
        let read: Vec<_> = read.split_inclusive('\n').collect();
        assert_eq!(read.len(), lines - dropped);
        let number = |read: &str| read.split(' ').next().unwrap().parse::<usize>().unwrap();
        assert!(read.iter().all(|read| *read == line(number(read))));
        assert!(read.is_sorted_by_key(|read| number(read)));
    }

    #[test]
    fn long_lines_take_no_more_memory_than_short_ones() {
        let (_reader, writer) = io::pipe().unwrap();
        let queue = Queue::start(writer, |_| {}).unwrap();
        let long = vec![b'x'; MAX_BYTES / 8];
        for _ in 0..100 {
            queue.push(&long, TEXT);
        }
        assert!(queue.dropped() >= 80, "{}", queue.dropped());
    }

    #[test]
    fn lines_are_written_by_the_end() {
        let (reader, writer) = io::pipe().unwrap();
        let queue = Queue::start(writer, |_| {}).unwrap();
        for n in 0..100 {
            queue.push(format!("{n}\n").as_bytes(), TEXT);
        }
        queue.flush(Duration::from_secs(10));
        let mut bytes = [0; 290];
        let mut reader = reader;
        io::Read::read_exact(&mut reader, &mut bytes).unwrap();
        assert!(bytes.ends_with(b"\n98\n99\n"));
    }

    #[test]
    fn an_output_that_is_gone_stops_nothing() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let queue = Queue::start(writer, |_| {}).unwrap();
        queue.push(b"lost\n", TEXT);
        queue.flush(Duration::from_secs(10));
        assert_eq!(queue.dropped(), 1);
    }
}
