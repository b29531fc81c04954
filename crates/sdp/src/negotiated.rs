//! The result of an offer and its answer: all that a PeerConnection needs from SDP.

use portunus_rtp::{ExtensionMap, Mid, Pt, Rid, Ssrc};

/// The result of an offer/answer exchange, from the server's point of view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// The remote side's transport, common to all m-lines (BUNDLE, RFC 9143).
    pub transport: RemoteTransport,
    /// The m-lines in order. Rejected ones are `disabled`, so that indices stay.
    pub media: Vec<NegotiatedMedia>,
}

/// The remote side's ICE and DTLS parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTransport {
    /// The credentials. Other ones than before restart ICE.
    pub ice: IceCredentials,
    /// Whether the remote side is ICE-lite.
    pub ice_lite: bool,
    /// The certificate fingerprints, of which one has to match (RFC 8122 section 5).
    pub fingerprints: Vec<Fingerprint>,
    /// This side's role in the DTLS handshake.
    pub dtls_role: DtlsRole,
    /// The candidates in the SDP, as the text after `a=`.
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
    /// The digest: 20 or 32 bytes.
    pub digest: Vec<u8>,
}

/// The hash functions accepted in fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FingerprintHash {
    Sha1,
    Sha256,
}

/// The role in the DTLS handshake (RFC 5763 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DtlsRole {
    /// This side sends the ClientHello (`a=setup:active`).
    Client,
    /// This side waits for it (`a=setup:passive`).
    Server,
}

/// The kind of media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Audio,
    Video,
    Data,
}

impl Kind {
    /// Returns the name: `audio`, `video` or `data`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Audio => "audio",
            Kind::Video => "video",
            Kind::Data => "data",
        }
    }
}

/// A negotiated m-line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiatedMedia {
    /// The mid.
    pub mid: Mid,
    /// The kind of media.
    pub kind: Kind,
    /// Rejected (port 0): no media flows.
    pub disabled: bool,
    /// Whether the server sends.
    pub send: bool,
    /// Whether the server receives.
    pub recv: bool,
    /// The agreed payload types in order of preference, without RTX (see [`Payload::rtx`]).
    pub payloads: Vec<Payload>,
    /// The ids of header extensions.
    pub extensions: ExtensionMap,
    /// The SSRCs declared by the remote side, the lowest simulcast layer first. Empty with rids.
    pub remote_ssrcs: Vec<RemoteSsrc>,
    /// The rids of the remote side, the lowest layer (substream 0) first; at most 3.
    pub rids: Vec<Rid>,
    /// The SSRC of the server's stream.
    pub local_ssrc: Ssrc,
    /// The SSRC of the server's retransmissions, if RTX was agreed.
    pub local_rtx_ssrc: Option<Ssrc>,
    /// For data m-lines, the remote SCTP port (RFC 8841).
    pub sctp_port: u16,
    /// For data m-lines, the largest message that the remote side accepts, in bytes.
    pub max_message_size: u32,
}

/// An SSRC of the remote side, with its repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteSsrc {
    /// The media stream.
    pub ssrc: Ssrc,
    /// The SSRC of its RTX stream (`a=ssrc-group:FID`).
    pub rtx: Option<Ssrc>,
}

/// An agreed payload type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The number.
    pub pt: Pt,
    /// The codec.
    pub codec: Codec,
    /// The RTP clock rate in Hz.
    pub clock_rate: u32,
    /// The payload type of its RTX (RFC 4588).
    pub rtx: Option<Pt>,
    /// Agreed feedback.
    pub feedback: Feedback,
}

/// RTCP feedback agreed for a payload type (RFC 4585, RFC 5104).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Feedback {
    pub nack: bool,
    pub pli: bool,
    pub fir: bool,
    pub remb: bool,
    pub transport_cc: bool,
}

/// The known codecs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
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
    /// Returns whether it is video.
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
