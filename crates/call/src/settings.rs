//! What the calls of a plugin have in common.

use std::net::IpAddr;
use std::time::Duration;

use portunus_audio::AudioThreads;
use portunus_core::Networks;
use portunus_core::configuration::PortRange;
use portunus_core::media::MediaPlane;
use portunus_core::sdp::plain::FarSession;

use crate::CallError;

/// What the calls of a plugin have in common.
#[derive(Debug, Clone)]
pub struct CallSettings {
    /// Where the legs live.
    pub media: MediaPlane,
    /// The name or address of the interface for RTP; none: all.
    pub interface: Option<String>,
    /// The address that far ends are told. Those of the other family are told the one that the system sends from, if `interface` is
    /// none.
    pub address: IpAddr,
    /// Where ports are taken from.
    pub ports: PortRange,
    /// The DSCP of audio to far ends, 0 to 63.
    pub dscp_audio: u8,
    /// The same of video.
    pub dscp_video: u8,
    /// RTP is sent where it comes from, when that is not where the description says.
    pub latching: bool,
    /// The networks that far ends and forwarders may be in.
    pub networks: Networks,
    /// Answers to far ends have one payload type of each codec, instead of all that the client answered.
    pub one_of_each: bool,
    /// Audio is transcoded where the two sides have no codec in common, if there are threads for that.
    pub transcodes: bool,
    /// Where audio is transcoded.
    pub audio: Option<AudioThreads>,
    /// A far end that is silent for so long is told; none: never.
    pub silence: Option<Duration>,
    /// Keys that the client presses are told, too.
    pub hears_client: bool,
}

impl CallSettings {
    /// Checks that media may be sent where a far end says.
    pub(crate) fn check_far(&self, far: &FarSession) -> Result<(), CallError> {
        let used = far.media.iter().filter(|media| media.is_usable());
        let mut addresses = used.flat_map(|media| [media.rtp, media.rtcp]).flatten();
        match addresses.find(|address| !self.networks.allow(address.ip())) {
            Some(address) => Err(CallError::Network(address.ip())),
            None => Ok(()),
        }
    }
}
