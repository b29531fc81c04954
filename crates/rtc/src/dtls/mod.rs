//! DTLS 1.2 (RFC 6347): the handshake by AWS-LC, the records after it by [`record`].
//!
//! A TLS library's object for a connection holds tens of KiB for as long as it lives (OpenSSL's 48 KiB,
//! measured). So it lives for the handshake only; what comes after (data channels, alerts) is few and
//! simple and is done with the handshake's keys by an own record layer of a few hundred bytes.
//!
//! AWS-LC takes half of the time of OpenSSL 3.0 for a handshake, and less memory; RSA certificates, as
//! GStreamer has them, it takes too.

mod established;
mod handshake;
mod handshakes;
mod key_block;
mod randoms;
mod record;

pub(crate) use established::{Established, Incoming};
pub(crate) use handshake::{Done, Progress};
pub(crate) use handshakes::Handshakes;

/// Largest DTLS datagram sent, in bytes: fits the MTU of tunnels, over IPv6 too.
pub const MTU: usize = 1_200;

/// Bytes of application data that one datagram holds.
pub(crate) const MAX_DATA: usize = MTU - record::OVERHEAD;

/// Why a handshake failed, for the log and for the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DtlsError {
    /// AWS-LC gave up on what the peer sent.
    #[error("DTLS handshake failed: {0}")]
    Handshake(String),
    /// The certificate is not the one that was announced in SDP.
    #[error("the peer's certificate does not match any fingerprint of its SDP")]
    Fingerprint,
    /// The peer did not answer for too long.
    #[error("DTLS handshake timed out after {seconds} s")]
    Timeout {
        /// How long the handshake was tried.
        seconds: u64,
    },
    /// The crypto library refused the keys that came of the handshake.
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
