//! Reading of viewers' sockets: the same for participants of a server and for the addresses that a
//! ceiling sends to.

use std::time::Duration;

use portunus_udp::{ReceiveBatch, Received};

use super::way::Shared;

/// The least time between the starts of two passes over the sockets. Between passes the thread
/// sleeps, so that the server's sends wake nobody, and packets are read in batches. Times of
/// arrival come from the kernel and are not affected.
pub(super) const PASS: Duration = Duration::from_micros(500);

/// Sockets per pass.
pub(super) const EVENTS: usize = 8_192;

/// Messages per call. A viewer's socket seldom holds more than the packets of one frame, which the
/// kernel passes on as one message.
const MESSAGES: usize = 4;

/// Messages per call from a shared socket.
const SHARED_MESSAGES: usize = 64;

/// Calls per pass at a shared socket, so that timers and commands get their turn.
const SHARED_CALLS: usize = 64;

/// The bytes of a message read for participants that only count. Checks and reports are not longer.
/// Reading more would bring all that the server's core has written into this core's cache, and slow
/// down the next write, which a network does not do to a server.
const HEAD_BYTES: usize = 512;

/// The bytes read while a participant joins: the longest datagram of a handshake.
const JOINING_BYTES: usize = 1_500;

/// How much of each message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The starts of messages, for participants that only count.
    Heads,
    /// Like `Heads`, while a participant joins.
    Joining,
    /// Whole messages, for participants that check.
    Whole,
}

/// The buffers for reading sockets.
pub(super) struct Reader {
    heads: ReceiveBatch,
    joining: ReceiveBatch,
    whole: ReceiveBatch,
}

impl Extent {
    /// Returns the extent for participants that only count.
    pub(super) fn heads(joining: bool) -> Self {
        if joining { Self::Joining } else { Self::Heads }
    }
}

impl Reader {
    /// Creates buffers for shared sockets, or for one socket each.
    pub(super) fn new(shared: bool) -> Self {
        let messages = if shared { SHARED_MESSAGES } else { MESSAGES };
        Self {
            heads: ReceiveBatch::cutting(messages, HEAD_BYTES),
            joining: ReceiveBatch::cutting(messages, JOINING_BYTES),
            whole: ReceiveBatch::new(messages, ReceiveBatch::WHOLE),
        }
    }

    /// Returns the batch for this extent.
    pub(super) fn batch(&mut self, extent: Extent) -> &mut ReceiveBatch {
        match extent {
            Extent::Heads => &mut self.heads,
            Extent::Joining => &mut self.joining,
            Extent::Whole => &mut self.whole,
        }
    }

    /// Takes what waits in the shared sockets, with the key of its participant. Returns whether
    /// there was nothing.
    pub(super) fn shared(
        &mut self,
        shared: &Shared,
        joining: bool,
        mut take: impl FnMut(usize, Received<'_>),
    ) -> bool {
        let mut idle = true;
        let heads = (&shared.sockets.heads, Extent::heads(joining));
        let whole = (&shared.sockets.whole, Extent::Whole);
        for (socket, extent) in [heads, whole] {
            let batch = self.batch(extent);
            for _ in 0..SHARED_CALLS {
                let received = batch.receive(socket).unwrap_or(0);
                for arrival in batch.iter(received) {
                    idle = false;
                    if let Some(key) = arrival.local.and_then(|address| shared.key(address)) {
                        take(key, arrival);
                    }
                }
                if !batch.was_full(received) {
                    break;
                }
            }
        }
        idle
    }
}
