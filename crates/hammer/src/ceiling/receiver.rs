//! Counts what arrives.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portunus_udp::ReceiveBatch;

/// Messages a call.
const MESSAGES: usize = 256;
/// Nothing more is waited for after so long without a datagram.
const QUIET: Duration = Duration::from_millis(100);

/// What arrived so far.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) packets: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Nothing comes any more: what is there is read, then the receiver ends.
    pub(super) ending: AtomicBool,
}

/// Reads `sockets` in turn, without ever sleeping: a sleeping receiver would be woken on the sender's cost.
pub(super) fn count(sockets: &[UdpSocket], arrived: &Arrived) -> io::Result<()> {
    // No payload is looked at, so none is copied.
    let mut batch = ReceiveBatch::cutting(MESSAGES, 1);
    let mut last = Instant::now();
    loop {
        let mut any = false;
        for socket in sockets {
            let received = batch.receive(socket)?;
            if received == 0 {
                continue;
            }
            any = true;
            let (mut packets, mut bytes) = (0, 0);
            for message in batch.iter(received) {
                packets += message.count() as u64;
                bytes += message.len as u64;
            }
            arrived.packets.fetch_add(packets, Ordering::Relaxed);
            arrived.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        if any {
            last = Instant::now();
        } else if arrived.ending.load(Ordering::Relaxed) && last.elapsed() > QUIET {
            return Ok(());
        }
    }
}
