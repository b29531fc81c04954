//! What negotiations with far ends are told of this side, and what they tell.

use std::net::IpAddr;

use crate::description::Description;
use crate::negotiated::Kind;

/// A port for RTP and one for RTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LocalPorts {
    pub rtp: u16,
    pub rtcp: u16,
}

/// The ports for each kind of media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Ports {
    pub audio: Option<LocalPorts>,
    pub video: Option<LocalPorts>,
}

impl Ports {
    /// Those of one kind.
    pub fn of(&self, kind: Kind) -> Option<LocalPorts> {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => None,
        }
    }
}

/// Where this side takes media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalEnd {
    /// The address that far ends are told.
    pub address: IpAddr,
    /// The ports; there have to be some for each kind of media that is in use.
    pub ports: Ports,
    /// Far ends that offer to have RTP and RTCP on one port get it so.
    pub rtcp_mux: bool,
}

/// How SRTP is used, where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum SrtpUse {
    Optional,
    Mandatory,
}

impl SrtpUse {
    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            SrtpUse::Optional => "sdes_optional",
            SrtpUse::Mandatory => "sdes_mandatory",
        }
    }
}

/// A far end's description that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// What the browser is to be offered or answered.
    pub description: Description,
    /// How SRTP is used, if a key was accepted.
    pub srtp: Option<SrtpUse>,
}
