//! Counts packets by their clear headers, without decrypting them.

use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::ReportBlock;
use smallvec::SmallVec;

/// The limit of SSRCs, more than any scenario has. Further ones are counted without their numbers.
const MAX_STREAMS: usize = 256;

/// The limit of strays: those of some messages.
const MAX_STRAYS: u64 = 64;

/// The initial cycle of a stream. It is not 0, so that numbers before the first one are above 0.
const FIRST_CYCLE: u64 = 0x1_0000;

/// What one participant received.
#[derive(Debug, Default)]
pub(crate) struct Count {
    streams: SmallVec<[Stream; 2]>,
    /// The stream of the last packet, which is often that of the next one.
    last: usize,
    /// Packets that were counted for another stream, and which may be those that a stream misses
    /// next.
    strays: u64,
}

/// The counts of one SSRC.
#[derive(Debug, Clone, Copy)]
struct Stream {
    ssrc: u32,
    first: u64,
    highest: u64,
    packets: u64,
    /// Packets of the last message, of which all but the first are a guess.
    run: u64,
    /// The packets of the last report: expected and received ones.
    told: (u64, u64),
}

impl Count {
    /// Counts an RTP packet, which may be encrypted.
    #[inline]
    pub(crate) fn take(&mut self, packet: &[u8]) {
        self.take_run(packet, 1);
    }

    /// Counts a message of `packets` packets, of which the first is known. The others count as its
    /// successors. If some were another stream's, their numbers arrive later and show it.
    #[inline]
    pub(crate) fn take_run(&mut self, first: &[u8], packets: u64) {
        let Some([_, _, s0, s1, _, _, _, _, i0, i1, i2, i3]) = first.first_chunk() else {
            return;
        };
        let sequence = u16::from_be_bytes([*s0, *s1]);
        let ssrc = u32::from_be_bytes([*i0, *i1, *i2, *i3]);
        if let Some(stream) = self.streams.get_mut(self.last)
            && stream.ssrc == ssrc
        {
            return stream.take(sequence, packets, &mut self.strays);
        }
        let mut streams = self.streams.iter_mut().enumerate();
        if let Some((at, stream)) = streams.find(|(_, stream)| stream.ssrc == ssrc) {
            self.last = at;
            stream.take(sequence, packets, &mut self.strays);
        } else if self.streams.len() < MAX_STREAMS {
            self.streams.push(Stream::new(ssrc, sequence, packets));
        }
    }

    /// Returns the streams that have arrived.
    pub(crate) fn ssrcs(&self) -> impl Iterator<Item = Ssrc> + '_ {
        self.streams.iter().map(|stream| Ssrc(stream.ssrc))
    }

    /// Returns the blocks of the next receiver report.
    pub(crate) fn report(&mut self) -> SmallVec<[ReportBlock; 2]> {
        self.streams.iter_mut().map(Stream::report).collect()
    }
}

impl Stream {
    fn new(ssrc: u32, sequence: u16, packets: u64) -> Self {
        let first = FIRST_CYCLE + u64::from(sequence);
        Self {
            ssrc,
            first,
            highest: first + packets.saturating_sub(1),
            packets,
            run: packets,
            told: (0, 0),
        }
    }

    /// Counts like RFC 3550 appendix A.3: a repetition makes up for a loss.
    fn report(&mut self) -> ReportBlock {
        let (expected, packets) = (self.highest + 1 - self.first, self.packets);
        let (told_expected, told_packets) = std::mem::replace(&mut self.told, (expected, packets));
        let lost = expected.cast_signed() - packets.cast_signed();
        // A guess may be taken back, so both may have decreased.
        let expected = expected.saturating_sub(told_expected);
        let lost_since = expected.saturating_sub(packets.saturating_sub(told_packets));
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
    fn take(&mut self, sequence: u16, packets: u64, strays: &mut u64) {
        let ahead = i64::from(sequence.wrapping_sub(self.highest as u16).cast_signed());
        let last_run = std::mem::replace(&mut self.run, packets);
        self.packets += packets;
        if ahead > 0 {
            let found = (ahead.unsigned_abs() - 1).min(*strays);
            *strays -= found;
            self.packets += found;
        } else {
            let taken_back = ahead.unsigned_abs() + 1;
            if taken_back >= last_run {
                // The packet is late, or a repetition.
                return;
            }
            *strays = (*strays + taken_back).min(MAX_STRAYS);
            self.packets -= taken_back;
        }
        let highest = self.highest.saturating_add_signed(ahead);
        self.highest = highest + packets.saturating_sub(1);
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
    fn the_rest_of_a_message_is_guessed_and_put_right_by_what_comes() {
        let mut count = Count::default();
        let told = |count: &mut Count| {
            let report = count.report();
            let said = report.iter();
            said.map(|b| (b.highest_sequence, b.fraction_lost, b.cumulative_lost))
                .collect::<Vec<_>>()
        };
        // Two messages of three packets each, one of them lost.
        count.take_run(&packet(1, 10), 3);
        count.take_run(&packet(1, 16), 3);
        assert_eq!(told(&mut count), [(18, 85, 3)]);
        // The last packet of a message is the other stream's, which misses its second packet for a
        // while.
        count.take(&packet(2, 1));
        count.take_run(&packet(1, 19), 4);
        count.take(&packet(2, 3));
        assert_eq!(told(&mut count), [(22, 0, 3), (3, 85, 1)]);
        count.take_run(&packet(1, 22), 3);
        assert_eq!(told(&mut count), [(24, 0, 3), (3, 0, 1)]);
        // From then on, the stray replaces the missing one.
        count.take(&packet(2, 5));
        assert_eq!(told(&mut count), [(24, 0, 3), (5, 0, 1)]);
        // A repetition is no stray.
        count.take_run(&packet(1, 20), 3);
        assert_eq!(told(&mut count), [(24, 0, 0), (5, 0, 1)]);
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
        // Nothing was expected, so nothing is lost.
        assert_eq!(told(&[]), Some((0, 4)));
        // Late packets make up for reported losses, and so do repetitions.
        assert_eq!(told(&[16, 18, 19, 20, 22]), Some((0, 0)));
        assert_eq!(told(&[22, 22]), Some((0, -2)));
        // Nearly all: less than all in 1/256.
        assert_eq!(told(&[10_022]), Some((255, 9_997)));
    }
}
