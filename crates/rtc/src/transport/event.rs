//! What a transport tells its owner.

use std::net::SocketAddr;

use portunus_rtp::{Header, SeqNo};
use portunus_srtp::{OpenError, Profile};

use crate::data::DataMessage;
use crate::{Carrier, DtlsError, IceAttempt, IceState, Path, SelectedPair};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportEvent {
    /// The ICE agent changed its state.
    Ice(IceState),
    /// The pair of addresses in use from now on.
    SelectedPair(SelectedPair),
    /// Datagrams of this peer may come by UDP from this address.
    RemoteAddress(SocketAddr),
    /// The DTLS handshake changed its state.
    Dtls(DtlsState),
    /// ICE and DTLS are done.
    Connected {
        /// What protects media; none if the peer wants data channels only.
        profile: Option<Profile>,
    },
    /// A data channel is open: both sides may send.
    DataChannelOpen {
        /// Its label.
        label: String,
        /// Its subprotocol, empty if there is none.
        protocol: String,
    },
    /// A message on a data channel.
    Data {
        /// The channel's label.
        label: String,
        /// The channel's subprotocol, empty if there is none.
        protocol: String,
        /// What it says.
        message: DataMessage,
    },
    /// A data channel is closed.
    DataChannelClosed {
        /// Its label.
        label: String,
    },
    /// Sending data was refused because too much waited; now there is room again.
    DataWritable,
    /// The transport cannot go on; nothing more comes of it.
    Failed(FailReason),
    /// The peer closed the transport; nothing more comes of it.
    Closed,
}

/// The states of the DTLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DtlsState {
    Trying,
    Connected,
    Failed,
}

/// Why a transport cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailReason {
    /// No pair worked, or the peer no longer consents (RFC 7675).
    #[error("ICE failed: {0}")]
    Ice(IceAttempt),
    /// The handshake failed.
    #[error(transparent)]
    Dtls(DtlsError),
}

/// What became of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It was for the transport itself; there may be something to transmit and events.
    Consumed,
    /// It was an RTP packet, now in the clear.
    Rtp {
        /// Length of the plain packet, in bytes.
        len: usize,
        /// Its header.
        header: Header,
        /// Its extended sequence number.
        index: SeqNo,
    },
    /// It was a compound RTCP packet, now in the clear.
    Rtcp {
        /// Length of the plain packet, in bytes.
        len: usize,
    },
    /// It was refused.
    Dropped(DropReason),
}

/// Why a datagram was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// None of the protocols that share the port.
    UnknownProtocol,
    /// STUN that cannot be read.
    MalformedStun,
    /// STUN that is not authentic, not for this transport, or unexpected.
    RefusedStun,
    /// DTLS from an address that ICE has not verified, or before the remote side is known.
    UnverifiedDtls,
    /// DTLS that is malformed, not authentic or repeated.
    RefusedDtls,
    /// SRTP or SRTCP before the handshake is done.
    NoKeys,
    /// An RTP header that cannot be read.
    MalformedRtp,
    /// SRTP or SRTCP that is not authentic, replayed or of too many sources.
    Srtp(OpenError),
    /// SCTP, or a message that opens a data channel, that cannot be read.
    MalformedData,
    /// The transport has failed or is closed.
    Closed,
}

impl DropReason {
    /// Number of [`Self::index`] values.
    pub const COUNT: usize = 14;

    /// A small number for each reason: an index for counters.
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

    /// The names that belong to [`Self::index`], as metrics show them.
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

/// A datagram to send, whose bytes are in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Its length, in bytes.
    pub len: usize,
    /// The bound address to send it from.
    pub source: SocketAddr,
    /// Where to send it.
    pub destination: SocketAddr,
    /// What carries it there.
    pub carrier: Carrier,
}

impl Transmit {
    /// The way that it takes.
    pub const fn path(&self) -> Path {
        Path {
            carrier: self.carrier,
            local: self.source,
            remote: self.destination,
        }
    }
}

/// What a transport counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Datagrams received, RTP and RTCP included.
    pub received: u64,
    /// Datagrams refused, by [`DropReason::index`].
    pub dropped: [u32; DropReason::COUNT],
    /// Remote candidates that are mDNS names, of TCP, or of no use.
    pub ignored_candidates: u32,
    /// Flights of the DTLS handshake that were sent again.
    pub dtls_retransmissions: u32,
}
