//! Sending in batches: datagrams are written into an arena, runs of equal size to one peer are joined
//! for UDP_SEGMENT, and everything leaves by sendmmsg.

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
/// How long a full socket is waited for before what is left is dropped.
const PATIENCE_MS: i32 = 2;
/// Tries of the kernel's that bring nothing before what is left is dropped: a socket that has room does not
/// help where memory is short (ENOBUFS).
const TRIES: u32 = 4;
/// Joined runs that the kernel refuses one after the other before it counts as one that cannot join. A few
/// are refused for their path: where its MTU is smaller than a datagram, for one.
const REFUSALS: u32 = 64;
/// Flushes after which joining is tried again.
const RETRY: u32 = 20_000;

/// What was sent and what was not, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// System calls for them.
    pub calls: u64,
    /// Datagrams given up because the socket stayed full.
    pub dropped: u64,
    /// Datagrams that the kernel refused (no route, unreachable network …).
    pub refused: u64,
}

/// What becomes of datagrams that are not sent.
#[cfg(feature = "testing")]
#[derive(Debug)]
pub enum Diverted {
    /// They are counted only.
    Dropped,
    /// They are kept with their addresses.
    Kept(Vec<(SocketAddr, Vec<u8>)>),
}

/// Where datagrams go, and from which of our addresses.
#[derive(Debug, Clone, Copy)]
pub struct Destination {
    from: Option<IpAddr>,
    to: SocketAddr,
    /// Told apart by this: it is the same only for equal addresses.
    serial: u32,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    start: usize,
    len: usize,
    segment: usize,
    count: usize,
    destination: Destination,
    /// The last datagram was shorter: nothing can follow it.
    closed: bool,
}

/// Datagrams on their way out: they are written into one arena, and successive ones of equal size to one
/// [`Destination`] are joined; the last of such a run may be shorter. Their order is kept.
///
/// Each is written into [`SendBatch::room`] and confirmed by [`SendBatch::commit`].
pub struct SendBatch {
    arena: Vec<u8>,
    used: usize,
    runs: Vec<Run>,
    max_runs: usize,
    /// The last one that was given out.
    destination: u32,
    /// Runs are joined.
    gso: bool,
    /// Joined runs whose datagrams left only one by one, since the last one that left joined.
    refusals: u32,
    /// Why a joined run was refused just now. It was because of the joining if its first datagram leaves alone.
    suspicion: Option<io::Error>,
    /// Flushes until joining is tried again; 0: it is on, or never was.
    pause: u32,
    /// What becomes of the datagrams where there is no network.
    #[cfg(feature = "testing")]
    pub diverted: Option<Diverted>,
    counters: SendCounters,
    error: Option<io::Error>,
    addresses: Vec<RawAddress>,
    controls: Vec<ControlBuffer>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `iovecs` and `headers` are rewritten from the owned buffers before each
// call and are not read otherwise, so the batch may move between threads.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// A batch of up to `arena_bytes` (one datagram at least) and `messages` (1 to 1,024) a call; `gso`:
    /// the kernel knows UDP_SEGMENT.
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

    /// Room for one datagram of up to [`DATAGRAM_BYTES`]; [`SendBatch::commit`] says what became of
    /// it. If the batch is full it is flushed first.
    #[inline]
    pub fn room(&mut self, socket: &impl Outlet) -> &mut [u8] {
        if self.is_full() {
            self.flush(socket);
        }
        let end = self.used + DATAGRAM_BYTES;
        self.arena.get_mut(self.used..end).unwrap_or_default()
    }

    /// Whether it has to be flushed before there is room again.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.used + DATAGRAM_BYTES > self.arena.len() || self.runs.len() == self.max_runs
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// A way for datagrams to `to`; ask for it once for a burst, so that they can be joined. `from` is
    /// the address of ours that they leave from; without it the kernel chooses.
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

    /// The first `len` bytes of the room are a datagram.
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

    /// What follows is not joined to what is there: the next datagram is for somebody else, even if the
    /// address is the same.
    pub fn part(&mut self) {
        if let Some(run) = self.runs.last_mut() {
            run.closed = true;
        }
    }

    /// Sends everything. What the socket does not take within 2 ms is dropped and counted.
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

    /// Counts and keeps or drops what would be sent.
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

    /// What was sent since the start.
    pub fn counters(&self) -> SendCounters {
        self.counters
    }

    /// Why the kernel refused the last of the datagrams that it refused since the last call.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Deals with an error on the run `first`, and counts the `tries` that found no room; returns how many runs
    /// are settled by that.
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
                // It leaves in no way: there is no such path, and anybody can name an address without one.
                self.suspicion = None;
                self.counters.refused += run.count as u64;
                self.error = Some(error);
                1
            }
        }
    }

    /// A run was refused because it was joined. After many in a row nothing is joined for a while, nor are the runs from
    /// `first` on.
    fn count_refusal(&mut self, error: &io::Error, first: usize) {
        self.refusals = self.refusals.saturating_add(1);
        if self.gso && self.refusals >= REFUSALS {
            tracing::warn!(%error, "the kernel refuses UDP_SEGMENT: switched off for a while");
            self.gso = false;
            self.pause = RETRY;
            self.split(first, None);
        }
    }

    /// Turns joined runs from `first` on into runs of one datagram each: those to `only`, or all.
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

    /// Fills the headers for the runs from `first` on, whose exit of the socket is known, as far as they leave by the
    /// same; returns how many.
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
            // It is only read. To borrow it for writing would end the borrows of the runs before.
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

/// Sends the messages; returns how many left.
fn send(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    // SAFETY: every header was filled by `prepare` with pointers into the batch's own vectors, which
    // are neither moved nor freed before the call returns.
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

/// Waits until the socket takes more, at most [`PATIENCE_MS`].
fn wait_writable(socket: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one pollfd is passed, and its count says so.
    unsafe { libc::poll(&mut poll, 1, PATIENCE_MS) > 0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::os::fd::AsFd;

    use super::*;
    use crate::socket::set_option;
    use crate::{ReceiveBatch, Socket};

    /// What sendmmsg does with a header, by the pointers in it: Miri sees whether they are good.
    fn play_kernel(header: &libc::mmsghdr) -> (SocketAddr, Vec<u8>) {
        let message = &header.msg_hdr;
        // SAFETY: the header was prepared just before, and its buffers live.
        unsafe {
            let address = &*message.msg_name.cast::<RawAddress>();
            let iovec = &*message.msg_iov;
            let data = std::slice::from_raw_parts(iovec.iov_base.cast::<u8>(), iovec.iov_len);
            let control = std::slice::from_raw_parts(
                message.msg_control.cast::<u8>(),
                message.msg_controllen,
            );
            assert_eq!(control.is_empty(), iovec.iov_len < 8);
            (address::read(address).unwrap(), data.to_vec())
        }
    }

    /// Something that is open.
    struct Open(io::Stdin);

    impl Outlet for Open {
        fn exit(&self, _: Option<IpAddr>) -> Exit<'_> {
            Exit {
                fd: self.0.as_fd(),
                dual: false,
                is_bound: false,
            }
        }
    }

    #[test]
    fn headers_point_to_what_was_committed() {
        let mut batch = SendBatch::new(4 << 10, 8, true);
        let to: [SocketAddr; 2] = [
            "192.0.2.1:7".parse().unwrap(),
            "[2001:db8::1]:8".parse().unwrap(),
        ];
        for _ in 0..2 {
            // Two that are joined, and one elsewhere.
            for (n, to) in [to[0], to[0], to[1]].into_iter().enumerate() {
                let used = batch.used;
                batch.arena[used..used + 5].fill(n as u8);
                let destination = batch.destination(None, to);
                batch.commit(5, &destination);
            }
            let open = Open(io::stdin());
            assert_eq!(batch.prepare(0, open.exit(None), &open), 2);
            let joined = play_kernel(&batch.headers[0]);
            assert_eq!(joined, (to[0], vec![0, 0, 0, 0, 0, 1, 1, 1, 1, 1]));
            assert_eq!(play_kernel(&batch.headers[1]), (to[1], vec![2; 5]));
            batch.runs.clear();
            batch.used = 0;
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs the network")]
    fn what_the_kernel_refuses_to_join_leaves_one_by_one_and_in_order() {
        let bind = || Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (a, b) = (bind(), bind());
        // As it seems at the start, it would: with checksums off, Linux has no UDP_SEGMENT.
        let mut out = SendBatch::new(64 << 10, 64, true);
        set_option(&a, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        let sizes = [500_usize, 500, 500, 20, 700, 700, 10];
        for round in 0..2 {
            for (n, size) in sizes.iter().enumerate() {
                out.room(&a)[..*size].fill((round * 10 + n) as u8);
                let destination = out.destination(None, b.local());
                out.commit(*size, &destination);
            }
            out.flush(&a);
        }
        let counters = out.counters();
        assert_eq!(
            (counters.datagrams, counters.refused, counters.dropped),
            (14, 0, 0)
        );
        let mut batch = ReceiveBatch::new(32, ReceiveBatch::WHOLE);
        let mut got = Vec::new();
        while got.len() < 14 {
            let received = batch.receive(&b).unwrap();
            for message in batch.iter(received) {
                got.push((message.data.len(), usize::from(message.data[0])));
            }
        }
        let sent = (0..2).flat_map(|round| (0..7).map(move |n| (sizes[n], round * 10 + n)));
        assert!(got.into_iter().eq(sent));
    }

    /// Sends two datagrams that can be joined; tells in how many calls they left.
    fn send_two(out: &mut SendBatch, socket: &Socket, to: SocketAddr) -> u64 {
        let before = out.counters().calls;
        for _ in 0..2 {
            out.room(socket)[..100].fill(7);
            let destination = out.destination(None, to);
            out.commit(100, &destination);
        }
        let runs = out.runs.len();
        out.flush(socket);
        assert_eq!(out.counters().calls - before, 1);
        runs as u64
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs the network")]
    fn a_few_refusals_end_no_joining_and_many_end_it_for_a_while() {
        let bind = || Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (a, b) = (bind(), bind());
        let mut out = SendBatch::new(64 << 10, 64, true);
        let refuse = |refuse| {
            set_option(&a, libc::SOL_SOCKET, libc::SO_NO_CHECK, i32::from(refuse)).unwrap();
        };
        for _ in 0..3 {
            refuse(true);
            for _ in 1..REFUSALS {
                assert_eq!(send_two(&mut out, &a, b.local()), 1, "still joined");
            }
            refuse(false);
            assert_eq!(send_two(&mut out, &a, b.local()), 1);
        }
        refuse(true);
        for _ in 0..REFUSALS {
            send_two(&mut out, &a, b.local());
        }
        refuse(false);
        for _ in 1..RETRY {
            assert_eq!(send_two(&mut out, &a, b.local()), 2, "each by itself");
        }
        assert_eq!(send_two(&mut out, &a, b.local()), 1, "tried again");
        let counters = out.counters();
        assert_eq!((counters.refused, counters.dropped), (0, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs the network")]
    fn a_destination_without_a_path_ends_no_joining() {
        let bind = || Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (a, b) = (bind(), bind());
        let mut out = SendBatch::new(64 << 10, 64, true);
        // From a loopback address nothing leaves the machine.
        let nowhere = "192.0.2.1:7".parse().unwrap();
        let rounds = u64::from(2 * REFUSALS);
        for _ in 0..rounds {
            for _ in 0..2 {
                out.room(&a)[..100].fill(7);
                let destination = out.destination(None, nowhere);
                out.commit(100, &destination);
            }
            out.flush(&a);
        }
        assert_eq!(out.counters().refused, 2 * rounds);
        assert_eq!(send_two(&mut out, &a, b.local()), 1, "still joined");
    }

    #[test]
    fn only_runs_of_the_destination_that_was_refused_are_cut_up() {
        let mut batch = SendBatch::new(4 << 10, 8, true);
        let to: [SocketAddr; 2] = [
            "192.0.2.1:7".parse().unwrap(),
            "192.0.2.2:7".parse().unwrap(),
        ];
        for to in [to[0], to[0], to[1], to[1], to[0], to[0]] {
            let destination = batch.destination(None, to);
            batch.commit(5, &destination);
        }
        assert_eq!(batch.runs.len(), 3);
        batch.split(0, Some(batch.runs[0].destination));
        let runs: Vec<_> = batch
            .runs
            .iter()
            .map(|r| (r.start, r.len, r.count))
            .collect();
        assert_eq!(
            runs,
            [(0, 5, 1), (5, 5, 1), (10, 10, 2), (20, 5, 1), (25, 5, 1)]
        );
    }
}
