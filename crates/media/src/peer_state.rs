//! The states of a peer's connection.

/// The states of an ICE agent, as the Janus API names them in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IceState {
    /// It has not started yet.
    Gathering,
    /// It checks pairs.
    Connecting,
    /// A pair works.
    Connected,
    /// A pair is selected, and media may use it.
    Ready,
    /// No pair works any more.
    Disconnected,
    /// The attempt has failed.
    Failed,
}

/// The states of a DTLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DtlsState {
    /// The handshake has started.
    Trying,
    /// It is done.
    Connected,
    /// It has failed.
    Failed,
}
