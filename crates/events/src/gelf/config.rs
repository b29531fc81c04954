//! `[events.gelf]`.

use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

use super::link::Link;

/// The shortest and the longest part of a message.
pub(super) const LENGTHS: std::ops::RangeInclusive<u64> = 100..=65_000;

/// The configuration of the Graylog Extended Log Format (GELF).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct GelfConfig {
    /// The name or address of the receiver. Empty means none.
    pub(super) backend: String,
    pub(super) port: u16,
    pub(super) protocol: Protocol,
    /// The size of a datagram. A longer message takes several.
    pub(super) max_message_len: u64,
    /// Messages over UDP are compressed.
    pub(super) compress: bool,
    /// 1 (fast) to 9 (small).
    pub(super) compression: u32,
}

/// The transport of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Udp,
    Tcp,
}

impl Default for GelfConfig {
    fn default() -> Self {
        GelfConfig {
            backend: String::new(),
            port: 12_201,
            protocol: Protocol::Udp,
            max_message_len: 500,
            compress: false,
            compression: 6,
        }
    }
}

impl Configuration for GelfConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let gelf: Self = section.keys();
        section.range("port", gelf.port, 1..=65_535);
        section.range("max_message_len", gelf.max_message_len, LENGTHS);
        section.range("compression", gelf.compression, 1..=9);
        let compresses = !gelf.compress || gelf.protocol == Protocol::Udp;
        let udp = "expected false with protocol = \"tcp\": GELF compresses over UDP only";
        section.require(&["compress", "protocol"], compresses, udp);
        gelf
    }

    fn probe(&self, probe: &mut Probe) {
        let (settings, address) = (self.clone(), format!("{}:{}", self.backend, self.port));
        probe.connects("backend", address, async move {
            let connected = Link::connect(&settings).await;
            connected.map(drop).map_err(|error| error.to_string())
        });
    }
}
