//! DTLS 1.2 (RFC 6347): the handshake by AWS-LC, and later records by [`record`].
//!
//! A TLS library's connection object holds tens of KiB as long as it lives (48 KiB with OpenSSL,
//! measured). So it lives for the handshake only. What follows (data channels, alerts) is rare and
//! simple, and uses the handshake's keys in a record layer of our own with a few hundred bytes.
//!
//! AWS-LC takes half the time of OpenSSL 3.0 for a handshake, and less memory. It accepts RSA
//! certificates too, which GStreamer has.

mod established;
mod handshake;
mod handshakes;
mod key_block;
mod randoms;
mod record;

pub(crate) use established::{Established, Incoming};
pub(crate) use handshake::{Done, Progress};
pub(crate) use handshakes::Handshakes;

/// The largest DTLS datagram sent, in bytes. It fits the MTU of tunnels, also over IPv6.
pub const MTU: usize = 1_200;

/// The bytes of application data that fit one datagram.
pub(crate) const MAX_DATA: usize = MTU - record::OVERHEAD;

/// The reason why a handshake failed, for the log and the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DtlsError {
    /// AWS-LC rejected the peer's messages.
    #[error("DTLS handshake failed: {0}")]
    Handshake(String),
    /// The certificate is not the one announced in SDP.
    #[error("the peer's certificate does not match any fingerprint of its SDP")]
    Fingerprint,
    /// The peer did not answer in time.
    #[error("DTLS handshake timed out after {seconds} s")]
    Timeout {
        /// The duration of the handshake.
        seconds: u64,
    },
    /// The crypto library refused the keys of the handshake.
    #[error("the keys of the DTLS handshake cannot be used")]
    Keys,
}

/// The content types of records (RFC 5246 section 6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentType {
    ChangeCipherSpec,
    Alert,
    Handshake,
    ApplicationData,
}

impl ContentType {
    pub(crate) const fn wire(self) -> u8 {
        match self {
            ContentType::ChangeCipherSpec => 20,
            ContentType::Alert => 21,
            ContentType::Handshake => 22,
            ContentType::ApplicationData => 23,
        }
    }

    pub(crate) const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            20 => Some(ContentType::ChangeCipherSpec),
            21 => Some(ContentType::Alert),
            22 => Some(ContentType::Handshake),
            23 => Some(ContentType::ApplicationData),
            _ => None,
        }
    }
}
