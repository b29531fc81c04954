//! How a leg is opened.

use std::ops::RangeInclusive;
use std::time::Duration;

use portunus_media::leg::LegNews;
use tokio::sync::mpsc;

/// What a leg carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Medium {
    Audio,
    Video,
}

/// How a leg is opened.
#[derive(Debug, Clone)]
pub struct LegOptions {
    /// What it carries.
    pub medium: Medium,
    /// Where its ports are taken from: an even one for RTP and the next one for RTCP.
    pub ports: RangeInclusive<u16>,
    /// The name or address of the interface to listen on; none: all, IPv4 and IPv6.
    pub interface: Option<String>,
    /// The DSCP of what it sends (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// The media worker to live on: best that of the PeerConnection that it is joined to
    /// ([`portunus_media::PeerId::worker`]), for packets need not go from one to another then. None: the one with the least to do.
    pub worker: Option<usize>,
    /// [`crate::LegEvent::Silent`] is told after so long without a valid packet; none: never.
    pub silence: Option<Duration>,
    /// Keys that the near side presses are told, too ([`crate::LegEvent::Key`]).
    pub hears_source: bool,
    /// As long as [`crate::LegRemote::rtp`] does not say where the far end is, whoever sends valid packets first is heard. Else nobody
    /// is.
    pub hears_unknown: bool,
    /// Whom to tell what happens; legs may share it. What finds no room is lost, so give it some: 64 for a call.
    pub tell: mpsc::Sender<LegNews>,
}

impl LegOptions {
    /// A leg on any interface, from ports that are usual for RTP (10000 to 60000).
    pub fn new(medium: Medium, tell: mpsc::Sender<LegNews>) -> Self {
        Self {
            medium,
            ports: 10_000..=60_000,
            interface: None,
            dscp: 0,
            worker: None,
            silence: None,
            hears_source: false,
            hears_unknown: false,
            tell,
        }
    }
}
