//! What plugins see of SDP and make: the media lines, nothing of transport.

use std::fmt;

use portunus_rtp::{ExtensionKind, Mid, Pt};

use crate::codecs::CodecSpec;
use crate::negotiated::Kind;

/// The media side of a session description.
///
/// ICE, DTLS, BUNDLE, RTX, SSRCs, rids and FEC are not in it: the core handles them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// The `o=` line.
    pub origin: Origin,
    /// The `s=` line; if it is empty the server's own name is written.
    pub name: String,
    /// Session attributes that are nobody's here; they are passed on.
    pub attributes: Vec<Attribute>,
    /// The m-lines, in their order.
    pub media: Vec<Media>,
}

impl Description {
    /// The m-line with identification `mid`.
    pub fn media_by_mid(&self, mid: Mid) -> Option<&Media> {
        self.media.iter().find(|media| media.mid == mid)
    }

    /// The m-lines of `kind` that are not rejected.
    pub fn active(&self, kind: Kind) -> impl Iterator<Item = &Media> {
        self.media
            .iter()
            .filter(move |media| media.kind == kind && !media.rejected)
    }
}

/// Who made a description (`o=`, RFC 8866 section 5.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// `-` if empty.
    pub username: String,
    /// Digits; if empty, the session gives its own.
    pub session_id: String,
    /// Grows with each description of a session.
    pub version: u64,
    /// The address; replaced by the server's when written.
    pub address: String,
}

/// One m-line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// What it carries.
    pub kind: Kind,
    /// Its identification.
    pub mid: Mid,
    /// Port 0: the m-line only keeps its place.
    pub rejected: bool,
    /// Who sends, from the point of view of the description's maker.
    pub direction: Direction,
    /// The transport protocol, such as `UDP/TLS/RTP/SAVPF`.
    pub proto: String,
    /// Data and rejected m-lines: what stands after the protocol (`webrtc-datachannel`). On other m-lines the
    /// payload types of `codecs` stand there.
    pub format: String,
    /// Audio and video: the codecs in order of preference, without RTX and FEC.
    pub codecs: Vec<CodecSpec>,
    /// Header extensions.
    pub extensions: Vec<Extmap>,
    /// The stream and track that the m-line belongs to.
    pub msid: Option<Msid>,
    /// The `b=` line.
    pub bandwidth: Option<Bandwidth>,
    /// Other attributes (such as `ptime`); they are passed on.
    pub attributes: Vec<Attribute>,
}

impl Media {
    /// The codec with payload type `pt`.
    pub fn codec(&self, pt: Pt) -> Option<&CodecSpec> {
        self.codecs.iter().find(|codec| codec.pt == pt)
    }

    /// Whether header extension `kind` is there.
    pub fn has_extension(&self, kind: ExtensionKind) -> bool {
        self.extensions
            .iter()
            .any(|extmap| extmap.kind() == Some(kind))
    }

    /// The first value of attribute `name`, if it is there and has one.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self
            .attributes
            .iter()
            .find(|a| a.name.eq_ignore_ascii_case(name))?;
        found.value.as_deref()
    }
}

/// Who sends (RFC 8866 section 6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)]
pub enum Direction {
    #[default]
    SendRecv,
    SendOnly,
    RecvOnly,
    Inactive,
}

impl Direction {
    /// The direction in which one side sends and receives as said.
    pub const fn new(send: bool, recv: bool) -> Self {
        match (send, recv) {
            (true, true) => Direction::SendRecv,
            (true, false) => Direction::SendOnly,
            (false, true) => Direction::RecvOnly,
            (false, false) => Direction::Inactive,
        }
    }

    /// Whether the description's maker sends.
    pub const fn sends(self) -> bool {
        matches!(self, Direction::SendRecv | Direction::SendOnly)
    }

    /// Whether the description's maker receives.
    pub const fn receives(self) -> bool {
        matches!(self, Direction::SendRecv | Direction::RecvOnly)
    }

    /// The same fact from the other side's point of view.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Direction::new(self.receives(), self.sends())
    }

    /// What to answer to an offer of `self` when `wanted` is wished for (RFC 3264 section 6.1).
    #[must_use]
    pub const fn answer(self, wanted: Direction) -> Self {
        Direction::new(
            wanted.sends() && self.receives(),
            wanted.receives() && self.sends(),
        )
    }

    /// The attribute's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Direction::SendRecv => "sendrecv",
            Direction::SendOnly => "sendonly",
            Direction::RecvOnly => "recvonly",
            Direction::Inactive => "inactive",
        }
    }

    /// The direction with this attribute name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::SendRecv,
            Self::SendOnly,
            Self::RecvOnly,
            Self::Inactive,
        ]
        .into_iter()
        .find(|direction| direction.as_str().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A header extension's number (`a=extmap`, RFC 8285 section 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extmap {
    /// 1 to 255.
    pub id: u8,
    /// Who may send it, if that was said.
    pub direction: Option<Direction>,
    /// What it is, with the extension's attributes if there are any.
    pub uri: String,
}

impl Extmap {
    /// A header extension that the server knows.
    pub fn new(kind: ExtensionKind, id: u8) -> Self {
        Extmap {
            id,
            direction: None,
            uri: kind.uri().to_owned(),
        }
    }

    /// Which of the extensions known to the server it is.
    pub fn kind(&self) -> Option<ExtensionKind> {
        ExtensionKind::from_uri(self.uri.split(' ').next()?)
    }
}

/// The stream and track that an m-line belongs to (`a=msid`, RFC 8830).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Msid {
    /// The stream (or `-`).
    pub stream: String,
    /// The track.
    pub track: String,
}

/// A bandwidth limit (`b=`); only `AS` (kbit/s) and `TIAS` (bit/s) are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bandwidth {
    /// `AS` or `TIAS`.
    pub modifier: String,
    /// In the modifier's unit.
    pub value: u64,
}

/// An `a=` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// What stands before the first colon.
    pub name: String,
    /// What stands after it.
    pub value: Option<String>,
}
