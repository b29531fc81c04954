//! One PeerConnection, sans-IO: ICE, DTLS, SRTP, SCTP, and the RTP streams in them.
//!
//! A [`Transport`] takes datagrams and the time, and gives back datagrams, events and the next
//! deadline. It has no socket, no thread, no lock and no clock. After each call that changes it, its
//! owner polls [`Transport::poll_transmit`] and [`Transport::poll_event`] until there is nothing
//! left, then asks [`Transport::poll_timeout`] when to call [`Transport::handle_timeout`].
#![forbid(unsafe_code)]

mod amount;
pub mod bandwidth;
pub mod connection;
pub mod data;
mod demux;
mod dtls;
pub mod framing;
mod ice;
mod identity;
mod path;
mod reflection;
mod scope;
pub mod streams;
mod transport;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use amount::Amount;
pub use connection::{Connection, Feedback, StreamConfig};
pub use demux::{Protocol, Transaction, stun_answer, stun_check, stun_username};
pub use dtls::{DtlsError, MTU as DTLS_MTU};
pub use ice::{
    ANSWERABLE, CandidateError, CandidateText, CandidateTransport, IceAttempt, IceCause, IceState,
    LocalCandidate, PairFigures, PairProgress, RemoteCandidate, SelectedPair, candidate_lines,
    mdns_name, with_address,
};
pub use identity::{Identity, IdentityError};
pub use path::{Carrier, Path};
pub use reflection::Reflection;
pub use scope::Scope;
pub use transport::{
    Counters, Direction, DropReason, DtlsFigures, DtlsState, FailReason, PacketObserver, Received,
    Transmit, Transport, TransportConfig, TransportError, TransportEvent,
};
