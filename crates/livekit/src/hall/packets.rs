//! Reliable data messages of the last seconds, for clients that connect meanwhile.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::nonces::Nonce;

/// How long messages are kept.
const KEPT: Duration = Duration::from_secs(10);

/// The most messages that are kept, and their bytes.
const MAX_PACKETS: usize = 2_048;
const MAX_BYTES: usize = 4 << 20;

/// A message that was forwarded.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    /// When it came.
    pub(crate) at: Instant,
    /// The session that sent it. Empty for the server itself.
    pub(crate) from: String,
    /// Its number among those of the sender. 0 without a number.
    pub(crate) sequence: u32,
    /// The participants that it is for. Empty means all.
    pub(crate) to: Vec<String>,
    /// Its nonce, if it has one.
    pub(crate) nonce: Option<Nonce>,
    /// The message.
    pub(crate) bytes: Arc<[u8]>,
}

impl Packet {
    /// Returns whether it is for a participant.
    pub(crate) fn is_for(&self, identity: &str, sid: &str) -> bool {
        let named = || self.to.iter().any(|to| to == identity);
        self.from != sid && (self.to.is_empty() || named())
    }
}

/// The messages of the last seconds, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    kept: VecDeque<Packet>,
    bytes: usize,
}

impl Packets {
    /// Keeps a message.
    pub(crate) fn keep(&mut self, packet: Packet) {
        let now = packet.at;
        self.bytes += packet.bytes.len();
        self.kept.push_back(packet);
        while let Some(oldest) = self.kept.front() {
            let is_over = self.kept.len() > MAX_PACKETS || self.bytes > MAX_BYTES;
            if !is_over && now.duration_since(oldest.at) <= KEPT {
                break;
            }
            self.bytes = self.bytes.saturating_sub(oldest.bytes.len());
            self.kept.pop_front();
        }
    }

    /// Returns the messages since `start`.
    pub(crate) fn since(&self, start: Instant) -> impl Iterator<Item = &Packet> {
        self.kept.iter().filter(move |packet| packet.at >= start)
    }

    /// Returns the messages after those that a client has got: the last number by the session of
    /// each sender.
    pub(crate) fn after<'a>(
        &'a self,
        got: &'a HashMap<String, u32>,
    ) -> impl Iterator<Item = &'a Packet> {
        let is_new = |packet: &&Packet| {
            let last = got.get(&packet.from);
            last.is_some_and(|last| packet.sequence > *last)
        };
        self.kept.iter().filter(is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from: &str, sequence: u32, at: Instant) -> Packet {
        Packet {
            at,
            from: from.to_owned(),
            sequence,
            to: Vec::new(),
            nonce: None,
            bytes: Arc::from([0_u8; 1_000].as_slice()),
        }
    }

    #[test]
    fn messages_are_kept_for_ten_seconds_and_within_bounds() {
        let (mut packets, start) = (Packets::default(), Instant::now());
        packets.keep(packet("a", 1, start));
        packets.keep(packet("a", 2, start + KEPT));
        assert_eq!(packets.since(start).count(), 2);
        packets.keep(packet("a", 3, start + KEPT + Duration::from_millis(1)));
        assert_eq!(packets.since(start).count(), 2);
        for sequence in 0..2 * MAX_PACKETS {
            let sequence = u32::try_from(sequence).unwrap_or_default();
            packets.keep(packet("b", sequence, start + KEPT));
        }
        assert_eq!(packets.kept.len(), MAX_PACKETS);
        assert_eq!(packets.bytes, MAX_PACKETS * 1_000);
    }

    #[test]
    fn who_resumes_gets_what_it_has_missed() {
        let (mut packets, start) = (Packets::default(), Instant::now());
        for (from, sequence) in [("a", 1), ("b", 1), ("a", 2), ("a", 3)] {
            packets.keep(packet(from, sequence, start));
        }
        let got = HashMap::from([("a".to_owned(), 1)]);
        let missed: Vec<u32> = packets.after(&got).map(|it| it.sequence).collect();
        assert_eq!(missed, [2, 3]);
    }

    #[test]
    fn nobody_gets_its_own_messages_or_those_for_others() {
        let mut packet = packet("PA_1", 1, Instant::now());
        assert!(packet.is_for("al", "PA_2"));
        assert!(!packet.is_for("al", "PA_1"));
        packet.to = vec!["bo".to_owned()];
        assert!(!packet.is_for("al", "PA_2"));
        assert!(packet.is_for("bo", "PA_2"));
    }
}
