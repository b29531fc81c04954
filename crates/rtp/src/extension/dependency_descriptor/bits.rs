//! Reading and writing fields that end at any bit, the most significant bit first.

/// Reads bits.
#[derive(Debug, Clone)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bits read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Reads `f(count)`, at most 32 bits. Returns `None` if there are not enough.
    pub fn read(&mut self, count: usize) -> Option<u32> {
        let (first, shift) = (self.at / 8, self.at % 8);
        let bytes = self.bytes.get(first..(self.at + count).div_ceil(8))?;
        // 32 bits that start within a byte are in at most five bytes.
        let whole = bytes
            .iter()
            .fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
        self.at += count;
        let unread = bytes.len() * 8 - shift - count;
        Some(((whole >> unread) & ((1 << count) - 1)) as u32)
    }

    /// Reads one bit.
    pub fn read_flag(&mut self) -> Option<bool> {
        self.read(1).map(|bit| bit == 1)
    }

    /// Reads `ns(n)`: a number below `n` in as few bits as possible. `n` must not be 0.
    pub fn read_non_symmetric(&mut self, n: u32) -> Option<u32> {
        let width = u32::BITS - n.leading_zeros();
        let short = (1 << width) - n;
        let value = self.read(width.saturating_sub(1) as usize)?;
        if value < short {
            return Some(value);
        }
        Some((value << 1) - short + self.read(1)?)
    }
}

/// Writes bits over bytes, whatever their values.
#[derive(Debug)]
pub(super) struct BitWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> BitWriter<'a> {
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the bytes written. The last one is filled up with zeros.
    pub fn len(&self) -> usize {
        self.at.div_ceil(8)
    }

    /// Writes the low `count` bits of `value`, at most 32. Returns `None` without room.
    pub fn write(&mut self, value: u32, count: usize) -> Option<()> {
        for bit in (0..count).rev() {
            let (index, shift) = (self.at / 8, 7 - self.at % 8);
            let byte = self.bytes.get_mut(index)?;
            if shift == 7 {
                *byte = 0;
            }
            *byte |= (((value >> bit) & 1) as u8) << shift;
            self.at += 1;
        }
        Some(())
    }

    /// Copies `count` bits.
    pub fn copy(&mut self, from: &mut BitReader<'_>, count: usize) -> Option<()> {
        let mut left = count;
        while left > 0 {
            let step = left.min(32);
            self.write(from.read(step)?, step)?;
            left -= step;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn fields_across_bytes() {
        let mut bytes = [0xff; 6];
        let mut writer = BitWriter::new(&mut bytes);
        for (value, count) in [(1, 1), (0x1234_5678, 32), (0, 0), (5, 7)] {
            writer.write(value, count).unwrap();
        }
        assert_eq!(writer.len(), 5);
        assert!(writer.write(0, 9).is_none());
        let mut reader = BitReader::new(&bytes);
        let counts = [1, 32, 0, 7];
        let values: Vec<_> = counts
            .iter()
            .map(|count| reader.read(*count).unwrap())
            .collect();
        assert_eq!(values, [1, 0x1234_5678, 0, 5]);
        assert_eq!(reader.position(), 40);
        assert_eq!(reader.read(9), None);
    }

    #[test]
    fn non_symmetric_numbers() {
        // Below 5: 0, 1, 2 take two bits, 3 and 4 take three.
        let bytes = [0b0001_1011, 0b0111_0000];
        let mut reader = BitReader::new(&bytes);
        let values: Vec<_> = (0..5)
            .map(|_| reader.read_non_symmetric(5).unwrap())
            .collect();
        assert_eq!(values, [0, 1, 2, 3, 4]);
        assert_eq!(BitReader::new(&[]).read_non_symmetric(1), Some(0));
    }
}
