//! The two sources of a call's keys. Telephones may send each key in RTP and by INFO as well, and
//! it counts once.

/// The source of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// RTP (RFC 4733).
    Sound,
    /// INFO.
    Info,
}

/// Keys count from the source of the first one. The two copies of a key may be seconds apart: INFO
/// is sent at the press, and RTP ends at the release. Neither time nor content distinguish a
/// repeated key from a copy, and some exchanges negotiate RTP and send INFO.
#[derive(Debug, Default)]
pub(super) struct Keys(Option<Way>);

impl Keys {
    /// Whether a key from this source counts.
    pub(super) fn count(&mut self, way: Way) -> bool {
        *self.0.get_or_insert(way) == way
    }
}
