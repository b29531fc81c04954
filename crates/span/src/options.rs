//! The settings of a span.

use std::net::SocketAddr;

/// The settings of a [`crate::Span`].
#[derive(Debug, Clone)]
pub struct SpanOptions {
    /// The addresses of this node's workers for media of others, by their index, as the others
    /// reach them.
    pub addresses: Vec<SocketAddr>,
    /// The limit of what is sent to another node, in bit/s. `None` means no limit.
    pub max_bps: Option<u64>,
    /// The region of this node.
    pub region: String,
    /// How many nodes take a source from this one. Further ones take it from those.
    pub fan_out: usize,
}
