//! The path of a datagram: two addresses and a carrier.

use std::net::SocketAddr;

/// The carrier of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// UDP.
    Udp,
    /// A TCP connection (RFC 6544), in which each datagram is a frame (RFC 4571).
    Tcp,
}

impl Carrier {
    /// Returns its name in candidates.
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

/// An address of the peer with its carrier (RFC 8445 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TransportAddress {
    pub(crate) carrier: Carrier,
    pub(crate) address: SocketAddr,
}

/// The path of a datagram between this side and the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// The carrier.
    pub carrier: Carrier,
    /// The bound address of this side.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl Path {
    /// Makes a path over UDP.
    pub const fn udp(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            carrier: Carrier::Udp,
            local,
            remote,
        }
    }

    /// Makes a path over a TCP connection.
    pub const fn tcp(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            carrier: Carrier::Tcp,
            local,
            remote,
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
