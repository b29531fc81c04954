//! Sending in batches: datagrams are written into an arena, runs of equal size to one peer are
//! joined for UDP_SEGMENT, and all are sent by sendmmsg.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::{fmt, io, mem};

use crate::address::{self, RawAddress};
use crate::control::ControlBuffer;
use crate::socket::{Exit, Outlet};

/// The largest datagram that may be written.
pub const DATAGRAM_BYTES: usize = 2048;
/// The kernel's limit (UDP_MAX_SEGMENTS in older kernels).
const MAX_SEGMENTS: usize = 64;
/// A UDP datagram, and so a run, has at most 65,507 bytes with IPv4 headers.
const MAX_RUN_BYTES: usize = 65_000;
/// The longest wait for a full socket before the rest is dropped.
const PATIENCE_MS: i32 = 2;
/// The most attempts without success before the rest is dropped. Waiting for the socket does not
/// help against lack of memory (ENOBUFS).
const TRIES: u32 = 4;
/// Consecutive refusals of joined runs after which the kernel counts as unable to join. Some are
/// refused because of their path, such as one with a small MTU.
const REFUSALS: u32 = 64;
/// Flushes after which joining is tried again.
const RETRY: u32 = 20_000;

/// Totals of sent and unsent datagrams since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Datagrams that the kernel accepted.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// System calls for them.
    pub calls: u64,
    /// Datagrams dropped because the socket stayed full.
    pub dropped: u64,
    /// Datagrams that the kernel refused (no route, unreachable network …).
    pub refused: u64,
}

/// The treatment of datagrams without a network.
#[cfg(feature = "testing")]
#[derive(Debug)]
pub enum Diverted {
    /// They are only counted.
    Dropped,
    /// They are kept with their addresses.
    Kept(Vec<(SocketAddr, Vec<u8>)>),
}

/// The destination of datagrams, and the local address to send from.
#[derive(Debug, Clone, Copy)]
pub struct Destination {
    from: Option<IpAddr>,
    to: SocketAddr,
    /// Identifies it: equal serials mean equal addresses.
    serial: u32,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    start: usize,
    len: usize,
    segment: usize,
    count: usize,
    destination: Destination,
    /// The last datagram was shorter, so nothing can follow it.
    closed: bool,
}

/// Datagrams to send. They are written into one arena, and consecutive ones of equal size to one
/// [`Destination`] are joined; the last of such a run may be shorter. Their order is kept.
///
/// Each is written into [`SendBatch::room`] and confirmed by [`SendBatch::commit`].
pub struct SendBatch {
    arena: Vec<u8>,
    used: usize,
    runs: Vec<Run>,
    max_runs: usize,
    /// The serial of the last one made.
    destination: u32,
    /// Whether runs are joined.
    gso: bool,
    /// Joined runs that could only be sent as single datagrams, since the last joined success.
    refusals: u32,
    /// The error of a joined run that has just been refused. Joining was the cause if its first
    /// datagram is accepted alone.
    suspicion: Option<io::Error>,
    /// Flushes until joining is tried again. 0 if it is enabled, or was never possible.
    pause: u32,
    /// The treatment of datagrams without a network.
    #[cfg(feature = "testing")]
    pub diverted: Option<Diverted>,
    counters: SendCounters,
    error: Option<io::Error>,
    addresses: Vec<RawAddress>,
    controls: Vec<ControlBuffer>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `iovecs` and `headers` are rewritten from the owned buffers before
// each call and are not read otherwise, so the batch may move between threads.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Makes a batch of up to `arena_bytes` (at least one datagram) and `messages` (1 to 1,024) per
    /// call. `gso` says whether the kernel supports UDP_SEGMENT.
    pub fn new(arena_bytes: usize, messages: usize, gso: bool) -> Self {
        let messages = messages.clamp(1, libc::UIO_MAXIOV as usize);
        // SAFETY: mmsghdr and iovec are integers and pointers; all zeros is a valid value of them.
        let (header, iovec) = unsafe { (mem::zeroed(), mem::zeroed()) };
        Self {
            arena: vec![0; arena_bytes.max(DATAGRAM_BYTES)],
            used: 0,
            runs: Vec::with_capacity(messages),
            max_runs: messages,
            destination: 0,
            gso,
            refusals: 0,
            suspicion: None,
            pause: 0,
            #[cfg(feature = "testing")]
            diverted: None,
            counters: SendCounters::default(),
            error: None,
            addresses: vec![address::zeroed(); messages],
            controls: vec![ControlBuffer::new(); messages],
            iovecs: vec![iovec; messages],
            headers: vec![header; messages],
        }
    }

    /// Returns room for one datagram of up to [`DATAGRAM_BYTES`], to be confirmed by
    /// [`SendBatch::commit`]. Flushes a full batch first.
    #[inline]
    pub fn room(&mut self, socket: &impl Outlet) -> &mut [u8] {
        if self.is_full() {
            self.flush(socket);
        }
        let end = self.used + DATAGRAM_BYTES;
        self.arena.get_mut(self.used..end).unwrap_or_default()
    }

    /// Flushes if less than `bytes` are left, so that datagrams of that size for one destination
    /// leave as one message. More than half of the arena is not kept free.
    #[inline]
    pub fn keep_together(&mut self, bytes: usize, socket: &impl Outlet) {
        let needed = bytes.min(self.arena.len() / 2) + DATAGRAM_BYTES;
        if self.used + needed > self.arena.len() {
            self.flush(socket);
        }
    }

    /// Returns whether it has to be flushed to make room.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.used + DATAGRAM_BYTES > self.arena.len() || self.runs.len() == self.max_runs
    }

    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns a destination for datagrams to `to`. Use one for a burst, so that its datagrams can
    /// be joined. `from` is the local address; without it the kernel chooses.
    #[inline]
    pub fn destination(&mut self, from: impl Into<Option<IpAddr>>, to: SocketAddr) -> Destination {
        let from = from.into();
        let last = self.runs.last().map(|run| run.destination);
        if let Some(last) = last
            && (last.from, last.to) == (from, to)
        {
            return last;
        }
        self.destination = self.destination.wrapping_add(1);
        let serial = self.destination;
        Destination { from, to, serial }
    }

    /// Adds the first `len` bytes of the room as a datagram.
    #[inline]
    pub fn commit(&mut self, len: usize, destination: &Destination) {
        let start = self.used;
        debug_assert!(len <= DATAGRAM_BYTES && start + len <= self.arena.len());
        let len = len.min(self.arena.len() - start);
        self.used += len;
        if self.gso
            && let Some(run) = self.runs.last_mut()
            && run.destination.serial == destination.serial
            && !run.closed
            && len <= run.segment
            && run.count < MAX_SEGMENTS
            && run.len + len <= MAX_RUN_BYTES
        {
            run.len += len;
            run.count += 1;
            run.closed = len < run.segment;
            return;
        }
        self.runs.push(Run {
            start,
            len,
            segment: len,
            count: 1,
            destination: *destination,
            closed: false,
        });
    }

    /// Ends the current run: the next datagram belongs to another peer, even if the address is the
    /// same.
    pub fn part(&mut self) {
        if let Some(run) = self.runs.last_mut() {
            run.closed = true;
        }
    }

    /// Sends everything. Datagrams that the socket does not accept within 2 ms are dropped and
    /// counted.
    #[inline]
    pub fn flush(&mut self, socket: &impl Outlet) {
        if !self.runs.is_empty() {
            self.flush_by(socket);
        }
    }

    fn flush_by(&mut self, socket: &dyn Outlet) {
        #[cfg(feature = "testing")]
        if self.divert() {
            return;
        }
        let (mut first, mut tries) = (0, 0);
        while let Some(run) = self.runs.get(first) {
            let exit = socket.exit(run.destination.from);
            let prepared = self.prepare(first, exit, socket);
            match send(
                exit.fd,
                self.headers.get_mut(..prepared).unwrap_or_default(),
            ) {
                Ok(sent) => {
                    self.counters.calls += 1;
                    let mut joined = false;
                    for run in self.runs.iter().skip(first).take(sent) {
                        self.counters.datagrams += run.count as u64;
                        self.counters.bytes += run.len as u64;
                        joined |= run.count > 1;
                    }
                    first += sent;
                    tries = 0;
                    if let Some(error) = self.suspicion.take() {
                        self.count_refusal(&error, first);
                    }
                    if joined {
                        self.refusals = 0;
                    }
                }
                Err(error) => first += self.refused(first, error, exit.fd, &mut tries),
            }
        }
        self.runs.clear();
        self.used = 0;
        if self.pause > 0 {
            self.pause -= 1;
            self.gso = self.pause == 0;
        }
    }

    /// Counts datagrams, and keeps or drops them.
    #[cfg(feature = "testing")]
    fn divert(&mut self) -> bool {
        let Some(diverted) = &mut self.diverted else {
            return false;
        };
        for run in self.runs.drain(..) {
            self.counters.datagrams += run.count as u64;
            if let Diverted::Kept(kept) = diverted {
                let data = self.arena.get(run.start..run.start + run.len);
                let datagrams = data.unwrap_or_default().chunks(run.segment);
                kept.extend(datagrams.map(|datagram| (run.destination.to, datagram.to_vec())));
            }
        }
        self.used = 0;
        true
    }

    /// Returns the totals since the start.
    pub fn counters(&self) -> SendCounters {
        self.counters
    }

    /// Returns the last error of refused datagrams since the last call.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Handles an error of the run `first`, and counts the `tries` without room. Returns the number
    /// of settled runs.
    fn refused(
        &mut self,
        first: usize,
        error: io::Error,
        socket: BorrowedFd<'_>,
        tries: &mut u32,
    ) -> usize {
        let Some(run) = self.runs.get(first).copied() else {
            return 1;
        };
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::Interrupted, _) => 0,
            (io::ErrorKind::WouldBlock, _) | (_, Some(libc::ENOBUFS)) => {
                *tries += 1;
                if *tries < TRIES && wait_writable(socket) {
                    return 0;
                }
                self.suspicion = None;
                let left = self.runs.iter().skip(first);
                self.counters.dropped += left.map(|run| run.count as u64).sum::<u64>();
                self.runs.len() - first
            }
            (_, Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE)) if run.count > 1 => {
                self.suspicion = Some(error);
                self.split(first, Some(run.destination));
                0
            }
            _ => {
                // It cannot be sent at all. Anybody can name an address without a path.
                self.suspicion = None;
                self.counters.refused += run.count as u64;
                self.error = Some(error);
                1
            }
        }
    }

    /// Counts a run that was refused because of joining. After many in a row, nothing is joined for
    /// a while, including the runs from `first` on.
    fn count_refusal(&mut self, error: &io::Error, first: usize) {
        self.refusals = self.refusals.saturating_add(1);
        if self.gso && self.refusals >= REFUSALS {
            tracing::warn!(%error, "the kernel refuses UDP_SEGMENT: switched off for a while");
            self.gso = false;
            self.pause = RETRY;
            self.split(first, None);
        }
    }

    /// Splits joined runs from `first` on into runs of one datagram each: those to `only`, or all.
    fn split(&mut self, first: usize, only: Option<Destination>) {
        let joined: Vec<Run> = self.runs.drain(first..).collect();
        for run in joined {
            if only.is_some_and(|only| only.to != run.destination.to) {
                self.runs.push(run);
                continue;
            }
            let (mut start, end) = (run.start, run.start + run.len);
            while start < end {
                let len = run.segment.min(end - start);
                self.runs.push(Run {
                    start,
                    len,
                    segment: len,
                    count: 1,
                    ..run
                });
                start += len;
            }
        }
    }

    /// Fills the headers for the runs from `first` on that leave by the same `exit`. Returns their
    /// number.
    fn prepare<'a>(&mut self, first: usize, mut exit: Exit<'a>, socket: &'a dyn Outlet) -> usize {
        let mut from = self.runs.get(first).and_then(|run| run.destination.from);
        let runs = self.runs.get(first..).unwrap_or_default();
        let facts = self.addresses.iter_mut().zip(&mut self.controls);
        let slots = self.iovecs.iter_mut().zip(&mut self.headers);
        let mut prepared = 0;
        for (run, ((raw, control), (iovec, header))) in runs.iter().zip(facts.zip(slots)) {
            let Some(data) = self.arena.get(run.start..run.start + run.len) else {
                break;
            };
            if run.destination.from != from {
                let next = socket.exit(run.destination.from);
                if next.fd.as_raw_fd() != exit.fd.as_raw_fd() {
                    break;
                }
                (from, exit) = (run.destination.from, next);
            }
            // The kernel only reads it. A mutable borrow would end those of the runs before.
            iovec.iov_base = data.as_ptr().cast_mut().cast();
            iovec.iov_len = data.len();
            let segment = if run.count > 1 { run.segment as u16 } else { 0 };
            let message = &mut header.msg_hdr;
            message.msg_namelen = address::write(run.destination.to, exit.dual, raw);
            message.msg_name = std::ptr::from_mut(raw).cast();
            message.msg_iov = iovec;
            message.msg_iovlen = 1;
            let said = from.filter(|_| !exit.is_bound);
            message.msg_controllen = control.encode(said, exit.dual, segment);
            message.msg_control = control.as_mut_ptr();
            message.msg_flags = 0;
            prepared += 1;
        }
        prepared
    }
}

impl fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBatch")
            .field("runs", &self.runs.len())
            .field("used", &self.used)
            .field("gso", &self.gso)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Sends the messages. Returns how many were accepted.
fn send(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    // SAFETY: every header was filled by `prepare` with pointers into the batch's own vectors,
    // which are neither moved nor freed before the call returns.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            headers.len() as libc::c_uint,
            libc::MSG_DONTWAIT as _,
        )
    };
    if sent > 0 {
        Ok(sent as usize)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Waits until the socket accepts more, at most [`PATIENCE_MS`].
fn wait_writable(socket: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one pollfd is passed, and its count says so.
    unsafe { libc::poll(&mut poll, 1, PATIENCE_MS) > 0 }
}
