//! What a participant of an audio room receives: a packet each 20 ms, in order, on a steady clock.

use std::time::Duration;

use portunus_rtp::Header;

use super::check::{Findings, Order};
use super::id::PeerId;
use crate::source::Delayed;
use crate::traffic::AUDIO_PERIOD;

/// The earliest arrival is forgotten after this time, so that packets are not late forever after
/// the clock was set.
const MEMORY: Duration = Duration::from_secs(5);

/// The initial cycle of a stream, so that numbers before the first one are above 0.
const FIRST_CYCLE: u64 = 0x1_0000;

/// How a participant processes sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hearing {
    /// The RTP clock rate in hertz.
    pub clock_rate: u32,
    /// Packets are kept for listening.
    pub keeps: bool,
}

/// What participants of audio rooms received in a time, beside the general counts.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub struct Heard {
    /// Packets whose time stamp does not match their number.
    pub jumps: u64,
    /// Packets that were not sent because of silence (DTX).
    pub omitted: u64,
    /// The kept packets.
    pub kept: Vec<Kept>,
    /// The marks that were sent, with their times.
    pub said: Vec<Said>,
}

/// A kept packet.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The receiver.
    pub peer: PeerId,
    /// The packet's number in the stream.
    pub number: u64,
    /// The RTP timestamp.
    pub timestamp: u32,
    /// The time of arrival, since 1970.
    pub at: Duration,
    /// The payload.
    pub payload: Vec<u8>,
}

/// The start of a chirp or sentence that others listen for.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    /// The talker.
    pub peer: PeerId,
    /// The time since 1970 when a direct receiver could hear it.
    pub at: Duration,
}

impl Heard {
    /// Adds what others received.
    pub(crate) fn merge(&mut self, other: Self) {
        self.jumps += other.jumps;
        self.omitted += other.omitted;
        self.kept.extend(other.kept);
        self.said.extend(other.said);
    }
}

/// Follows what one participant receives.
#[derive(Debug)]
pub(super) struct Ear {
    hearing: Hearing,
    stream: Option<Stream>,
    /// The arrivals of the first packet and the last one.
    since: Option<Duration>,
    last: Option<Duration>,
    /// Packets that were not sent because of silence.
    omitted: u64,
    /// Packets reported as due.
    told: u64,
}

#[derive(Debug)]
struct Stream {
    ssrc: u32,
    order: Order,
    newest: u64,
    timestamp: u32,
    /// The length of all packets so far, in ticks.
    length: i64,
    /// How much later than its place in the stream the earliest packet arrived, now and a while
    /// ago, in seconds.
    earliest: [f64; 2],
    forget_at: Duration,
}

impl Ear {
    pub(super) fn new(hearing: Hearing) -> Self {
        Self {
            hearing,
            stream: None,
            since: None,
            last: None,
            omitted: 0,
            told: 0,
        }
    }

    /// Returns the time from the last packet to `now`.
    pub(super) fn silent(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.last?))
    }

    /// Returns whether packets are kept.
    pub(super) fn keeps(&self) -> bool {
        self.hearing.keeps
    }

    /// Takes an RTP packet, which may be encrypted. Returns its number, if it is one.
    pub(super) fn take(
        &mut self,
        packet: &[u8],
        at: Duration,
        findings: &mut Findings,
        heard: &mut Heard,
    ) -> Option<u64> {
        let header = Header::parse_encrypted(packet).ok()?;
        findings.packets += 1;
        self.since.get_or_insert(at);
        self.last = self.last.max(Some(at));
        let ticks = i64::from((self.hearing.clock_rate / 50).max(1));
        let stream = match &mut self.stream {
            Some(stream) if stream.ssrc == header.ssrc.0 => stream,
            other => other.insert(Stream::new(
                header.ssrc.0,
                header.sequence,
                header.timestamp,
                at,
            )),
        };
        let ahead = i64::from(
            header
                .sequence
                .wrapping_sub(stream.newest as u16)
                .cast_signed(),
        );
        let number = stream.newest.saturating_add_signed(ahead);
        let passed = i64::from(
            header
                .timestamp
                .wrapping_sub(stream.timestamp)
                .cast_signed(),
        );
        if ahead != 0 {
            stream.order.take(number, findings);
        }
        let periods = passed / ticks;
        if passed % ticks != 0 || (ahead > 0 && periods < ahead) || (ahead < 0 && periods > ahead) {
            heard.jumps += 1;
        }
        if ahead > 0 {
            let omitted = u64::try_from(periods - ahead).unwrap_or(0);
            heard.omitted += omitted;
            self.omitted += omitted;
            stream.newest = number;
            stream.timestamp = header.timestamp;
            stream.length += passed;
            let late_s = stream.late_s(at, self.hearing.clock_rate);
            findings.delays.push(Delayed {
                sent: at.saturating_sub(Duration::from_secs_f64(late_s)),
                us: late_s * 1e6,
            });
        }
        Some(number)
    }

    /// Returns the packets expected since the last call: one each 20 ms, except those omitted.
    pub(super) fn due(&mut self, now: Duration) -> u64 {
        let Some(since) = self.since else {
            return 0;
        };
        let periods = now.saturating_sub(since).as_nanos() / AUDIO_PERIOD.as_nanos().max(1);
        let all = u64::try_from(periods).unwrap_or(0) + 1;
        let due = all.saturating_sub(self.omitted).saturating_sub(self.told);
        self.told += due;
        due
    }
}

impl Stream {
    fn new(ssrc: u32, sequence: u16, timestamp: u32, at: Duration) -> Self {
        let newest = FIRST_CYCLE + u64::from(sequence);
        Self {
            ssrc,
            order: Order::starting(newest),
            newest,
            timestamp,
            length: 0,
            earliest: [at.as_secs_f64(); 2],
            forget_at: at + MEMORY,
        }
    }

    /// Returns how much later than the earliest packet the newest one arrived, relative to its
    /// place in the stream.
    fn late_s(&mut self, at: Duration, clock_rate: u32) -> f64 {
        let place = self.length as f64 / f64::from(clock_rate.max(1));
        let start = at.as_secs_f64() - place;
        let [now, before] = self.earliest;
        if at >= self.forget_at {
            self.forget_at = at + MEMORY;
            self.earliest = [start, now];
        } else {
            self.earliest = [now.min(start), before];
        }
        let [now, before] = self.earliest;
        (start - now.min(before)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use portunus_rtp::header::{Fields, write_header};
    use portunus_rtp::{Pt, Ssrc};

    struct Listener {
        ear: Ear,
        findings: Findings,
        heard: Heard,
    }

    impl Listener {
        fn new() -> Self {
            let hearing = Hearing {
                clock_rate: 48_000,
                keeps: false,
            };
            Self {
                ear: Ear::new(hearing),
                findings: Findings::default(),
                heard: Heard::default(),
            }
        }

        fn take(&mut self, sequence: u16, timestamp: u32, at_ms: f64) {
            let mut packet = [0; 40];
            let fields = Fields {
                marker: false,
                padding: false,
                pt: Pt(111),
                sequence,
                timestamp,
                ssrc: Ssrc(5),
            };
            write_header(&mut packet, &fields, std::iter::empty::<(u8, &[u8])>()).unwrap();
            let at = Duration::from_secs_f64(1_000.0 + at_ms / 1e3);
            self.ear
                .take(&packet, at, &mut self.findings, &mut self.heard);
        }

        fn late_ms(&self) -> Vec<i64> {
            let delays = self.findings.delays.iter();
            delays
                .map(|delayed| (delayed.us / 1e3).round() as i64)
                .collect()
        }
    }

    #[test]
    fn lateness_is_told_from_the_earliest_packet_over_the_wrap() {
        let mut listener = Listener::new();
        let mut timestamp = u32::MAX - 1_000;
        for (n, at_ms) in [3.0, 20.0, 47.0, 60.0, 80.0].into_iter().enumerate() {
            listener.take(65_534u16.wrapping_add(n as u16), timestamp, at_ms);
            timestamp = timestamp.wrapping_add(960);
        }
        // The first packet defines the place of the others.
        assert_eq!(listener.late_ms(), [0, 7, 0, 0]);
        assert_eq!((listener.heard.jumps, listener.findings.lost), (0, 0));
        let now = Duration::from_secs_f64(1_000.09);
        assert_eq!((listener.ear.due(now), listener.ear.due(now)), (5, 0));
    }

    #[test]
    fn what_is_lost_left_out_or_out_of_step_is_told_apart() {
        let mut listener = Listener::new();
        listener.take(1, 960, 0.0);
        listener.take(3, 2_880, 40.0);
        assert_eq!((listener.findings.lost, listener.heard.omitted), (1, 0));
        listener.take(4, 4_800, 80.0);
        assert_eq!((listener.findings.lost, listener.heard.omitted), (1, 1));
        assert_eq!(listener.heard.jumps, 0);
        listener.take(2, 1_920, 90.0);
        listener.take(2, 1_920, 90.0);
        assert_eq!((listener.findings.lost, listener.findings.repeated), (0, 1));
        assert_eq!(listener.heard.jumps, 0);
        listener.take(5, 4_900, 100.0);
        listener.take(6, 4_900, 120.0);
        assert_eq!(listener.heard.jumps, 2);
    }
}
