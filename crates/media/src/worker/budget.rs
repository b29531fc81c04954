//! The work that a worker takes in at a time.

/// The maximum number of datagrams per turn. A core that is behind takes many at once, so that
/// those for one peer leave together and cost less. Still, a flood delays timers by some tens of
/// milliseconds at most.
pub(super) const DATAGRAMS_PER_TURN: usize = 8_192;
