//! The two ends of a negotiation: this side's addresses, and the accepted descriptions of the far
//! end.

use std::net::IpAddr;

use crate::description::Description;
use crate::negotiated::Kind;

/// A port for RTP and one for RTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LocalPorts {
    pub rtp: u16,
    pub rtcp: u16,
}

/// The ports for each kind of media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Ports {
    pub audio: Option<LocalPorts>,
    pub video: Option<LocalPorts>,
}

impl Ports {
    /// Returns those of one kind.
    pub fn of(&self, kind: Kind) -> Option<LocalPorts> {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => None,
        }
    }
}

/// The address and ports where this side receives media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalEnd {
    /// The address announced to far ends.
    pub address: IpAddr,
    /// The ports. There have to be some for each active kind of media.
    pub ports: Ports,
    /// Whether RTP and RTCP share a port with far ends that offer it.
    pub rtcp_mux: bool,
}

/// The use of SRTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SrtpUse {
    Optional,
    Mandatory,
}

impl SrtpUse {
    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            SrtpUse::Optional => "sdes_optional",
            SrtpUse::Mandatory => "sdes_mandatory",
        }
    }
}

/// An accepted description of a far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The offer or answer for the browser.
    pub description: Description,
    /// The use of SRTP, if a key was accepted.
    pub srtp: Option<SrtpUse>,
}
