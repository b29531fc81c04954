//! Offers and answers between the core and the owner of the media lines.

use portunus_rtp::Mid;

use crate::{Description, SdpType, Simulcast};

/// A checked offer or answer of the client, without the parts that the core handles.
#[derive(Debug, Clone, PartialEq)]
pub struct Jsep {
    /// Offer or answer.
    pub kind: SdpType,
    /// The m-lines.
    pub description: Description,
    /// The m-lines with simulcast.
    pub simulcast: Vec<Simulcast>,
    /// The m-lines with SVC.
    pub svc: Vec<Svc>,
    /// Whether the media is encrypted end to end.
    pub e2ee: bool,
    /// Whether it changes an existing PeerConnection.
    pub update: bool,
    /// Whether the client restarts ICE.
    pub restart: bool,
}

/// An m-line of the client with SVC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Svc {
    /// The mid.
    pub mid: Mid,
    /// The scalability mode, such as `L3T3`.
    pub mode: String,
}

/// An offer or answer of this side for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalJsep {
    /// Offer or answer.
    pub kind: SdpType,
    /// The text of the description.
    pub sdp: String,
    /// Whether the media is encrypted end to end.
    pub e2ee: bool,
    /// This side's candidates, if the description does not have them.
    pub trickled: Option<LocalCandidates>,
}

/// This side's candidates that are sent one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalCandidates {
    /// The first m-line, whose transport all share. `None` if there is no m-line.
    pub mid: Option<Mid>,
    /// The text of each after `a=`.
    pub candidates: Vec<String>,
}

impl LocalJsep {
    /// Adds that the media is encrypted end to end, if `e2ee`.
    #[must_use]
    pub fn with_e2ee(mut self, e2ee: bool) -> Self {
        self.e2ee |= e2ee;
        self
    }

    /// Returns the text of the description.
    pub fn sdp(&self) -> &str {
        &self.sdp
    }
}
