//! By what participants are known.

/// Tells participants apart; never used twice.
pub type PeerId = u64;

/// Ids from here on are of those who publish: they run on a thread of their own, which goes before the
/// others, so that their frames leave in time whatever there is to be read.
pub const PUBLISHERS: PeerId = 1 << 63;
