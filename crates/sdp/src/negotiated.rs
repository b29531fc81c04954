//! What an offer and its answer agreed on: all that a PeerConnection needs to know of SDP.

use portunus_rtp::{ExtensionMap, Mid, Pt, Rid, Ssrc};

/// The outcome of one offer/answer exchange, from the server's point of view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// The remote side's transport; one for all m-lines (BUNDLE, RFC 9143).
    pub transport: RemoteTransport,
    /// The m-lines in their order; rejected ones are `disabled`, so that indices stay.
    pub media: Vec<NegotiatedMedia>,
}

/// The remote side's ICE and DTLS parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTransport {
    /// Credentials; a change against the last negotiation is an ICE restart.
    pub ice: IceCredentials,
    /// Whether the remote side is ICE-lite.
    pub ice_lite: bool,
    /// Certificate fingerprints; one of them has to match (RFC 8122 section 5).
    pub fingerprints: Vec<Fingerprint>,
    /// The role that this side takes in the DTLS handshake.
    pub dtls_role: DtlsRole,
    /// Candidates found in the SDP, as the text after `a=`.
    pub candidates: Vec<String>,
}

/// An ICE user fragment and password (RFC 8839 section 5.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IceCredentials {
    /// 4 to 256 characters.
    pub ufrag: String,
    /// 22 to 256 characters.
    pub pwd: String,
}

/// A certificate's fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// The hash function.
    pub hash: FingerprintHash,
    /// Its output: 20 or 32 bytes.
    pub digest: Vec<u8>,
}

/// The hash functions accepted in fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FingerprintHash {
    Sha1,
    Sha256,
}

/// Who starts the DTLS handshake (RFC 5763 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DtlsRole {
    /// This side sends the ClientHello (`a=setup:active`).
    Client,
    /// This side waits for it (`a=setup:passive`).
    Server,
}

/// What an m-line carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Audio,
    Video,
    Data,
}

impl Kind {
    /// Its name: `audio`, `video` or `data`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Audio => "audio",
            Kind::Video => "video",
            Kind::Data => "data",
        }
    }
}

/// One m-line as agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiatedMedia {
    /// Its identification.
    pub mid: Mid,
    /// What it carries.
    pub kind: Kind,
    /// Rejected (port 0): nothing is sent or received.
    pub disabled: bool,
    /// The server sends on it.
    pub send: bool,
    /// The server receives on it.
    pub recv: bool,
    /// The agreed payload types in order of preference, RTX excluded (it is in [`Payload::rtx`]).
    pub payloads: Vec<Payload>,
    /// Header extensions and their numbers.
    pub extensions: ExtensionMap,
    /// SSRCs that the remote side declared, lowest simulcast layer first; empty with rids.
    pub remote_ssrcs: Vec<RemoteSsrc>,
    /// The rids that the remote side sends, lowest layer (substream 0) first; at most 3.
    pub rids: Vec<Rid>,
    /// The SSRC that the server sends with.
    pub local_ssrc: Ssrc,
    /// The SSRC that the server retransmits with, if RTX was agreed.
    pub local_rtx_ssrc: Option<Ssrc>,
    /// Data m-lines: the remote SCTP port (RFC 8841).
    pub sctp_port: u16,
    /// Data m-lines: the largest message that the remote side takes, in bytes.
    pub max_message_size: u32,
}

/// An SSRC of the remote side, with the one that repairs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteSsrc {
    /// The media stream.
    pub ssrc: Ssrc,
    /// Its RTX stream (`a=ssrc-group:FID`).
    pub rtx: Option<Ssrc>,
}

/// An agreed payload type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Its number.
    pub pt: Pt,
    /// What it means.
    pub codec: Codec,
    /// RTP clock in Hz.
    pub clock_rate: u32,
    /// The number of its RTX payload type (RFC 4588).
    pub rtx: Option<Pt>,
    /// Agreed feedback.
    pub feedback: Feedback,
}

/// RTCP feedback agreed for a payload type (RFC 4585, RFC 5104).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Feedback {
    pub nack: bool,
    pub pli: bool,
    pub fir: bool,
    pub remb: bool,
    pub transport_cc: bool,
}

/// The codecs that the server knows by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Codec {
    Opus,
    MultiOpus,
    G722,
    Pcmu,
    Pcma,
    L16,
    Isac,
    Red,
    TelephoneEvent,
    ComfortNoise,
    Vp8,
    Vp9,
    H264,
    H265,
    Av1,
}

impl Codec {
    /// Whether it is video.
    pub const fn is_video(self) -> bool {
        match self {
            Codec::Vp8 | Codec::Vp9 | Codec::H264 | Codec::H265 | Codec::Av1 => true,
            Codec::Opus
            | Codec::MultiOpus
            | Codec::G722
            | Codec::Pcmu
            | Codec::Pcma
            | Codec::L16
            | Codec::Isac
            | Codec::Red
            | Codec::TelephoneEvent
            | Codec::ComfortNoise => false,
        }
    }
}
