//! The ids of participants.

/// The id of a participant, which is never reused.
pub type PeerId = u64;

/// Ids from here on are those of publishers. They run on a thread of their own with a higher
/// priority, so that their frames leave in time however much there is to read.
pub const PUBLISHERS: PeerId = 1 << 63;
