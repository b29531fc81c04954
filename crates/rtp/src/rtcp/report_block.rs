use super::frame::Out;
use crate::Ssrc;

/// How a stream is received (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportBlock {
    /// The stream that is reported on.
    pub ssrc: Ssrc,
    /// Packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the beginning, less duplicates: 24 bits, clamped when written.
    pub cumulative_lost: i32,
    /// The highest sequence number received, roll-overs in the upper 16 bits.
    pub highest_sequence: u32,
    /// Interarrival jitter in units of the stream's timestamps.
    pub jitter: u32,
    /// The middle 32 bits of the NTP timestamp of the last sender report; 0 if none came.
    pub last_sr: u32,
    /// Time since that report came, in 1/65,536 s.
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
            // Shifted up and down again for its sign.
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

/// The report blocks that a sender or receiver report carries.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportBlocks<'a>(&'a [[u8; ReportBlock::LEN]]);

impl<'a> ReportBlocks<'a> {
    /// Takes the first `count` blocks of `bytes`; what follows is a profile's extension.
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
