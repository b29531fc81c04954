//! Counts of traffic.

/// A count of datagrams or messages, and of their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Their number.
    pub count: u32,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    /// Counts one more, of `bytes` bytes.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }
}
