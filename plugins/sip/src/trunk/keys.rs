//! By which way the keys of a call come. Telephones can be set to tell each key within the sound and by INFO as well, and it is to count
//! once.

/// How a key is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By RTP (RFC 4733).
    Sound,
    /// By INFO.
    Info,
}

/// Keys count by the way that the first of them came by. The two tellings of a key come up to seconds apart, as it is told by
/// INFO when it is pressed and by RTP when it is let go: neither their times nor what they say tell a key that was told twice from one
/// that was pressed twice. What was agreed on does not say it either: there are exchanges that agree on RTP, and send INFO.
#[derive(Debug, Default)]
pub(super) struct Keys(Option<Way>);

impl Keys {
    /// Whether a key counts that has come by this way.
    pub(super) fn count(&mut self, way: Way) -> bool {
        *self.0.get_or_insert(way) == way
    }
}
