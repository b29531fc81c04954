//! The selected pair: the addresses that media flows between.

use std::net::SocketAddr;

use crate::path::TransportAddress;
use crate::{Carrier, Path};

/// The selected pair. The addresses come first, since each packet needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SelectedPair {
    /// The bound address of this side.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The carrier of the datagrams between them.
    pub carrier: Carrier,
    /// Whether this side's address is at a TURN server.
    pub is_relayed: bool,
    /// The type of the remote candidate: `host`, `prflx`, `srflx` or `relay`.
    pub remote_kind: &'static str,
}

impl SelectedPair {
    /// The type of the local candidate: `host` or `relay`.
    pub const fn local_kind(&self) -> &'static str {
        match self.is_relayed {
            true => "relay",
            false => "host",
        }
    }

    /// Returns the address of the peer.
    pub(crate) const fn peer(&self) -> TransportAddress {
        TransportAddress {
            carrier: self.carrier,
            address: self.remote,
        }
    }
}

impl From<&SelectedPair> for Path {
    fn from(pair: &SelectedPair) -> Self {
        Self {
            carrier: pair.carrier,
            local: pair.local,
            remote: pair.remote,
        }
    }
}
