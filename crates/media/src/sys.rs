//! Batches of UDP datagrams ([`portunus_udp`]) with the sizes that suit workers.

#[cfg(feature = "testing")]
pub(crate) use portunus_udp::Diverted;
pub(crate) use portunus_udp::{
    Destination, ReceiveBatch, SendBatch, SendCounters, Socket as MediaSocket, enable_gro,
    keep_errors, pin_to_core, run_first, take_errors,
};

/// The number of messages that a worker receives per call.
pub(crate) const RECEIVED_MESSAGES: usize = 32;
/// The number of queued bytes at which a batch is flushed, small enough for a core's second-level
/// cache.
pub(crate) const ARENA_BYTES: usize = 192 << 10;
/// The number of messages that a worker sends per call.
const SENT_MESSAGES: usize = 256;

/// Returns a batch for sending. `gso` says that the kernel has UDP_SEGMENT.
pub(crate) fn send_batch(gso: bool) -> SendBatch {
    SendBatch::new(ARENA_BYTES, SENT_MESSAGES, gso)
}

/// Returns a batch for the forwarders of a worker.
pub(crate) fn forward_batch(gso: bool) -> SendBatch {
    SendBatch::new(ARENA_BYTES / 4, SENT_MESSAGES / 4, gso)
}

/// Returns a batch for receiving.
pub(crate) fn receive_batch() -> ReceiveBatch {
    ReceiveBatch::new(RECEIVED_MESSAGES, ReceiveBatch::WHOLE)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
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
