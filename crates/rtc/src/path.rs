//! Between which addresses datagrams travel, and by what.

use std::net::SocketAddr;

use crate::SelectedPair;

/// What carries datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// UDP.
    Udp,
    /// A TCP connection (RFC 6544), in which each datagram is a frame (RFC 4571).
    Tcp,
}

impl Carrier {
    /// As candidates name it.
    pub const fn name(self) -> &'static str {
        match self {
            Carrier::Udp => "udp",
            Carrier::Tcp => "tcp",
        }
    }
}

impl From<Carrier> for is::Protocol {
    fn from(carrier: Carrier) -> Self {
        match carrier {
            Carrier::Udp => is::Protocol::Udp,
            Carrier::Tcp => is::Protocol::Tcp,
        }
    }
}

/// An address of the peer, and what carries datagrams to it (RFC 8445 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TransportAddress {
    pub(crate) carrier: Carrier,
    pub(crate) address: SocketAddr,
}

/// The way of a datagram between this side and the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// What carries it.
    pub carrier: Carrier,
    /// The bound address of this side.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl Path {
    /// By UDP.
    pub const fn udp(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            carrier: Carrier::Udp,
            local,
            remote,
        }
    }

    /// In a TCP connection.
    pub const fn tcp(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            carrier: Carrier::Tcp,
            local,
            remote,
        }
    }

    /// The peer's end of it.
    pub(crate) const fn peer(&self) -> TransportAddress {
        TransportAddress {
            carrier: self.carrier,
            address: self.remote,
        }
    }
}

impl SelectedPair {
    /// The peer's end of it.
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
