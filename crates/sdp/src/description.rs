//! The part of SDP that plugins read and write: the media lines without any transport.

use std::fmt;

use portunus_rtp::{ExtensionKind, Mid, Pt};

use crate::codecs::CodecSpec;
use crate::negotiated::Kind;

/// The media side of a session description.
///
/// It has no ICE, DTLS, BUNDLE, RTX, SSRCs, rids and FEC, which the core handles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// The `o=` line.
    pub origin: Origin,
    /// The `s=` line. If it is empty, the server's own name is written.
    pub name: String,
    /// Session attributes without a meaning here. They are passed on.
    pub attributes: Vec<Attribute>,
    /// The m-lines, in their order.
    pub media: Vec<Media>,
}

impl Description {
    /// Returns the m-line with this mid.
    pub fn media_by_mid(&self, mid: Mid) -> Option<&Media> {
        self.media.iter().find(|media| media.mid == mid)
    }

    /// Returns the active m-lines of `kind`.
    pub fn active(&self, kind: Kind) -> impl Iterator<Item = &Media> {
        self.media
            .iter()
            .filter(move |media| media.kind == kind && !media.rejected)
    }
}

/// The author of a description (`o=`, RFC 8866 section 5.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The user name. `-` if empty.
    pub username: String,
    /// The session id in digits. If empty, that of the session is written.
    pub session_id: String,
    /// The version, which grows with each description of a session.
    pub version: u64,
    /// The address. The server's is written instead.
    pub address: String,
}

/// One m-line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// The kind of media.
    pub kind: Kind,
    /// The mid.
    pub mid: Mid,
    /// Port 0: the m-line only keeps its place.
    pub rejected: bool,
    /// The direction from the author's point of view.
    pub direction: Direction,
    /// The transport protocol, such as `UDP/TLS/RTP/SAVPF`.
    pub proto: String,
    /// For data and rejected m-lines, the text after the protocol (`webrtc-datachannel`). Other
    /// m-lines have the payload types of `codecs` there.
    pub format: String,
    /// For audio and video, the codecs in order of preference, without RTX and FEC.
    pub codecs: Vec<CodecSpec>,
    /// Header extensions.
    pub extensions: Vec<Extmap>,
    /// The stream and track of the m-line.
    pub msid: Option<Msid>,
    /// The `b=` line.
    pub bandwidth: Option<Bandwidth>,
    /// Other attributes, such as `ptime`. They are passed on.
    pub attributes: Vec<Attribute>,
}

impl Media {
    /// Returns the codec with payload type `pt`.
    pub fn codec(&self, pt: Pt) -> Option<&CodecSpec> {
        self.codecs.iter().find(|codec| codec.pt == pt)
    }

    /// Returns whether it has the header extension `kind`.
    pub fn has_extension(&self, kind: ExtensionKind) -> bool {
        self.extensions
            .iter()
            .any(|extmap| extmap.kind() == Some(kind))
    }

    /// Returns the first value of attribute `name`, if there is one.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self
            .attributes
            .iter()
            .find(|a| a.name.eq_ignore_ascii_case(name))?;
        found.value.as_deref()
    }
}

/// A direction (RFC 8866 section 6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Direction {
    #[default]
    SendRecv,
    SendOnly,
    RecvOnly,
    Inactive,
}

impl Direction {
    /// Makes the direction of a side that sends or receives.
    pub const fn new(send: bool, recv: bool) -> Self {
        match (send, recv) {
            (true, true) => Direction::SendRecv,
            (true, false) => Direction::SendOnly,
            (false, true) => Direction::RecvOnly,
            (false, false) => Direction::Inactive,
        }
    }

    /// Returns whether the author sends.
    pub const fn sends(self) -> bool {
        matches!(self, Direction::SendRecv | Direction::SendOnly)
    }

    /// Returns whether the author receives.
    pub const fn receives(self) -> bool {
        matches!(self, Direction::SendRecv | Direction::RecvOnly)
    }

    /// Returns the direction from the other side's point of view.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Direction::new(self.receives(), self.sends())
    }

    /// Returns the answer to an offer of `self` if `wanted` is preferred (RFC 3264 section 6.1).
    #[must_use]
    pub const fn answer(self, wanted: Direction) -> Self {
        Direction::new(
            wanted.sends() && self.receives(),
            wanted.receives() && self.sends(),
        )
    }

    /// Returns the name of the attribute.
    pub const fn as_str(self) -> &'static str {
        match self {
            Direction::SendRecv => "sendrecv",
            Direction::SendOnly => "sendonly",
            Direction::RecvOnly => "recvonly",
            Direction::Inactive => "inactive",
        }
    }

    /// Returns the direction with this attribute name.
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

/// The id of a header extension (`a=extmap`, RFC 8285 section 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extmap {
    /// The id, 1 to 255.
    pub id: u8,
    /// The direction, if there is one.
    pub direction: Option<Direction>,
    /// The URI, followed by the extension's attributes if there are any.
    pub uri: String,
}

impl Extmap {
    /// Makes one of a known header extension.
    pub fn new(kind: ExtensionKind, id: u8) -> Self {
        Extmap {
            id,
            direction: None,
            uri: kind.uri().to_owned(),
        }
    }

    /// Returns which known extension it is.
    pub fn kind(&self) -> Option<ExtensionKind> {
        ExtensionKind::from_uri(self.uri.split(' ').next()?)
    }
}

/// The stream and track of an m-line (`a=msid`, RFC 8830).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Msid {
    /// The stream, or `-`.
    pub stream: String,
    /// The track.
    pub track: String,
}

/// A bandwidth limit (`b=`); only `AS` (kbit/s) and `TIAS` (bit/s) are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bandwidth {
    /// `AS` or `TIAS`.
    pub modifier: String,
    /// The value, in the unit of the modifier.
    pub value: u64,
}

/// An `a=` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The name: the text before the first colon.
    pub name: String,
    /// The value: the text after it.
    pub value: Option<String>,
}
