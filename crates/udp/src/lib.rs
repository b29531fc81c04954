//! UDP in batches on Linux: many datagrams with each system call, and many packets with each
//! datagram.
//!
//! [`SendBatch`] joins datagrams of one size to one address (UDP_SEGMENT) and sends all by
//! `sendmmsg`; [`ReceiveBatch`] receives by `recvmmsg` what the kernel has joined (UDP_GRO). Their
//! buffers are laid out once and reused for every call.
//!
//! The media plane and the load generator use it. It contains their `unsafe` code behind a safe
//! interface: buffers are owned and addresses are checked here. If the kernel refuses UDP_SEGMENT
//! later, it is disabled here and logged.
//!
//! ```
//! use std::net::SocketAddr;
//! use portunus_udp::{ReceiveBatch, SendBatch, Socket, enable_gro};
//!
//! # fn main() -> std::io::Result<()> {
//! let (a, b) = (Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?,
//!               Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?);
//! enable_gro(&b);
//! let mut out = SendBatch::new(64 << 10, 32, a.probe_gso());
//! for _ in 0..3 {
//!     let destination = out.destination(None, b.local());
//!     out.room(&a)[..5].copy_from_slice(b"hello");
//!     out.commit(5, &destination);
//! }
//! out.flush(&a);
//!
//! let mut batch = ReceiveBatch::new(8, ReceiveBatch::WHOLE);
//! let mut datagrams = 0;
//! while datagrams < 3 {
//!     let received = batch.receive(&b)?;
//!     for message in batch.iter(received) {
//!         datagrams += message.data.chunks(message.stride).filter(|d| *d == b"hello").count();
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![allow(unsafe_code, reason = "system calls")]

mod address;
mod control;
mod receiver;
mod sender;
mod socket;
mod thread;

pub use receiver::{ReceiveBatch, Received};
#[cfg(feature = "testing")]
pub use sender::Diverted;
pub use sender::{DATAGRAM_BYTES, Destination, SendBatch, SendCounters};
pub use socket::{
    Exit, Outlet, Socket, ask_receive_buffer, enable_gro, enable_timestamps, keep_errors,
    take_errors,
};
pub use thread::{pin_to_core, run_first};
