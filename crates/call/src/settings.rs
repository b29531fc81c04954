//! The settings that the calls of a plugin share.

use std::net::IpAddr;
use std::time::Duration;

use portunus_audio::AudioThreads;
use portunus_core::Networks;
use portunus_core::configuration::PortRange;
use portunus_core::media::MediaPlane;
use portunus_core::sdp::plain::FarSession;

use crate::CallError;

/// The settings that the calls of a plugin share.
#[derive(Debug, Clone)]
pub struct CallSettings {
    /// The media plane of the legs.
    pub media: MediaPlane,
    /// The name or address of the interface for RTP. `None` for all.
    pub interface: Option<String>,
    /// The address that far ends get. Far ends of the other family get the address that the
    /// system sends from, if `interface` is `None`.
    pub address: IpAddr,
    /// The range of ports for RTP.
    pub ports: PortRange,
    /// The DSCP of audio to far ends, 0 to 63.
    pub dscp_audio: u8,
    /// The same of video.
    pub dscp_video: u8,
    /// RTP goes to the source of the far end's RTP, if that differs from its description.
    pub latching: bool,
    /// The networks that far ends and forwarders may be in.
    pub networks: Networks,
    /// Answers to far ends have one payload type of each codec, instead of all of the client.
    pub one_of_each: bool,
    /// Audio is transcoded if the two sides have no codec in common, and there are threads for it.
    pub transcodes: bool,
    /// The threads that transcode.
    pub audio: Option<AudioThreads>,
    /// The silence of a far end after which an event is sent. `None` disables it.
    pub silence: Option<Duration>,
    /// Keys of the client are reported, too.
    pub hears_client: bool,
}

impl CallSettings {
    /// Checks that media may be sent to the addresses of a far end.
    pub(crate) fn check_far(&self, far: &FarSession) -> Result<(), CallError> {
        let used = far.media.iter().filter(|media| media.is_usable());
        let mut addresses = used.flat_map(|media| [media.rtp, media.rtcp]).flatten();
        match addresses.find(|address| !self.networks.allow(address.ip())) {
            Some(address) => Err(CallError::Network(address.ip())),
            None => Ok(()),
        }
    }
}
