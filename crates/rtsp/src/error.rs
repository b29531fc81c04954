//! What can go wrong with a server.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use thiserror::Error;

/// Why a stream does not come, or no more.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RtspError {
    /// The URL is not one, or of another scheme.
    #[error("not a URL of RTSP: {0}")]
    Url(String),
    /// Nothing may be sent there.
    #[error("nothing may be sent to {0}, see server.outgoing_networks")]
    Forbidden(IpAddr),
    /// No connection, or it broke.
    #[error("{0}: {1}")]
    Connect(String, #[source] io::Error),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// There was no answer in time.
    #[error("no answer to {what} within {after:?}")]
    Timeout {
        /// What was asked.
        what: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The server says no.
    #[error("the server answers {status} {reason} to {method}")]
    Status {
        /// What was asked.
        method: &'static str,
        /// The status code.
        status: u16,
        /// What the server says about it, shortened.
        reason: String,
    },
    /// It wants a name and a password, or others.
    #[error("the server wants {0}")]
    Unauthorized(&'static str),
    /// It sends around in circles, or away from RTSP.
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    /// What it sends is not RTSP.
    #[error("the server sends something that is not RTSP")]
    Garbage,
    /// A message has no end.
    #[error("a message of the server is longer than {0} bytes")]
    TooLong(usize),
    /// The description cannot be used.
    #[error("the server's description: {0}")]
    Description(String),
    /// It has none of the media that are wanted.
    #[error("the server has no {0} that can be taken")]
    NoMedia(&'static str),
    /// It agrees to something that was not asked for.
    #[error("the server's transport: {0}")]
    Transport(&'static str),
    /// Its packets come from an address to which nothing may be sent.
    #[error(
        "the server's packets come from {0}, to which nothing may be sent, see server.outgoing_networks"
    )]
    ForbiddenSource(IpAddr),
    /// There are no free ports.
    #[error("no pair of ports in {0} to {1} is free on the interface")]
    Ports(u16, u16),
    /// Nothing came for so long.
    #[error("no packet for {0:?}")]
    Silence(Duration),
    /// It ended the session.
    #[error("the server ended the session")]
    Ended,
}

impl RtspError {
    /// Whether a server refuses a transport, or what it agrees to cannot be used: the same may work over another one.
    pub(crate) fn refuses_transport(&self) -> bool {
        match self {
            RtspError::Status { method, status, .. } => *method == "SETUP" && *status == 461,
            RtspError::Transport(_) | RtspError::Ports(..) | RtspError::ForbiddenSource(_) => true,
            _ => false,
        }
    }

    /// Whether a server refuses to set up a medium, which says nothing of other media.
    pub(crate) fn refuses_medium(&self) -> bool {
        match self {
            RtspError::Status { method, .. } => *method == "SETUP",
            RtspError::Transport(_) | RtspError::ForbiddenSource(_) => true,
            _ => false,
        }
    }
}
