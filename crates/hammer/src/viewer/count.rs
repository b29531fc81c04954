//! Counting packets by their clear headers, without decrypting them.

use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::ReportBlock;
use smallvec::SmallVec;

/// Streams that are told apart: more SSRCs than any scenario has are counted without their numbers.
const MAX_STREAMS: usize = 256;

/// The cycle that a stream starts in: not 0, so that numbers before its first one are above 0.
const FIRST_CYCLE: u64 = 0x1_0000;

/// What one participant got.
#[derive(Debug, Default)]
pub(crate) struct Count {
    streams: SmallVec<[Stream; 2]>,
    /// Where the last packet was of: the next one often is, too.
    last: usize,
}

/// What was counted of one SSRC.
#[derive(Debug, Clone, Copy)]
struct Stream {
    ssrc: u32,
    first: u64,
    highest: u64,
    packets: u64,
    /// What the last report was about: packets that should have come, and those that did.
    told: (u64, u64),
}

impl Count {
    /// Takes an RTP packet that may be encrypted.
    #[inline]
    pub(crate) fn take(&mut self, packet: &[u8]) {
        let Some([_, _, s0, s1, _, _, _, _, i0, i1, i2, i3]) = packet.first_chunk() else {
            return;
        };
        let sequence = u16::from_be_bytes([*s0, *s1]);
        let ssrc = u32::from_be_bytes([*i0, *i1, *i2, *i3]);
        if let Some(stream) = self.streams.get_mut(self.last)
            && stream.ssrc == ssrc
        {
            return stream.take(sequence);
        }
        let mut streams = self.streams.iter_mut().enumerate();
        if let Some((at, stream)) = streams.find(|(_, stream)| stream.ssrc == ssrc) {
            self.last = at;
            stream.take(sequence);
        } else if self.streams.len() < MAX_STREAMS {
            self.streams.push(Stream::new(ssrc, sequence));
        }
    }

    /// The streams that came so far.
    pub(crate) fn ssrcs(&self) -> impl Iterator<Item = Ssrc> + '_ {
        self.streams.iter().map(|stream| Ssrc(stream.ssrc))
    }

    /// What the next receiver report says of each stream.
    pub(crate) fn report(&mut self) -> SmallVec<[ReportBlock; 2]> {
        self.streams.iter_mut().map(Stream::report).collect()
    }
}

impl Stream {
    fn new(ssrc: u32, sequence: u16) -> Self {
        let first = FIRST_CYCLE + u64::from(sequence);
        Self {
            ssrc,
            first,
            highest: first,
            packets: 1,
            told: (0, 0),
        }
    }

    /// As RFC 3550 appendix A.3 counts: what comes twice makes up for a loss.
    fn report(&mut self) -> ReportBlock {
        let (expected, packets) = (self.highest + 1 - self.first, self.packets);
        let (told_expected, told_packets) = std::mem::replace(&mut self.told, (expected, packets));
        let lost = expected.cast_signed() - packets.cast_signed();
        let expected = expected - told_expected;
        let lost_since = expected.saturating_sub(packets - told_packets);
        let fraction = (lost_since << 8).checked_div(expected).unwrap_or(0);
        let most = if lost < 0 { i32::MIN } else { i32::MAX };
        ReportBlock {
            ssrc: Ssrc(self.ssrc),
            fraction_lost: u8::try_from(fraction).unwrap_or(u8::MAX),
            cumulative_lost: i32::try_from(lost).unwrap_or(most),
            highest_sequence: (self.highest - FIRST_CYCLE) as u32,
            jitter: 0,
            last_sr: 0,
            delay_since_last_sr: 0,
        }
    }

    #[inline]
    fn take(&mut self, sequence: u16) {
        self.packets += 1;
        let ahead = sequence.wrapping_sub(self.highest as u16);
        if ahead < 0x8000 {
            self.highest += u64::from(ahead);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ssrc: u8, sequence: u16) -> [u8; 12] {
        let [s0, s1] = sequence.to_be_bytes();
        [0x80, 96, s0, s1, 0, 0, 0, 0, 0, 0, 0, ssrc]
    }

    #[test]
    fn what_is_missing_is_counted_by_stream_and_over_the_wrap() {
        let mut count = Count::default();
        for sequence in [65_533, 65_534, 1, 0, 2] {
            count.take(&packet(1, sequence));
        }
        count.take(&packet(2, 9));
        count.take(&packet(2, 12));
        count.take(&[0x80]);
        let report = count.report();
        let said = report
            .iter()
            .map(|b| (b.ssrc.0, b.highest_sequence, b.cumulative_lost));
        assert!(said.eq([(1, 0x1_0002, 1), (2, 12, 2)]));
    }

    #[test]
    fn each_report_tells_the_losses_since_the_last_one() {
        let mut count = Count::default();
        let mut told = |numbers: &[u16]| {
            for number in numbers {
                count.take(&packet(1, *number));
            }
            let report = count.report();
            let block = report.first().copied();
            block.map(|block| (block.fraction_lost, block.cumulative_lost))
        };
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[10, 11, 12, 13]), Some((0, 0)));
        // One of four, then three of four.
        assert_eq!(told(&[14, 15, 17]), Some((64, 1)));
        assert_eq!(told(&[21]), Some((192, 4)));
        // Nothing should have come, so nothing is lost.
        assert_eq!(told(&[]), Some((0, 4)));
        // Late ones make up for what was told, and so do repetitions.
        assert_eq!(told(&[16, 18, 19, 20, 22]), Some((0, 0)));
        assert_eq!(told(&[22, 22]), Some((0, -2)));
        // Nearly all: less than all in 1/256.
        assert_eq!(told(&[10_022]), Some((255, 9_997)));
    }
}
