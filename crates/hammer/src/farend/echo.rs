//! Echo of RTP.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use portunus_rtp::header::set_ssrc;
use portunus_rtp::{Header, Ssrc};
use portunus_udp::{DATAGRAM_BYTES, ReceiveBatch, SendBatch, Socket};

use crate::machine::wall_clock;
use crate::record::{Delays, Far};
use crate::source::{Delayed, Stamp};

/// The most messages per call of the kernel.
const MESSAGES: usize = 64;
/// The most calls per pass, after which output is sent.
const CALLS: usize = 64;
/// One delay in this many packets is kept.
const DELAYS_OF: u16 = 8;
/// The most streams whose numbers are tracked.
const MAX_STREAMS: usize = 1 << 17;

/// The received packets since the last window.
#[derive(Debug, Default)]
pub(crate) struct FarWindow {
    /// RTP packets.
    pub(crate) packets: u64,
    /// Missing numbers that have not arrived late.
    pub(crate) missing: i64,
    /// Packets without a stamp, whose payload was changed on the way.
    pub(crate) strange: u64,
    /// The delays of some packets from the participant to here.
    pub(crate) delays: Vec<Delayed>,
}

/// Sends packets back, and counts them.
pub(super) struct Echo {
    batch: ReceiveBatch,
    out: SendBatch,
    streams: Streams,
    passed: FarWindow,
}

impl Default for Echo {
    fn default() -> Self {
        Self {
            batch: ReceiveBatch::new(MESSAGES, DATAGRAM_BYTES),
            out: SendBatch::new(MESSAGES * DATAGRAM_BYTES, MESSAGES, false),
            streams: Streams::default(),
            passed: FarWindow::default(),
        }
    }
}

impl Echo {
    /// Takes all waiting packets.
    pub(super) fn pass(&mut self, rtp: &Socket, rtcp: &Socket, window: &Mutex<FarWindow>) {
        for _ in 0..CALLS {
            let received = self.batch.receive(rtp).unwrap_or(0);
            let now = wall_clock();
            for arrival in self.batch.iter(received) {
                let at = arrival.at.unwrap_or(now);
                let Some(length) =
                    self.streams
                        .take(arrival.remote, arrival.data, at, &mut self.passed)
                else {
                    continue;
                };
                let destination = self.out.destination(None, arrival.remote);
                let room = self.out.room(rtp).get_mut(..length);
                if let Some((room, packet)) = room.zip(arrival.data.get(..length)) {
                    room.copy_from_slice(packet);
                    self.out.commit(length, &destination);
                }
            }
            if !self.batch.was_full(received) {
                break;
            }
        }
        self.out.flush(rtp);
        // Reports are read so that senders get no ICMP errors.
        while self.batch.receive(rtcp).unwrap_or(0) == MESSAGES {}
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        window.merge(std::mem::take(&mut self.passed));
    }
}

/// The newest number of each stream, by sender and SSRC.
#[derive(Debug, Default)]
struct Streams(HashMap<(SocketAddr, u32), u16>);

impl Streams {
    /// Turns a packet that arrived at `at` into its echo, with another SSRC and a new stamp.
    /// Returns its length, or `None` if it is not RTP.
    fn take(
        &mut self,
        remote: SocketAddr,
        packet: &mut [u8],
        at: Duration,
        window: &mut FarWindow,
    ) -> Option<usize> {
        let header = Header::parse(packet).ok()?;
        window.packets += 1;
        let key = (remote, header.ssrc.0);
        let has_room = self.0.len() < MAX_STREAMS;
        match self.0.get_mut(&key) {
            Some(newest) => {
                let ahead = header.sequence.wrapping_sub(*newest).cast_signed();
                if ahead > 0 {
                    window.missing += i64::from(ahead) - 1;
                    *newest = header.sequence;
                } else if ahead < 0 {
                    // It counted as missing when a later one arrived.
                    window.missing -= 1;
                }
            }
            None if has_room => {
                self.0.insert(key, header.sequence);
            }
            None => {}
        }
        match Stamp::read(header.payload(packet)) {
            Some(stamp) => {
                if header.sequence.is_multiple_of(DELAYS_OF) {
                    let ns = at.as_nanos() as i128 - stamp.sent.as_nanos() as i128;
                    window.delays.push(Delayed {
                        sent: stamp.sent,
                        us: ns as f64 / 1e3,
                    });
                }
                let anew = Stamp {
                    sent: wall_clock(),
                    ..stamp
                };
                anew.write(header.payload_mut(packet));
            }
            None => window.strange += 1,
        }
        // So that no sender takes it for its own packet.
        set_ssrc(packet, Ssrc(!header.ssrc.0));
        Some(packet.len())
    }
}

impl FarWindow {
    /// Adds a later window.
    pub(crate) fn merge(&mut self, other: Self) {
        self.packets += other.packets;
        self.missing += other.missing;
        self.strange += other.strange;
        self.delays.extend(other.delays);
    }

    /// Returns the record of the window, and starts a new one.
    pub(crate) fn take_figures(&mut self) -> Far {
        let missing = u64::try_from(self.missing).unwrap_or(0);
        let mut delays: Vec<f64> = self.delays.iter().map(|delayed| delayed.us).collect();
        Far {
            received_packets: self.packets,
            delivered_share: self.packets as f64 / (self.packets + missing).max(1) as f64,
            delay: Delays::of(&mut delays),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use portunus_rtp::Pt;
    use portunus_rtp::header::{Fields, write_header};

    fn packet(sequence: u16) -> Vec<u8> {
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(0),
            sequence,
            timestamp: 7,
            ssrc: Ssrc(5),
        };
        let mut packet = vec![0; 172];
        write_header(&mut packet, &fields, std::iter::empty::<(u8, &[u8])>()).unwrap();
        let stamp = Stamp {
            stream: 1,
            number: sequence.into(),
            sent: Duration::from_secs(1_000),
        };
        assert!(stamp.write(&mut packet));
        packet
    }

    #[test]
    fn what_goes_back_has_a_stamp_of_now_and_another_ssrc() {
        let remote = "192.0.2.1:4000".parse().unwrap();
        let (mut streams, mut window) = (Streams::default(), FarWindow::default());
        let at = Duration::from_secs_f64(1_000.002);
        let mut back = packet(8);
        let length = streams.take(remote, &mut back, at, &mut window);
        assert_eq!(length, Some(172));
        let header = Header::parse(&back).unwrap();
        assert_eq!((header.ssrc, header.sequence), (Ssrc(!5), 8));
        let stamp = Stamp::read(&back).unwrap();
        assert!(stamp.number == 8 && stamp.sent > Duration::from_secs(1_000));
        let delay = window.delays.first().unwrap();
        assert!((delay.us - 2_000.0).abs() < 1.0, "{delay:?}");
        assert_eq!(streams.take(remote, &mut [0; 12], at, &mut window), None);
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_late() {
        let remote = "192.0.2.1:4000".parse().unwrap();
        let (mut streams, mut window) = (Streams::default(), FarWindow::default());
        for (sequence, missing) in [(65_534, 0), (0, 1), (65_535, 0), (1, 0), (4, 2)] {
            streams.take(remote, &mut packet(sequence), Duration::ZERO, &mut window);
            assert_eq!(window.missing, missing, "{sequence}");
        }
        assert_eq!((window.packets, window.strange), (5, 0));
        assert!((window.take_figures().delivered_share - 5.0 / 7.0).abs() < 1e-9);
    }
}
