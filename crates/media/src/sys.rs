//! UDP as workers use it: batches of [`portunus_udp`] with the sizes that are right for them.

#[cfg(feature = "testing")]
pub(crate) use portunus_udp::Diverted;
pub(crate) use portunus_udp::{
    Destination, ReceiveBatch, SendBatch, SendCounters, Socket as MediaSocket, enable_gro,
    keep_errors, pin_to_core, run_first, take_errors,
};

/// Messages that a worker receives by a call.
pub(crate) const RECEIVED_MESSAGES: usize = 32;
/// What waits to be sent is flushed when it is so much; small enough to stay in a core's second-level
/// cache.
pub(crate) const ARENA_BYTES: usize = 192 << 10;
/// Messages that a worker sends by a call.
const SENT_MESSAGES: usize = 256;

/// What a worker sends with; `gso`: the kernel knows UDP_SEGMENT.
pub(crate) fn send_batch(gso: bool) -> SendBatch {
    SendBatch::new(ARENA_BYTES, SENT_MESSAGES, gso)
}

/// What the forwarders of a worker send with.
pub(crate) fn forward_batch(gso: bool) -> SendBatch {
    SendBatch::new(ARENA_BYTES / 4, SENT_MESSAGES / 4, gso)
}

/// What a worker receives with.
pub(crate) fn receive_batch() -> ReceiveBatch {
    ReceiveBatch::new(RECEIVED_MESSAGES, ReceiveBatch::WHOLE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use std::net::SocketAddr;
    use std::time::{Duration, Instant};

    #[test]
    fn an_ingest_socket_gets_what_was_sent_at_once_one_by_one_and_in_order() {
        for (gso, gro) in [(false, false), (true, false), (false, true), (true, true)] {
            let a = MediaSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
            let bind = crate::IngestBind {
                interface: Some("lo".to_owned()),
                ..crate::IngestBind::new(0)
            };
            let b = crate::IngestSocket::bind(bind).unwrap();
            if gro {
                enable_gro(&b);
            }
            let mut out = send_batch(gso && a.probe_gso());
            for n in 0..100u8 {
                let size = if n % 10 == 9 { 300 } else { 1_200 };
                out.room(&a)[..size].fill(n);
                let destination = out.destination(b.local().ip(), b.local());
                out.commit(size, &destination);
            }
            out.flush(&a);
            let (mut batch, mut order) = (receive_batch(), Vec::new());
            let deadline = Instant::now() + Duration::from_secs(5);
            while order.len() < 100 && Instant::now() < deadline {
                let received = batch.receive(&b).unwrap();
                for message in batch.iter(received) {
                    order.extend(
                        message
                            .data
                            .chunks(message.stride)
                            .map(|datagram| datagram[0]),
                    );
                }
                std::thread::yield_now();
            }
            assert_eq!(order, (0..100).collect::<Vec<u8>>(), "gso {gso}, gro {gro}");
        }
    }
}
