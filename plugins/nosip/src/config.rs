//! The configuration of the plugin.

use std::net::IpAddr;

use portunus_audio::AudioThreads;
use portunus_call::CallSettings;
use portunus_core::Networks;
use portunus_core::configuration::{Configuration, PortRange, Probe, Section};
use portunus_core::media::MediaPlane;
use portunus_core::media::ingest::{IngestError, interface_address, probe_interface};
use serde::{Deserialize, Serialize};

/// The plugin's section of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoSipConfig {
    /// The address for RTP, or the name of an interface. `None` for all.
    #[serde(with = "portunus_core::configuration::optional")]
    pub local_ip: Option<String>,
    /// The address that far ends get. `None` for that of `local_ip`, else the server's own.
    #[serde(with = "portunus_core::configuration::optional")]
    pub sdp_ip: Option<IpAddr>,
    /// The range of ports for RTP.
    pub rtp_port_range: PortRange,
    /// The DSCP of audio to far ends.
    pub dscp_audio_rtp: u8,
    /// The same of video.
    pub dscp_video_rtp: u8,
    /// RTP goes to the source of the far end's RTP, if that differs from its description.
    pub latching: bool,
    /// Audio is transcoded if the two sides have no codec in common.
    pub transcoding: bool,
    /// Clients without the right to forward may call, too.
    pub public: bool,
}

impl Configuration for NoSipConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let nosip: Self = section.keys();
        for (key, dscp) in [
            ("dscp_audio_rtp", nosip.dscp_audio_rtp),
            ("dscp_video_rtp", nosip.dscp_video_rtp),
        ] {
            section.range(key, u64::from(dscp), 0..=63);
        }
        let range = nosip.rtp_port_range;
        section.takes_pairs("rtp_port_range", range);
        let text = "expected two ports at least, the first of them even";
        section.require(&["rtp_port_range"], range.first() < range.last(), text);
        nosip
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(name) = &self.local_ip {
            probe_interface(probe, "local_ip", name);
        }
    }
}

impl NoSipConfig {
    /// Returns the settings that all calls share.
    pub(crate) fn calls(
        &self,
        media: MediaPlane,
        networks: Networks,
        audio: Option<AudioThreads>,
    ) -> CallSettings {
        CallSettings {
            interface: self.local_ip.clone(),
            address: self.address().unwrap_or_else(|| media.address()),
            ports: self.rtp_port_range,
            dscp_audio: self.dscp_audio_rtp,
            dscp_video: self.dscp_video_rtp,
            latching: self.latching,
            networks,
            one_of_each: false,
            transcodes: self.transcoding,
            audio,
            silence: None,
            hears_client: false,
            media,
        }
    }

    /// Returns the configured address for far ends, if it exists.
    fn address(&self) -> Option<IpAddr> {
        if self.sdp_ip.is_some() {
            return self.sdp_ip;
        }
        let name = self.local_ip.as_deref()?;
        if let Ok(address) = name.parse::<IpAddr>() {
            return Some(address).filter(|address| !address.is_unspecified());
        }
        let log = |error: &IngestError| {
            tracing::warn!("nosip.local_ip: {error}; the server's own address is told");
        };
        interface_address(name).inspect_err(log).ok()
    }
}
