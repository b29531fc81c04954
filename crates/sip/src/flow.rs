//! The flows and routes of messages.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::message::{Host, SyntaxError};

/// A transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// Datagrams with a message each.
    Udp,
    /// A stream.
    Tcp,
    /// A stream in TLS.
    Tls,
    /// A WebSocket (RFC 7118).
    Ws,
    /// A WebSocket in TLS.
    Wss,
}

/// A connection of [`Transport::Tcp`] and the like. The number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// The flow of a received message. A response takes it in the other direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The transport.
    pub transport: Transport,
    /// The address of our socket.
    pub local: SocketAddr,
    /// The address of the far end's socket.
    pub remote: SocketAddr,
    /// The connection; `None` for UDP.
    pub connection: Option<ConnectionId>,
}

/// The target of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The transport.
    pub transport: Transport,
    /// The address of the far end.
    pub remote: SocketAddr,
    /// The host of the URI that led here. A certificate has to name it (RFC 5922); a WebSocket
    /// handshake sends it.
    pub host: Host,
}

/// The route of a message to send.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Route {
    /// The flow of another message. If its connection is closed: its remote address, over a new
    /// one.
    Flow(Flow),
    /// An address, over a present connection or a new one.
    Target(Target),
}

impl Transport {
    /// Whether it repeats lost data, so that transactions need not.
    #[must_use]
    pub fn is_reliable(self) -> bool {
        self != Self::Udp
    }

    /// Whether it is encrypted.
    #[must_use]
    pub fn is_secure(self) -> bool {
        matches!(self, Self::Tls | Self::Wss)
    }

    /// Returns the name in Via: `UDP`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Ws => "WS",
            Self::Wss => "WSS",
        }
    }

    /// Returns the value of a URI's `transport` parameter: `udp`.
    #[must_use]
    pub fn param(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }

    /// Returns the default port (RFC 3261 section 19.1.2, RFC 7118 section 6).
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 5060,
            Self::Tls => 5061,
            Self::Ws => 80,
            Self::Wss => 443,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Transport {
    type Err = SyntaxError;

    /// Parses a name of Via or of a `transport` parameter, in any case.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        [Self::Udp, Self::Tcp, Self::Tls, Self::Ws, Self::Wss]
            .into_iter()
            .find(|transport| text.eq_ignore_ascii_case(transport.as_str()))
            .ok_or(SyntaxError("unknown transport"))
    }
}

impl Route {
    /// Returns the transport.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self {
            Self::Flow(flow) => flow.transport,
            Self::Target(target) => target.transport,
        }
    }

    /// Returns the far end's address.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        match self {
            Self::Flow(flow) => flow.remote,
            Self::Target(target) => target.remote,
        }
    }

    /// Returns the connection, if it names one.
    #[must_use]
    pub fn connection(&self) -> Option<ConnectionId> {
        match self {
            Self::Flow(flow) => flow.connection,
            Self::Target(_) => None,
        }
    }
}
