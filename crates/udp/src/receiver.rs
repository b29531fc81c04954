//! Receiving in batches: recvmmsg with UDP_GRO.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use std::{fmt, io, mem};

use crate::address::{self, RawAddress};
use crate::control::ControlBuffer;

/// The buffers of one recvmmsg call, and its results.
pub struct ReceiveBatch {
    room: usize,
    /// Whether longer messages are truncated instead of dropped.
    cuts: bool,
    data: Vec<u8>,
    addresses: Vec<RawAddress>,
    controls: Vec<ControlBuffer>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `iovecs` and `headers` are rewritten from the owned buffers before
// each call and are not read otherwise, so the batch may move between threads.
unsafe impl Send for ReceiveBatch {}

/// Datagrams of one sender that the kernel joined: all of `stride` bytes except the last, which may
/// be shorter.
#[derive(Debug)]
pub struct Received<'a> {
    /// The sender's address. IPv4 on an IPv6 socket is returned as IPv4.
    pub remote: SocketAddr,
    /// The destination address, if the kernel reports it: for a [`Socket`](crate::Socket) that is
    /// bound to all addresses.
    pub local: Option<IpAddr>,
    /// The consecutive datagrams. A truncating batch has only the part that fits.
    pub data: &'a mut [u8],
    /// The bytes of all datagrams, including truncated ones.
    pub len: usize,
    /// The bytes of each datagram; never 0.
    pub stride: usize,
    /// When the first of them arrived, since 1970, after
    /// [`enable_timestamps`](crate::enable_timestamps).
    pub at: Option<Duration>,
}

impl ReceiveBatch {
    /// Room for whole messages: the kernel joins up to 64 KiB.
    pub const WHOLE: usize = 1 << 16;

    /// Makes a batch for `messages` per call (1 to 1,024) of up to `room` bytes. Longer ones are
    /// dropped.
    pub fn new(messages: usize, room: usize) -> Self {
        let messages = messages.clamp(1, libc::UIO_MAXIOV as usize);
        let room = room.max(1);
        // SAFETY: mmsghdr and iovec are integers and pointers; all zeros is a valid value of them.
        let (header, iovec) = unsafe { (mem::zeroed(), mem::zeroed()) };
        Self {
            room,
            cuts: false,
            data: vec![0; messages * room],
            addresses: vec![address::zeroed(); messages],
            controls: vec![ControlBuffer::new(); messages],
            iovecs: vec![iovec; messages],
            headers: vec![header; messages],
        }
    }

    /// Makes a batch that truncates messages to `room` bytes, for users of lengths and first bytes
    /// only. The kernel then copies only that part, and still reports the full length.
    pub fn cutting(messages: usize, room: usize) -> Self {
        Self {
            cuts: true,
            ..Self::new(messages, room)
        }
    }

    /// Receives the available messages without waiting. Returns their number for
    /// [`ReceiveBatch::iter`], or 0.
    pub fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.receive_up_to(socket, self.headers.len())
    }

    /// Receives at most `messages` of the available messages.
    pub fn receive_up_to(&mut self, socket: &impl AsFd, messages: usize) -> io::Result<usize> {
        self.lay_out(messages);
        // The kernel writes only as much as fits. With MSG_TRUNC, it reports the full length.
        let flags = libc::MSG_DONTWAIT | if self.cuts { libc::MSG_TRUNC } else { 0 };
        // SAFETY: every header points to its own buffer, address and control space, set just before
        // from vectors that are not touched during the call, with their true lengths.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr(),
                messages.min(self.headers.len()) as libc::c_uint,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        if received >= 0 {
            return Ok(received as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // The socket itself is invalid, so later calls would fail too.
            Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EINVAL) => Err(error),
            // No message, a signal, an ICMP error of an earlier send, or a temporary lack of
            // memory.
            _ => Ok(0),
        }
    }

    /// Points the headers of `messages` to their buffers.
    fn lay_out(&mut self, messages: usize) {
        let buffers = self.data.chunks_exact_mut(self.room);
        let parts = buffers.zip(&mut self.addresses).zip(&mut self.controls);
        let slots = self.iovecs.iter_mut().zip(&mut self.headers);
        for (((buffer, address), control), (iovec, header)) in parts.zip(slots).take(messages) {
            iovec.iov_base = buffer.as_mut_ptr().cast();
            iovec.iov_len = buffer.len();
            let message = &mut header.msg_hdr;
            message.msg_name = std::ptr::from_mut(address).cast();
            message.msg_namelen = mem::size_of::<RawAddress>() as libc::socklen_t;
            message.msg_iov = iovec;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr();
            message.msg_controllen = ControlBuffer::capacity();
            message.msg_flags = 0;
        }
    }

    /// Returns whether a call that returned `received` may have left more messages.
    pub fn was_full(&self, received: usize) -> bool {
        received == self.headers.len()
    }

    /// Returns the first `received` messages. Those of foreign address families are skipped.
    pub fn iter(&mut self, received: usize) -> impl Iterator<Item = Received<'_>> {
        let (room, cuts) = (self.room, self.cuts);
        let buffers = self.data.chunks_exact_mut(room);
        let facts = self.headers.iter().zip(&self.addresses).zip(&self.controls);
        buffers.zip(facts).take(received).filter_map(
            move |(buffer, ((header, address), control))| {
                if !cuts && header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                    return None;
                }
                let len = header.msg_len as usize;
                let facts = control.decode(header.msg_hdr.msg_controllen);
                Some(Received {
                    remote: address::read(address)?,
                    local: facts.local,
                    data: buffer.get_mut(..len.min(room))?,
                    len,
                    stride: facts.segment.map_or(len, usize::from).max(1),
                    at: facts.at,
                })
            },
        )
    }
}

impl fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveBatch")
            .field("messages", &self.headers.len())
            .field("room", &self.room)
            .field("cuts", &self.cuts)
            .finish_non_exhaustive()
    }
}

impl Received<'_> {
    /// Returns the number of datagrams.
    pub fn count(&self) -> usize {
        self.len.div_ceil(self.stride).max(1)
    }

    /// Returns each datagram, as far as it fits.
    pub fn datagrams(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.data.chunks_mut(self.stride)
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;

    /// Does what recvmmsg does with a header, through its pointers: Miri checks them.
    fn play_kernel(header: &mut libc::mmsghdr, from: SocketAddr, data: &[u8], segment: u16) {
        let message = &mut header.msg_hdr;
        // SAFETY: the header was laid out just before, and its buffers live.
        unsafe {
            let address = &mut *message.msg_name.cast::<RawAddress>();
            message.msg_namelen = address::write(from, false, address);
            let iovec = &*message.msg_iov;
            assert!(data.len() <= iovec.iov_len);
            std::ptr::copy_nonoverlapping(data.as_ptr(), iovec.iov_base.cast(), data.len());
            let control = &mut *message.msg_control.cast::<ControlBuffer>();
            message.msg_controllen = control.encode(None, false, segment);
        }
        header.msg_len = data.len() as u32;
    }

    #[test]
    fn what_was_written_by_the_pointers_is_read() {
        let mut batch = ReceiveBatch::new(3, 16);
        let from: [SocketAddr; 2] = [
            "192.0.2.1:7".parse().unwrap(),
            "[2001:db8::1]:8".parse().unwrap(),
        ];
        for round in 0..2 {
            batch.lay_out(2);
            for (n, header) in batch.headers.iter_mut().take(2).enumerate() {
                play_kernel(header, from[n], &[round * 2 + n as u8; 15], 10);
            }
            let mut received = batch.iter(2);
            for (n, from) in from.into_iter().enumerate() {
                let mut message = received.next().unwrap();
                assert_eq!((message.remote, message.len), (from, 15));
                assert_eq!(message.data, [round * 2 + n as u8; 15]);
                message.datagrams().for_each(|datagram| datagram.fill(0));
            }
            assert!(received.next().is_none());
        }
    }
}
