//! The errors of a pull.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use thiserror::Error;

/// The reason why a stream does not start, or has ended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RtspError {
    /// The URL is invalid, or has another scheme.
    #[error("not a URL of RTSP: {0}")]
    Url(String),
    /// Nothing may be sent there.
    #[error("nothing may be sent to {0}, see server.outgoing_networks")]
    Forbidden(IpAddr),
    /// The connection failed or broke.
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
        /// The request.
        what: &'static str,
        /// The timeout.
        after: Duration,
    },
    /// The server refused a request.
    #[error("the server answers {status} {reason} to {method}")]
    Status {
        /// The method of the request.
        method: &'static str,
        /// The status code.
        status: u16,
        /// The server's reason, shortened.
        reason: String,
    },
    /// The server wants a login, or another one.
    #[error("the server wants {0}")]
    Unauthorized(&'static str),
    /// It sends around in circles, or away from RTSP.
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    /// The server's message is not RTSP.
    #[error("the server sends something that is not RTSP")]
    Garbage,
    /// A message has no end.
    #[error("a message of the server is longer than {0} bytes")]
    TooLong(usize),
    /// The description cannot be used.
    #[error("the server's description: {0}")]
    Description(String),
    /// The server has none of the wanted media.
    #[error("the server has no {0} that can be taken")]
    NoMedia(&'static str),
    /// The server agreed to a transport that was not requested.
    #[error("the server's transport: {0}")]
    Transport(&'static str),
    /// The server's packets come from an address to which it may not connect.
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
    /// Returns whether the server refuses this transport, or its answer cannot be used. Another
    /// transport may work.
    pub(crate) fn refuses_transport(&self) -> bool {
        match self {
            RtspError::Status { method, status, .. } => *method == "SETUP" && *status == 461,
            RtspError::Transport(_) | RtspError::Ports(..) | RtspError::ForbiddenSource(_) => true,
            _ => false,
        }
    }

    /// Returns whether the server refuses a medium. Other media may work.
    pub(crate) fn refuses_medium(&self) -> bool {
        match self {
            RtspError::Status { method, .. } => *method == "SETUP",
            RtspError::Transport(_) | RtspError::ForbiddenSource(_) => true,
            _ => false,
        }
    }
}
