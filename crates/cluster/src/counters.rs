//! What a node counts.

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests to the bus.
    pub bus_writes: u64,
    /// Requests to the bus that found another entry than expected.
    pub bus_conflicts: u64,
    /// Requests to the bus that were not confirmed.
    pub bus_unknown: u64,
    /// Entries of the bus that could not be read, or were too many.
    pub bad_entries: u64,
    /// Homes that this node has made.
    pub claims: u64,
    /// Homes that this node has taken from a lost node.
    pub takeovers: u64,
    /// Homes that this node has handed over.
    pub handovers: u64,
    /// Homes that this node has yielded to a later revision.
    pub yields: u64,
    /// Registrations that this node has refused, because it was not the home at that revision.
    pub refused_registrations: u64,
    /// Messages about a room whose revision was not the present one.
    pub fenced_messages: u64,
    /// Frames that could not be read. Each ends its link.
    pub bad_frames: u64,
    /// Links that were reset because a queue was full.
    pub overflows: u64,
    /// Links that were reset because the other node sent too much.
    pub floods: u64,
    /// Items of other nodes that were dropped because there were too many.
    pub dropped_items: u64,
    /// Nodes that were lost.
    pub lost_nodes: u64,
    /// Frames between two other nodes that this one has carried.
    pub carried_frames: u64,
    /// Frames between two other nodes that could not be carried: there is no link, or too much waits.
    pub uncarried_frames: u64,
    /// Frames between two nodes that neither had sent, or that may not be carried.
    pub refused_carried: u64,
    /// Links refused because no version is common.
    pub version_refusals: u64,
}
