//! The section `[livekit.ingress]`.

use serde::{Deserialize, Serialize};

/// Media that comes into rooms by WHIP, RTMP and from URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IngressConfig {
    /// The most ingresses. 0 disables the service.
    pub max: usize,
    /// The URL for WHIP that clients get, without the stream key. Empty means the address and the
    /// port of this server.
    pub whip_url: String,
    /// The first port for RTMP. 0 disables RTMP.
    pub rtmp_port: u16,
    /// The number of ports for RTMP from the first one on. Each ingress takes one.
    pub rtmp_ports: u16,
    /// The host of the URLs for RTMP that clients get. Empty means the address of this server.
    pub rtmp_host: String,
}

impl IngressConfig {
    /// Returns whether a port is one for RTMP.
    pub(super) fn has_port(&self, port: u16) -> bool {
        let nth = port.checked_sub(self.rtmp_port);
        self.rtmp_port > 0 && nth.is_some_and(|nth| nth < self.rtmp_ports)
    }
}

impl Default for IngressConfig {
    fn default() -> Self {
        IngressConfig {
            max: 100,
            whip_url: String::new(),
            rtmp_port: 0,
            rtmp_ports: 10,
            rtmp_host: String::new(),
        }
    }
}
