//! Events of a transport.

use std::net::SocketAddr;

use portunus_rtp::{Header, SeqNo};
use portunus_srtp::{OpenError, Profile};

use crate::data::DataMessage;
use crate::{Carrier, DtlsError, IceAttempt, IceState, Path, SelectedPair};

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportEvent {
    /// The ICE agent changed its state.
    Ice(IceState),
    /// Another pair of addresses was selected.
    SelectedPair(SelectedPair),
    /// Datagrams of this peer may arrive by UDP from this address.
    RemoteAddress(SocketAddr),
    /// The DTLS handshake changed its state.
    Dtls(DtlsState),
    /// ICE and DTLS are connected.
    Connected {
        /// The SRTP profile. `None` if the peer wants only data channels.
        profile: Option<Profile>,
    },
    /// A data channel is open, so both sides may send.
    DataChannelOpen {
        /// The label.
        label: String,
        /// The subprotocol. Empty without one.
        protocol: String,
    },
    /// A message arrived on a data channel.
    Data {
        /// The label of the channel.
        label: String,
        /// The subprotocol of the channel. Empty without one.
        protocol: String,
        /// The message.
        message: DataMessage,
    },
    /// A data channel is closed.
    DataChannelClosed {
        /// The label.
        label: String,
    },
    /// After sending was refused for lack of room, there is room again.
    DataWritable,
    /// The transport has failed. No more events follow.
    Failed(FailReason),
    /// The peer has closed the transport. No more events follow.
    Closed,
}

/// The state of the DTLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DtlsState {
    Trying,
    Connected,
    Failed,
}

/// The reason why a transport failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailReason {
    /// No pair worked, or the peer's consent expired (RFC 7675).
    #[error("ICE failed: {0}")]
    Ice(IceAttempt),
    /// The handshake failed.
    #[error(transparent)]
    Dtls(DtlsError),
}

/// The result of a received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It was for the transport itself. There may be datagrams to transmit and events.
    Consumed,
    /// It was an RTP packet, which is now decrypted.
    Rtp {
        /// The length of the plain packet, in bytes.
        len: usize,
        /// The header.
        header: Header,
        /// The extended sequence number.
        index: SeqNo,
    },
    /// It was a compound RTCP packet, which is now decrypted.
    Rtcp {
        /// The length of the plain packet, in bytes.
        len: usize,
    },
    /// It was refused.
    Dropped(DropReason),
}

/// The reason why a datagram was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// It has none of the protocols that share the port.
    UnknownProtocol,
    /// A malformed STUN message.
    MalformedStun,
    /// STUN that is not authentic, not for this transport, or unexpected.
    RefusedStun,
    /// DTLS from an address that ICE has not verified, or before the remote side is known.
    UnverifiedDtls,
    /// DTLS that is malformed, not authentic or repeated.
    RefusedDtls,
    /// SRTP or SRTCP before the end of the handshake.
    NoKeys,
    /// A malformed RTP header.
    MalformedRtp,
    /// SRTP or SRTCP that is not authentic, replayed, or from too many sources.
    Srtp(OpenError),
    /// Malformed SCTP, or a malformed message that opens a data channel.
    MalformedData,
    /// The transport has failed or is closed.
    Closed,
}

impl DropReason {
    /// The number of [`Self::index`] values.
    pub const COUNT: usize = 14;

    /// Returns a small number for each reason, as an index for counters.
    pub const fn index(self) -> usize {
        match self {
            DropReason::UnknownProtocol => 0,
            DropReason::MalformedStun => 1,
            DropReason::RefusedStun => 2,
            DropReason::UnverifiedDtls => 3,
            DropReason::RefusedDtls => 4,
            DropReason::NoKeys => 5,
            DropReason::MalformedRtp => 6,
            DropReason::Closed => 7,
            DropReason::Srtp(OpenError::Truncated) => 8,
            DropReason::Srtp(OpenError::Replayed) => 9,
            DropReason::Srtp(OpenError::Unauthenticated) => 10,
            DropReason::Srtp(OpenError::TooManySources) => 11,
            DropReason::Srtp(_) => 12,
            DropReason::MalformedData => 13,
        }
    }

    /// The names of the [`Self::index`] values in metrics.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "unknown_protocol",
        "malformed_stun",
        "refused_stun",
        "unverified_dtls",
        "refused_dtls",
        "no_keys",
        "malformed_rtp",
        "closed",
        "srtp_truncated",
        "srtp_replayed",
        "srtp_unauthenticated",
        "srtp_too_many_sources",
        "srtp_other",
        "malformed_data",
    ];
}

/// A datagram to send, which is in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// The length, in bytes.
    pub len: usize,
    /// The bound address to send it from.
    pub source: SocketAddr,
    /// The address to send it to.
    pub destination: SocketAddr,
    /// The carrier.
    pub carrier: Carrier,
}

impl Transmit {
    /// Returns its path.
    pub const fn path(&self) -> Path {
        Path {
            carrier: self.carrier,
            local: self.source,
            remote: self.destination,
        }
    }
}

/// The counters of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Datagrams received, including RTP and RTCP.
    pub received: u64,
    /// Datagrams refused, by [`DropReason::index`].
    pub dropped: [u32; DropReason::COUNT],
    /// Remote candidates with mDNS names, for TCP, or otherwise unusable.
    pub ignored_candidates: u32,
    /// Retransmitted flights of the DTLS handshake.
    pub dtls_retransmissions: u32,
}
