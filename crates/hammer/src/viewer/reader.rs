//! How viewers' sockets are read: the same for participants of a server and for the addresses that a ceiling sends to.

use std::time::Duration;

use portunus_udp::{ReceiveBatch, Received};

use super::way::Shared;

/// A pass over the sockets is not started sooner than this after the last one. Between passes the
/// thread sleeps, so that the server's sends wake nobody, and packets are read in batches. Times of
/// arrival are the kernel's and do not suffer.
pub(super) const PASS: Duration = Duration::from_micros(500);

/// Sockets a pass.
pub(super) const EVENTS: usize = 8_192;

/// Messages a call: a viewer's socket seldom holds more than the packets of one frame, which the
/// kernel hands over as one message.
const MESSAGES: usize = 4;

/// Messages a call from a socket that many share.
const SHARED_MESSAGES: usize = 64;

/// Calls a pass at such a socket, so that timers and commands have their turn.
const SHARED_CALLS: usize = 64;

/// What is read of a message for those who only count: checks and reports are no longer. To read on would bring
/// all that the server's core has written into this one's cache, and make it slow to write there again: a network
/// does not do that to a server.
const HEAD_BYTES: usize = 512;

/// The same while somebody is joining: the longest datagram of a handshake.
const JOINING_BYTES: usize = 1_500;

/// How much is read of what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The beginnings of messages, for those who only count.
    Heads,
    /// The same while somebody joins.
    Joining,
    /// All of it, for those who check.
    Whole,
}

/// What sockets are read with.
pub(super) struct Reader {
    heads: ReceiveBatch,
    joining: ReceiveBatch,
    whole: ReceiveBatch,
}

impl Extent {
    /// For those who only count.
    pub(super) fn heads(joining: bool) -> Self {
        if joining { Self::Joining } else { Self::Heads }
    }
}

impl Reader {
    /// For sockets that many share, or for such of one each.
    pub(super) fn new(shared: bool) -> Self {
        let messages = if shared { SHARED_MESSAGES } else { MESSAGES };
        Self {
            heads: ReceiveBatch::cutting(messages, HEAD_BYTES),
            joining: ReceiveBatch::cutting(messages, JOINING_BYTES),
            whole: ReceiveBatch::new(messages, ReceiveBatch::WHOLE),
        }
    }

    /// To read so much with.
    pub(super) fn batch(&mut self, extent: Extent) -> &mut ReceiveBatch {
        match extent {
            Extent::Heads => &mut self.heads,
            Extent::Joining => &mut self.joining,
            Extent::Whole => &mut self.whole,
        }
    }

    /// Takes what waits in the sockets that all share, with the key of whom it is for; says whether there was nothing.
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
