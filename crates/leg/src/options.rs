//! The options of a leg.

use std::ops::RangeInclusive;
use std::time::Duration;

use portunus_media::leg::LegNews;
use tokio::sync::mpsc;

/// The medium of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Medium {
    Audio,
    Video,
}

/// The options of a leg.
#[derive(Debug, Clone)]
pub struct LegOptions {
    /// The medium.
    pub medium: Medium,
    /// The range of its ports: an even one for RTP and the next one for RTCP.
    pub ports: RangeInclusive<u16>,
    /// The name or address of the interface. `None` for all, IPv4 and IPv6.
    pub interface: Option<String>,
    /// The DSCP of what it sends (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// The media worker: best that of the PeerConnection it is joined to
    /// ([`portunus_media::PeerId::worker`]), so that packets stay on one worker. `None` for the one
    /// with the lowest load.
    pub worker: Option<usize>,
    /// The time without a valid packet after which [`crate::LegEvent::Silent`] is sent. `None`
    /// disables it.
    pub silence: Option<Duration>,
    /// Keys of the near side are reported, too ([`crate::LegEvent::Key`]).
    pub hears_source: bool,
    /// Until [`crate::LegRemote::rtp`] has an address, the first sender of valid packets is
    /// accepted. Otherwise nobody is.
    pub hears_unknown: bool,
    /// The channel of events, which legs may share. Events beyond its size are lost: 64 are enough
    /// for a call.
    pub tell: mpsc::Sender<LegNews>,
}

impl LegOptions {
    /// Makes the options of a leg on any interface, with the usual ports of RTP (10000 to 60000).
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
