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

    /// What a receiver report says of each stream.
    pub(crate) fn report(&self) -> SmallVec<[ReportBlock; 2]> {
        let block = |stream: &Stream| ReportBlock {
            ssrc: Ssrc(stream.ssrc),
            fraction_lost: 0,
            cumulative_lost: i32::try_from(stream.missing()).unwrap_or(i32::MAX),
            highest_sequence: (stream.highest - FIRST_CYCLE) as u32,
            jitter: 0,
            last_sr: 0,
            delay_since_last_sr: 0,
        };
        self.streams.iter().map(block).collect()
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
        }
    }

    fn missing(&self) -> u64 {
        (self.highest + 1 - self.first).saturating_sub(self.packets)
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
}
