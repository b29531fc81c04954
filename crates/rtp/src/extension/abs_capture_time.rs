/// The capture time of a packet's media, for lip sync across servers and mixers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbsCaptureTime {
    /// The capturer's clock: an NTP timestamp, seconds since 1900 as 32.32 bits.
    pub timestamp: u64,
    /// The offset from the capturer's clock to the sender's, in seconds as 32.32 bits. `None` if
    /// the sender does not know it.
    pub clock_offset: Option<i64>,
}

impl AbsCaptureTime {
    /// The longest value in bytes.
    pub const MAX_LEN: usize = 16;

    /// Parses an element's value. Returns `None` unless it has 8 or 16 bytes.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (timestamp, rest) = value.split_first_chunk()?;
        let clock_offset = match rest {
            [] => None,
            rest => Some(i64::from_be_bytes(rest.try_into().ok()?)),
        };
        Some(Self {
            timestamp: u64::from_be_bytes(*timestamp),
            clock_offset,
        })
    }

    /// Writes the element's value. Returns the slice of 8 or 16 bytes.
    pub fn write_into(self, out: &mut [u8; Self::MAX_LEN]) -> &[u8] {
        let whole = (u128::from(self.timestamp) << 64)
            | u128::from(self.clock_offset.unwrap_or(0).cast_unsigned());
        *out = whole.to_be_bytes();
        let len = if self.clock_offset.is_some() { 16 } else { 8 };
        out.get(..len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn with_and_without_offset() {
        let mut out = [0; AbsCaptureTime::MAX_LEN];
        for (clock_offset, len) in [(None, 8), (Some(-5), 16), (Some(i64::MAX), 16)] {
            let time = AbsCaptureTime {
                timestamp: 0x0102_0304_0506_0708,
                clock_offset,
            };
            let bytes = time.write_into(&mut out);
            assert_eq!(bytes.len(), len);
            assert_eq!(AbsCaptureTime::parse(bytes), Some(time));
        }
        for len in [0, 7, 9, 15] {
            assert_eq!(AbsCaptureTime::parse(&[0; 16][..len]), None);
        }
        assert_eq!(AbsCaptureTime::parse(&[0; 17]), None);
    }
}
