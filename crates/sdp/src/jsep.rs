//! Offers and answers as the core exchanges them with whoever owns the media lines.

use portunus_rtp::Mid;

use crate::{Description, SdpType, Simulcast};

/// An offer or answer of the client, checked and stripped of what is the core's business.
#[derive(Debug, Clone, PartialEq)]
pub struct Jsep {
    /// Offer or answer.
    pub kind: SdpType,
    /// The m-lines.
    pub description: Description,
    /// The m-lines that are sent as simulcast.
    pub simulcast: Vec<Simulcast>,
    /// The m-lines that are sent as SVC.
    pub svc: Vec<Svc>,
    /// The media is encrypted end to end.
    pub e2ee: bool,
    /// The PeerConnection exists already, and this changes it.
    pub update: bool,
    /// The client restarts ICE with it.
    pub restart: bool,
}

/// An m-line that the client sends as SVC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Svc {
    /// The m-line.
    pub mid: Mid,
    /// The scalability mode, such as `L3T3`.
    pub mode: String,
}

/// Our offer or answer, to be sent to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalJsep {
    /// Offer or answer.
    pub kind: SdpType,
    /// The description's text.
    pub sdp: String,
    /// The media is encrypted end to end.
    pub e2ee: bool,
    /// Our candidates, if the description does not have them.
    pub trickled: Option<LocalCandidates>,
}

/// Our candidates that are sent one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalCandidates {
    /// The m-line that they are for: the first, whose transport all share. `None` if there is no m-line.
    pub mid: Option<Mid>,
    /// The text of each, as it stands after `a=`.
    pub candidates: Vec<String>,
}

impl LocalJsep {
    /// Tells the client that the media is encrypted end to end, if `e2ee`.
    #[must_use]
    pub fn with_e2ee(mut self, e2ee: bool) -> Self {
        self.e2ee |= e2ee;
        self
    }

    /// The description's text.
    pub fn sdp(&self) -> &str {
        &self.sdp
    }
}
