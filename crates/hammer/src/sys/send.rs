//! Sending in batches.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

use super::address::{self, RawAddress};
use super::control::ControlBuffer;

/// The kernel's limit (UDP_MAX_SEGMENTS in older kernels).
const MAX_SEGMENTS: usize = 64;
/// A run has to fit into one IPv4 datagram's length field.
const MAX_RUN_BYTES: usize = 65_000;

/// Datagrams on their way out: they are written into one arena, and successive ones of equal size to one
/// address are joined for UDP_SEGMENT; the last of such a run may be shorter. Their order is kept.
#[derive(Debug)]
pub struct SendBatch {
    arena: Vec<u8>,
    used: usize,
    runs: Vec<Run>,
    max_runs: usize,
    joined: bool,
    addresses: Vec<RawAddress>,
    controls: Vec<ControlBuffer>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `iovecs` and `headers` are rewritten from the owned buffers before each
// call and are not read otherwise, so the batch may move between threads.
unsafe impl Send for SendBatch {}

/// What one [`SendBatch::flush`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// System calls.
    pub calls: u64,
    /// Datagrams that the kernel had no room for.
    pub dropped: u64,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    start: usize,
    len: usize,
    segment: usize,
    count: usize,
    to: SocketAddr,
    /// Nothing can follow: the last datagram was shorter, or the caller wants it so.
    closed: bool,
}

impl SendBatch {
    /// A batch of up to `arena_bytes` and `max_runs` messages (1,024 at most); `joined`: with UDP_SEGMENT.
    pub fn new(arena_bytes: usize, max_runs: usize, joined: bool) -> Self {
        let max_runs = max_runs.clamp(1, libc::UIO_MAXIOV as usize);
        let iovec = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: mmsghdr is integers and pointers; all zeros is a valid value of it.
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Self {
            arena: vec![0; arena_bytes],
            used: 0,
            runs: Vec::with_capacity(max_runs),
            max_runs,
            joined,
            addresses: vec![address::EMPTY; max_runs],
            controls: vec![ControlBuffer::EMPTY; max_runs],
            iovecs: vec![iovec; max_runs],
            headers: vec![header; max_runs],
        }
    }

    /// Room for a datagram of exactly `len` bytes; none: flush first. [`SendBatch::commit`] has to follow.
    pub fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.runs.len() == self.max_runs {
            return None;
        }
        self.arena.get_mut(self.used..self.used.checked_add(len)?)
    }

    /// The first `len` bytes of the room are a datagram to `to`.
    pub fn commit(&mut self, len: usize, to: SocketAddr) {
        let start = self.used;
        self.used = (start + len).min(self.arena.len());
        if self.joined
            && let Some(run) = self.runs.last_mut()
            && run.to == to
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
            to,
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

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Sends everything; the batch is empty afterwards. What the kernel has no room for is dropped and
    /// counted.
    pub fn flush(&mut self, socket: &UdpSocket) -> io::Result<Flushed> {
        let prepared = self.prepare();
        let mut flushed = Flushed::default();
        let mut first = 0;
        let outcome = loop {
            let Some(headers) = self
                .headers
                .get_mut(first..prepared)
                .filter(|h| !h.is_empty())
            else {
                break Ok(());
            };
            flushed.calls += 1;
            match send(socket, headers) {
                Ok(sent) => {
                    for run in self.runs.iter().skip(first).take(sent) {
                        flushed.datagrams += run.count as u64;
                        flushed.bytes += run.len as u64;
                    }
                    first += sent;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::ENOBUFS) => {
                        flushed.dropped += self.runs.get(first).map_or(0, |run| run.count as u64);
                        first += 1;
                    }
                    // An ICMP error of an earlier datagram: that is no matter of this one.
                    Some(libc::ECONNREFUSED) => {}
                    _ => break Err(error),
                },
            }
        };
        self.runs.clear();
        self.used = 0;
        outcome.map(|()| flushed)
    }

    /// Fills the headers for all runs; returns how many.
    fn prepare(&mut self) -> usize {
        let facts = self.addresses.iter_mut().zip(&mut self.controls);
        let slots = self.iovecs.iter_mut().zip(&mut self.headers);
        let mut prepared = 0;
        for (run, ((raw, control), (iovec, header))) in self.runs.iter().zip(facts.zip(slots)) {
            let Some(data) = self.arena.get_mut(run.start..run.start + run.len) else {
                break;
            };
            iovec.iov_base = data.as_mut_ptr().cast();
            iovec.iov_len = data.len();
            let message = &mut header.msg_hdr;
            message.msg_namelen = address::write(run.to, raw);
            message.msg_name = ptr::from_mut(raw).cast();
            message.msg_iov = iovec;
            message.msg_iovlen = 1;
            message.msg_controllen = 0;
            message.msg_control = ptr::null_mut();
            if run.count > 1 {
                message.msg_controllen = control.segment(run.segment as u16);
                message.msg_control = control.as_mut_ptr();
            }
            prepared += 1;
        }
        prepared
    }
}

/// Sends the messages; returns how many left.
fn send(socket: &UdpSocket, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    // SAFETY: every header was filled by `prepare` with pointers into the batch's own vectors, which are
    // neither moved nor freed before the call returns.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            headers.len() as libc::c_uint,
            0,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
