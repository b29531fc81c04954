//! The packet status chunks (section 3.1): run lengths, and vectors of one or two bits.

/// The status of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Symbol {
    #[default]
    Missing = 0,
    /// It arrived up to 63.75 ms after the previous one.
    SmallDelta = 1,
    /// It arrived before the previous one, or long after it.
    LargeDelta = 2,
}

impl Symbol {
    fn from_bits(bits: u16) -> Self {
        match bits & 3 {
            1 => Symbol::SmallDelta,
            2 => Symbol::LargeDelta,
            // 3 is reserved, so the arrival is unknown.
            _ => Symbol::Missing,
        }
    }
}

const MAX_RUN: u16 = 0x1fff;
const ONE_BIT_SYMBOLS: u16 = 14;
const TWO_BIT_SYMBOLS: u16 = 7;

/// Returns the symbols of a chunk. The last chunk of a message may have more than there are
/// packets.
pub(super) fn symbols(chunk: [u8; 2]) -> impl Iterator<Item = Symbol> {
    let bits = u16::from_be_bytes(chunk);
    let (run, count) = match bits >> 14 {
        0 | 1 => (true, bits & MAX_RUN),
        2 => (false, ONE_BIT_SYMBOLS),
        _ => (false, TWO_BIT_SYMBOLS),
    };
    (0..count).map(move |i| {
        if run {
            Symbol::from_bits(bits >> 13)
        } else if count == ONE_BIT_SYMBOLS {
            Symbol::from_bits((bits >> (ONE_BIT_SYMBOLS - 1 - i)) & 1)
        } else {
            Symbol::from_bits(bits >> (2 * (TWO_BIT_SYMBOLS - 1 - i)))
        }
    })
}

/// Encodes symbols in chunks: the longest of the three kinds that can hold the next ones.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChunkEncoder {
    /// The first of the waiting symbols. A longer run repeats the first.
    waiting: [Symbol; ONE_BIT_SYMBOLS as usize],
    len: u16,
}

impl ChunkEncoder {
    /// Adds `symbol`. Returns a chunk if it does not fit after the waiting ones.
    pub fn push(&mut self, symbol: Symbol) -> Option<[u8; 2]> {
        let full = if self.fits(symbol) {
            None
        } else {
            Some(self.take(false))
        };
        if let Some(slot) = self.waiting.get_mut(usize::from(self.len)) {
            *slot = symbol;
        }
        self.len += 1;
        full
    }

    /// Returns the last chunk, if symbols wait.
    pub fn finish(mut self) -> Option<[u8; 2]> {
        (self.len > 0).then(|| self.take(true))
    }

    fn fits(&self, symbol: Symbol) -> bool {
        let is_run = self.is_run();
        self.len < TWO_BIT_SYMBOLS
            || (self.len < ONE_BIT_SYMBOLS && symbol != Symbol::LargeDelta && !self.has_large())
            || (self.len < MAX_RUN && is_run && self.stored().first() == Some(&symbol))
    }

    /// Takes as many symbols as one chunk can hold. Only the last chunk may be filled up with
    /// symbols without a packet.
    fn take(&mut self, last: bool) -> [u8; 2] {
        let first = self.stored().first().copied().unwrap_or_default();
        let taken;
        let bits = if self.is_run() {
            taken = self.len;
            ((first as u16) << 13) | self.len
        } else if self.len == ONE_BIT_SYMBOLS || (last && self.len > TWO_BIT_SYMBOLS) {
            taken = self.len;
            0x8000 | self.pack(ONE_BIT_SYMBOLS, 1)
        } else {
            taken = self.len.min(TWO_BIT_SYMBOLS);
            0xc000 | self.pack(TWO_BIT_SYMBOLS, 2)
        };
        self.waiting
            .rotate_left(usize::from(taken.min(ONE_BIT_SYMBOLS)));
        self.len -= taken;
        bits.to_be_bytes()
    }

    fn pack(&self, symbols: u16, width: u16) -> u16 {
        let mut bits = 0;
        for i in 0..symbols {
            let symbol = self
                .stored()
                .get(usize::from(i))
                .copied()
                .unwrap_or_default();
            bits = (bits << width) | symbol as u16;
        }
        bits
    }

    fn stored(&self) -> &[Symbol] {
        self.waiting
            .get(..usize::from(self.len))
            .unwrap_or(&self.waiting)
    }

    fn is_run(&self) -> bool {
        self.stored()
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a == b))
    }

    fn has_large(&self) -> bool {
        self.stored().contains(&Symbol::LargeDelta)
    }
}
