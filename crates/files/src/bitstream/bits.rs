//! A reader of header bits, most significant first. Reading beyond the end returns `None`.

/// A reader of bits.
#[derive(Debug, Clone)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Whether a 3 after two zero bytes is skipped (ITU-T H.264 section 7.4.1).
    prevents_emulation: bool,
    zeros: u8,
    current: u8,
    /// The bits of `current` that are left.
    left: u32,
}

impl<'a> Bits<'a> {
    /// Returns a reader of all bits.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            prevents_emulation: false,
            zeros: 0,
            current: 0,
            left: 0,
        }
    }

    /// Returns a reader of a NAL unit, without the bytes that prevent start codes.
    pub(super) fn of_unit(unit: &'a [u8]) -> Self {
        Self {
            prevents_emulation: true,
            ..Self::new(unit)
        }
    }

    fn next_byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.split_off_first()?;
        if !self.prevents_emulation {
            return Some(byte);
        }
        if self.zeros >= 2 && byte == 3 {
            self.zeros = 0;
            return self.next_byte();
        }
        self.zeros = if byte == 0 {
            (self.zeros + 1).min(2)
        } else {
            0
        };
        Some(byte)
    }

    /// Reads a flag.
    pub(super) fn flag(&mut self) -> Option<bool> {
        if self.left == 0 {
            self.current = self.next_byte()?;
            self.left = 8;
        }
        self.left -= 1;
        Some(self.current >> self.left & 1 == 1)
    }

    /// Reads a number of up to 32 bits.
    pub(super) fn number(&mut self, bits: u32) -> Option<u32> {
        (0..bits).try_fold(0, |sum: u32, _| Some(sum << 1 | u32::from(self.flag()?)))
    }

    /// Reads a number of up to eight bits.
    pub(super) fn byte(&mut self, bits: u32) -> Option<u8> {
        u8::try_from(self.number(bits)?).ok()
    }

    /// Skips bits.
    pub(super) fn skip(&mut self, bits: u32) -> Option<()> {
        (0..bits).try_for_each(|_| self.flag().map(drop))
    }

    /// Reads an unsigned Exp-Golomb number below 2^32 - 1 (ITU-T H.264 section 9.1). AV1's `uvlc`
    /// is the same.
    pub(super) fn golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros == 32 {
                return None;
            }
        }
        self.number(zeros)?.checked_add((1 << zeros) - 1)
    }

    /// Reads an Exp-Golomb number of at most `most`.
    pub(super) fn golomb_to(&mut self, most: u32) -> Option<u32> {
        self.golomb().filter(|value| *value <= most)
    }

    /// Reads a signed Exp-Golomb number.
    pub(super) fn signed_golomb(&mut self) -> Option<i64> {
        let value = i64::from(self.golomb()?);
        Some(if value & 1 == 1 {
            value / 2 + 1
        } else {
            -(value / 2)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        // 1, 010, 011, 00100, 00111.
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0011, 0b1000_0000]);
        let mut numbers = || bits.golomb();
        let found = [numbers(), numbers(), numbers(), numbers(), numbers()];
        assert_eq!(found, [0, 1, 2, 3, 6].map(Some));
        let mut bits = Bits::new(&[0b0100_1100, 0b1000_0101]);
        let mut numbers = || bits.signed_golomb();
        assert_eq!(
            [numbers(), numbers(), numbers(), numbers()],
            [1, -1, 2, -2].map(Some)
        );
        assert_eq!(bits.golomb(), None);
        assert_eq!(Bits::new(&[0; 9]).golomb(), None);
        assert_eq!(Bits::new(&[0x80]).number(9), None);
    }

    #[test]
    fn emulation_prevention() {
        let unit = [0, 0, 3, 1, 0, 0, 3, 0, 0, 3, 3];
        let mut bits = Bits::of_unit(&unit);
        let bytes: Vec<_> = std::iter::from_fn(|| bits.number(8)).collect();
        assert_eq!(bytes, [0, 0, 1, 0, 0, 0, 0, 3]);
        assert_eq!(Bits::new(&unit).number(32), Some(0x0000_0301));
    }
}
