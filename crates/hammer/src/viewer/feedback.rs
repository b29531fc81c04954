//! Transport-wide feedback on the arrival of each packet, as browsers send it, and the optional
//! link of limited rate in front of the viewer.

use std::time::Duration;

use portunus_rtp::extension::TransportCc;
use portunus_rtp::rtcp::{CompoundWriter, TwccWriter};
use portunus_rtp::{Header, SeqNo, Ssrc};

/// The interval of feedback: that of libwebrtc above 220 kbit/s.
pub(super) const FEEDBACKS: Duration = Duration::from_millis(50);

/// The capacity of a link. A packet that would wait for longer is lost.
const LONGEST_WAIT: Duration = Duration::from_millis(300);

/// Arrivals kept until the next feedback.
const MAX_ARRIVALS: usize = 4_096;

/// The arrivals to report.
#[derive(Debug)]
pub(super) struct Feedback {
    /// The header extension with the number of each packet.
    extension: u8,
    link: Option<Link>,
    /// Extended numbers, with the time of arrival since 1970.
    arrivals: Vec<(u64, Duration)>,
    /// The same in the form of the wire.
    wire: Vec<(u16, Duration)>,
    highest: Option<u64>,
    /// The first number of the next feedback.
    base: Option<u64>,
    media: Ssrc,
    count: u8,
}

/// A link of limited rate with a queue in front of it.
#[derive(Debug)]
struct Link {
    bps: u64,
    /// When the queue will be empty.
    free: Duration,
}

impl Feedback {
    /// Creates feedback for packets numbered by `extension`, optionally behind a link of
    /// `limit_bps`.
    pub(super) fn new(extension: u8, limit_bps: Option<u64>) -> Self {
        let link = limit_bps.map(|bps| Link {
            bps: bps.max(1),
            free: Duration::ZERO,
        });
        Self {
            extension,
            link,
            arrivals: Vec::new(),
            wire: Vec::new(),
            highest: None,
            base: None,
            media: Ssrc(0),
            count: 0,
        }
    }

    /// Takes a packet, which may be encrypted, that reached the link at `at`. Returns whether it
    /// passes. If not, the link's queue was full.
    pub(super) fn take(&mut self, packet: &[u8], at: Duration) -> bool {
        let at = match &mut self.link {
            None => Some(at),
            Some(link) => link.pass(packet.len(), at),
        };
        let Some(at) = at else {
            return false;
        };
        let Ok(header) = Header::parse_encrypted(packet) else {
            return true;
        };
        let number = header
            .extension(packet, self.extension)
            .and_then(TransportCc::parse);
        if let Some(TransportCc(wire)) = number {
            let number = self
                .highest
                .map_or(u64::from(wire), |highest| SeqNo(highest).nearest(wire).0);
            self.highest = self.highest.max(Some(number));
            self.media = header.ssrc;
            // A packet reported as lost before it arrived remains lost.
            if self.arrivals.len() < MAX_ARRIVALS && self.base.is_none_or(|base| number >= base) {
                self.arrivals.push((number, at));
            }
        }
        true
    }

    /// Writes the feedback due at `now`. Returns whether there was any.
    pub(super) fn write(
        &mut self,
        now: Duration,
        sender: Ssrc,
        out: &mut CompoundWriter<'_>,
    ) -> bool {
        // Packets in the link's queue are last, since links keep the order.
        let through = self
            .arrivals
            .iter()
            .take_while(|(_, at)| *at <= now)
            .count();
        let Some(arrived) = self
            .arrivals
            .get_mut(..through)
            .filter(|all| !all.is_empty())
        else {
            return false;
        };
        arrived.sort_unstable_by_key(|(number, _)| *number);
        let first = arrived.first().map_or(0, |(number, _)| *number);
        let base = self.base.unwrap_or(first);
        self.wire.clear();
        let wire = arrived.iter().map(|(number, at)| (*number as u16, *at));
        self.wire.extend(wire);
        let names = (sender, self.media);
        let message = TwccWriter::new(names, self.count, base as u16, &self.wire, out.room());
        let told = match message {
            Some((message, rest)) if out.push(&message).is_ok() => self.wire.len() - rest.len(),
            // None of it can be reported, now or later.
            _ => self.wire.len(),
        };
        let last = told.checked_sub(1).and_then(|last| arrived.get(last));
        self.base = last.map(|(number, _)| number + 1).or(self.base);
        self.arrivals.drain(..told);
        self.count = self.count.wrapping_add(1);
        true
    }
}

impl Link {
    /// Returns when a packet that came at `at` has passed, or `None` if there was no room for it.
    fn pass(&mut self, bytes: usize, at: Duration) -> Option<Duration> {
        let start = self.free.max(at);
        if start - at > LONGEST_WAIT {
            return None;
        }
        let takes = bytes as u128 * 8 * 1_000_000_000 / u128::from(self.bps);
        self.free = start + Duration::from_nanos(u64::try_from(takes).unwrap_or(u64::MAX));
        Some(self.free)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use portunus_rtp::Pt;
    use portunus_rtp::header::{Fields, write_header};
    use portunus_rtp::rtcp::{Compound, Packet};

    use super::*;

    /// Creates a packet of 1,000 bytes.
    fn packet(number: u16) -> Vec<u8> {
        let mut packet = vec![0; 1_000];
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(96),
            sequence: number,
            timestamp: 0,
            ssrc: Ssrc(7),
        };
        let number = TransportCc(number).to_bytes();
        write_header(&mut packet, &fields, [(3, &number[..])]).unwrap();
        packet
    }

    /// Returns the numbers, and whether they arrived.
    fn feedback_at(feedback: &mut Feedback, now: Duration) -> Vec<(u16, bool)> {
        let mut buffer = [0; 1_200];
        let mut out = CompoundWriter::new(&mut buffer);
        if !feedback.write(now, Ssrc(1), &mut out) {
            return Vec::new();
        }
        let len = out.len();
        let written = buffer.get(..len).unwrap();
        let twcc = Compound::new(written).find_map(|packet| match packet {
            Ok(Packet::Twcc(twcc)) => Some(twcc),
            _ => None,
        });
        let statuses = twcc.unwrap();
        statuses
            .statuses()
            .map(|status| (status.sequence, status.arrival.is_some()))
            .collect()
    }

    #[test]
    fn each_packet_is_told_once_and_gaps_as_losses() {
        let mut feedback = Feedback::new(3, None);
        let ms = |n: u64| Duration::from_millis(1_000_000 + n);
        for (n, number) in [65_534u16, 65_535, 1].into_iter().enumerate() {
            assert!(feedback.take(&packet(number), ms(n as u64)));
        }
        let all = [(65_534, true), (65_535, true), (0, false), (1, true)];
        assert_eq!(feedback_at(&mut feedback, ms(10)), all);
        assert_eq!(feedback_at(&mut feedback, ms(20)), []);
        feedback.take(&packet(4), ms(30));
        assert_eq!(
            feedback_at(&mut feedback, ms(40)),
            [(2, false), (3, false), (4, true)]
        );
    }

    #[test]
    fn a_link_delays_and_then_loses() {
        let ms = |n: u64| Duration::from_millis(1_000_000 + n);
        // 1,000 bytes take 80 ms.
        let mut feedback = Feedback::new(3, Some(100_000));
        let through = (0..8).map(|number| feedback.take(&packet(number), ms(0)));
        assert_eq!(through.filter(|through| *through).count(), 4);
        assert_eq!(feedback_at(&mut feedback, ms(79)), []);
        assert_eq!(feedback_at(&mut feedback, ms(161)), [(0, true), (1, true)]);
        assert!(feedback.take(&packet(8), ms(161)));
        let rest = feedback_at(&mut feedback, ms(500));
        assert_eq!(rest.first(), Some(&(2, true)));
        assert_eq!(rest.last(), Some(&(8, true)));
        assert_eq!(rest.iter().filter(|(_, came)| !came).count(), 4);
    }
}
