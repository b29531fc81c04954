//! Receiving in batches: recvmmsg with UDP_GRO.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::{io, mem};

use super::address::{self, RawAddress};
use super::control::ControlBuffer;

/// Messages a call.
const MESSAGES: usize = 32;
/// The kernel joins up to 64 KiB into one message.
const MESSAGE_BYTES: usize = 1 << 16;

/// The buffers of one recvmmsg call and what it put there.
pub(crate) struct ReceiveBatch {
    data: Vec<u8>,
    addresses: Vec<RawAddress>,
    controls: Vec<ControlBuffer>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `iovecs` and `headers` are rewritten from the owned buffers before each
// call and are not read otherwise, so the batch may move between threads.
unsafe impl Send for ReceiveBatch {}

/// Datagrams that the kernel joined: all of `stride` bytes but the last, which may be shorter.
pub(crate) struct Received<'a> {
    /// Who sent them.
    pub(crate) remote: SocketAddr,
    /// The address they came to, if the kernel said.
    pub(crate) local: Option<IpAddr>,
    /// The datagrams, one after the other.
    pub(crate) data: &'a mut [u8],
    /// Bytes of each datagram.
    pub(crate) stride: usize,
}

impl ReceiveBatch {
    pub(crate) fn new() -> Self {
        // SAFETY: mmsghdr and iovec are integers and pointers; all zeros is a valid value of them.
        let (header, iovec) = unsafe { (mem::zeroed(), mem::zeroed()) };
        Self {
            data: vec![0; MESSAGES * MESSAGE_BYTES],
            addresses: vec![address::zeroed(); MESSAGES],
            controls: vec![ControlBuffer::new(); MESSAGES],
            iovecs: vec![iovec; MESSAGES],
            headers: vec![header; MESSAGES],
        }
    }

    /// Receives what is there; 0 if there is nothing. The number returned is to be used with
    /// [`ReceiveBatch::iter`].
    pub(crate) fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.receive_up_to(socket, MESSAGES)
    }

    /// Receives at most `messages` of what is there.
    pub(crate) fn receive_up_to(
        &mut self,
        socket: &impl AsFd,
        messages: usize,
    ) -> io::Result<usize> {
        let buffers = self.data.chunks_exact_mut(MESSAGE_BYTES);
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
        // SAFETY: every header points to its own buffer, address and control space, set just above
        // from vectors that are not touched during the call, with their true lengths.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr(),
                messages.min(MESSAGES) as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if received >= 0 {
            return Ok(received as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // The socket itself is wrong: no later call would do better.
            Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EINVAL) => Err(error),
            // Nothing there, a signal, an ICMP error of an earlier send, or memory short for a moment.
            _ => Ok(0),
        }
    }

    /// Whether a call that returned `received` may have left more behind.
    pub(crate) fn was_full(received: usize) -> bool {
        received == MESSAGES
    }

    /// The first `received` messages; truncated ones and such of foreign families are left out.
    pub(crate) fn iter(&mut self, received: usize) -> impl Iterator<Item = Received<'_>> {
        let buffers = self.data.chunks_exact_mut(MESSAGE_BYTES);
        let facts = self.headers.iter().zip(&self.addresses).zip(&self.controls);
        buffers
            .zip(facts)
            .take(received)
            .filter_map(|(buffer, ((header, address), control))| {
                if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                    return None;
                }
                let data = buffer.get_mut(..header.msg_len as usize)?;
                let (local, segment) = control.decode(header.msg_hdr.msg_controllen);
                let stride = segment.map_or(data.len(), usize::from).max(1);
                Some(Received {
                    remote: address::read(address)?,
                    local,
                    data,
                    stride,
                })
            })
    }
}
