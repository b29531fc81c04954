//! The package names of the transports, as in Janus.

/// The package name of the HTTP transport.
pub(crate) const HTTP: &str = "janus.transport.http";
/// The package name of the WebSocket transport.
pub(crate) const WEBSOCKET: &str = "janus.transport.websockets";
/// The package name of the Unix socket transport.
pub(crate) const UNIX: &str = "janus.transport.pfunix";
