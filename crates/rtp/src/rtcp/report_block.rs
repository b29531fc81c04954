use super::frame::Out;
use crate::Ssrc;

/// A report on a received stream (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportBlock {
    /// The SSRC of the stream.
    pub ssrc: Ssrc,
    /// Packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start, minus duplicates: 24 bits, clamped when written.
    pub cumulative_lost: i32,
    /// The highest sequence number received, with roll-overs in the upper 16 bits.
    pub highest_sequence: u32,
    /// Interarrival jitter in units of the stream's timestamps.
    pub jitter: u32,
    /// The middle 32 bits of the NTP timestamp of the last sender report. 0 without one.
    pub last_sr: u32,
    /// The time since the arrival of that report, in 1/65,536 s.
    pub delay_since_last_sr: u32,
}

impl ReportBlock {
    pub(super) const LEN: usize = 24;
    const LOST: std::ops::RangeInclusive<i32> = -0x80_0000..=0x7f_ffff;

    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        let (words, _) = bytes.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_be_bytes(*word));
        let mut word = || words.next().unwrap_or(0);
        let ssrc = Ssrc(word());
        let lost = word();
        Self {
            ssrc,
            fraction_lost: (lost >> 24) as u8,
            // It is shifted up and down again for its sign.
            cumulative_lost: (lost << 8).cast_signed() >> 8,
            highest_sequence: word(),
            jitter: word(),
            last_sr: word(),
            delay_since_last_sr: word(),
        }
    }

    pub(super) fn write(&self, out: &mut Out<'_>) -> Option<()> {
        let lost = self
            .cumulative_lost
            .clamp(*Self::LOST.start(), *Self::LOST.end());
        out.put_ssrc(self.ssrc)?;
        out.put_u32((u32::from(self.fraction_lost) << 24) | (lost.cast_unsigned() & 0x00ff_ffff))?;
        out.put_u32(self.highest_sequence)?;
        out.put_u32(self.jitter)?;
        out.put_u32(self.last_sr)?;
        out.put_u32(self.delay_since_last_sr)
    }
}

/// The report blocks of a sender or receiver report.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportBlocks<'a>(&'a [[u8; ReportBlock::LEN]]);

impl<'a> ReportBlocks<'a> {
    /// Takes the first `count` blocks of `bytes`. A profile's extension may follow.
    pub fn parse(count: u8, bytes: &'a [u8]) -> Result<Self, crate::RtpError> {
        let count = usize::from(count);
        let expected = count * ReportBlock::LEN;
        let (blocks, _) = bytes.as_chunks();
        let error = crate::RtpError::Truncated {
            expected,
            actual: bytes.len(),
        };
        blocks.get(..count).map(Self).ok_or(error)
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = ReportBlock> + 'a {
        self.0.iter().map(ReportBlock::parse)
    }
}
