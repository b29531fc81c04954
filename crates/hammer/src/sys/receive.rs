//! Receiving in batches.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Duration;

use super::address::{self, RawAddress};
use super::control::ControlBuffer;

/// The buffers of one recvmmsg call and what it put there.
///
/// Where only lengths and the first bytes count, messages are given little room: the kernel then copies
/// no more than that, and still says how long they were.
#[derive(Debug)]
pub struct ReceiveBatch {
    room: usize,
    data: Vec<u8>,
    addresses: Vec<RawAddress>,
    controls: Vec<ControlBuffer>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `iovecs` and `headers` are rewritten from the owned buffers before each
// call and are not read otherwise, so the batch may move between threads.
unsafe impl Send for ReceiveBatch {}

/// Datagrams of one sender that the kernel joined: all of `stride` bytes but the last, which may be
/// shorter.
#[derive(Debug)]
pub struct Received<'a> {
    /// Who sent them; none for a family other than IPv4 and IPv6.
    pub from: Option<SocketAddr>,
    /// What there was room for of them.
    pub data: &'a mut [u8],
    /// All their bytes, those included that there was no room for.
    pub len: usize,
    /// Bytes of each datagram.
    pub stride: usize,
    /// When the kernel got the first of them, since 1970; only with [`ReceiveBatch::stamp`].
    pub at: Option<Duration>,
}

impl ReceiveBatch {
    /// Room for whole messages: the kernel joins up to 64 KiB.
    pub const WHOLE: usize = 1 << 16;

    /// For `messages` a call, with `room` bytes kept of each.
    pub fn new(messages: usize, room: usize) -> Self {
        let messages = messages.clamp(1, libc::UIO_MAXIOV as usize);
        let iovec = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: mmsghdr is integers and pointers; all zeros is a valid value of it.
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let room = room.max(1);
        Self {
            room,
            data: vec![0; messages * room],
            addresses: vec![address::EMPTY; messages],
            controls: vec![ControlBuffer::EMPTY; messages],
            iovecs: vec![iovec; messages],
            headers: vec![header; messages],
        }
    }

    /// Asks the kernel to join what `socket` gets (UDP_GRO); says whether it does.
    pub fn join(socket: &UdpSocket) -> bool {
        nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::UdpGroSegment, &true)
            .is_ok()
    }

    /// Asks the kernel to note when `socket` gets something; says whether it does.
    pub fn stamp(socket: &UdpSocket) -> bool {
        nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::ReceiveTimestampns, &true)
            .is_ok()
    }

    /// Receives what is there, without waiting. The number returned is for [`ReceiveBatch::iter`]; 0 if
    /// there is nothing.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        let buffers = self.data.chunks_exact_mut(self.room);
        let parts = buffers.zip(&mut self.addresses).zip(&mut self.controls);
        let slots = self.iovecs.iter_mut().zip(&mut self.headers);
        for (((buffer, address), control), (iovec, header)) in parts.zip(slots) {
            iovec.iov_base = buffer.as_mut_ptr().cast();
            iovec.iov_len = buffer.len();
            let message = &mut header.msg_hdr;
            message.msg_name = ptr::from_mut(address).cast();
            message.msg_namelen = address::RAW_ADDRESS_BYTES;
            message.msg_iov = iovec;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr();
            message.msg_controllen = ControlBuffer::BYTES;
            message.msg_flags = 0;
        }
        // SAFETY: every header points to its own buffer, address and control space, set just above from
        // vectors that are not touched during the call, with their true lengths. With MSG_TRUNC the
        // kernel writes no more than fits, and gives the length that it would have been.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
                ptr::null_mut(),
            )
        };
        if let Ok(received) = usize::try_from(received) {
            return Ok(received);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED) => Ok(0),
            _ => Err(error),
        }
    }

    /// Whether a call that returned `received` may have left more behind.
    pub fn was_full(&self, received: usize) -> bool {
        received == self.headers.len()
    }

    /// The first `received` messages.
    pub fn iter(&mut self, received: usize) -> impl Iterator<Item = Received<'_>> {
        let room = self.room;
        let buffers = self.data.chunks_exact_mut(room);
        let facts = self.headers.iter().zip(&self.addresses).zip(&self.controls);
        buffers
            .zip(facts)
            .take(received)
            .map(move |(buffer, ((header, raw), control))| {
                let len = header.msg_len as usize;
                let facts = control.facts(header.msg_hdr.msg_controllen);
                Received {
                    from: address::read(raw),
                    data: buffer.get_mut(..len.min(room)).unwrap_or_default(),
                    len,
                    stride: facts
                        .segment
                        .filter(|bytes| *bytes > 0)
                        .unwrap_or(len.max(1)),
                    at: facts.at,
                }
            })
    }
}

impl Received<'_> {
    /// How many datagrams they are.
    pub fn count(&self) -> usize {
        self.len.div_ceil(self.stride).max(1)
    }

    /// Each of them, as far as there was room.
    pub fn datagrams(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.data.chunks_mut(self.stride)
    }
}
