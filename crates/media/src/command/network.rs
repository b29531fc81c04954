//! Commands that concern the network of a worker.

use std::net::SocketAddr;

use mio::net::TcpStream;

use crate::turn::TurnServer;

/// A command that concerns the network of a worker.
#[derive(Debug)]
pub(crate) enum NetworkCommand {
    /// The candidates of new peers have changed.
    UpdateCandidates,
    /// Allocates an address at a TURN server, in place of the present one. `None` only frees the
    /// present one.
    SetTurnServer(Option<Box<TurnServer>>),
    /// To the worker of a peer that has connected by TCP, from the worker that has accepted the
    /// connection.
    TakePipe(Box<PassedConnection>),
}

/// A TCP connection on its way to the worker of its peer.
#[derive(Debug)]
pub(crate) struct PassedConnection {
    pub(crate) stream: TcpStream,
    /// The peer's end.
    pub(crate) remote: SocketAddr,
    /// The first frame, and what else was read.
    pub(crate) bytes: Vec<u8>,
}
