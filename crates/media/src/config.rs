//! The configuration of the media plane.

use std::net::IpAddr;
use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Protocol, Section};
use serde::{Deserialize, Serialize};

use crate::{MediaError, MediaIdentity};

/// The configuration of the media plane. Every key has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MediaConfig {
    /// The number of worker threads. 0 means one for each core.
    pub workers: usize,
    /// Pin worker n to core n.
    pub pin: bool,
    /// The UDP port of worker 0; worker n uses port + n. 0 lets the kernel choose.
    pub port: u16,
    /// All workers share [`MediaConfig::port`], and [`MediaConfig::ice_tcp_port`].
    pub one_port: bool,
    /// Addresses to bind. Empty means those of all interfaces, found at start.
    pub bind: Vec<IpAddr>,
    /// 1:1 NAT: addresses that clients are told instead of the bound ones, with the same port
    /// unless one is given. In a file they may be names, so the caller that resolves names reads
    /// them.
    #[serde(skip)]
    pub announced: Vec<AnnouncedAddress>,
    /// Loopback addresses become candidates, too.
    pub loopback: bool,
    /// IPv6 addresses become candidates, too.
    pub ipv6: bool,
    /// Answer connectivity checks only (RFC 8445 section 2.5).
    pub ice_lite: bool,
    /// Only relayed addresses are offered and used.
    pub force_relay: bool,
    /// mDNS names in clients' candidates are resolved.
    pub mdns: bool,
    /// Peers may connect by TCP (RFC 6544), in case UDP is blocked.
    pub ice_tcp: bool,
    /// The TCP port of worker 0; worker n uses port + n. 0 means the number of the UDP port.
    pub ice_tcp_port: u16,
    /// A PEM file with the DTLS certificate. Without one, a certificate is generated at start.
    #[serde(with = "portunus_config::optional")]
    pub certificate: Option<PathBuf>,
    /// A PEM file with its key. Both files are given, or neither.
    #[serde(with = "portunus_config::optional")]
    pub key: Option<PathBuf>,
    /// Layers are chosen, and publishers are asked for less, according to the links of viewers.
    pub bandwidth_adaptation: bool,
    /// How long an idle worker polls before it sleeps, in µs. 0 means that it sleeps immediately.
    pub busy_poll_us: u32,
    /// Workers have priority over ordinary threads (SCHED_FIFO), if the process is permitted to set
    /// that.
    pub real_time: bool,
    /// The interval of transport-wide feedback, in ms.
    pub twcc_period_ms: u32,
    /// The time without media after which silence is reported, in ms. 0 means one second.
    pub no_media_ms: u32,
    /// The number of lost packets per second that is reported as a slow link. 0 disables it.
    pub slow_link_threshold: u32,
}

/// An address that clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedAddress {
    /// The bound address that it replaces. `None` means all of its family.
    pub bound: Option<IpAddr>,
    /// The announced address.
    pub ip: IpAddr,
    /// The port of worker 0 as clients see it. `None` means the bound one.
    pub port: Option<u16>,
}

impl Default for MediaConfig {
    fn default() -> Self {
        Self {
            workers: 0,
            pin: true,
            port: 10_000,
            one_port: false,
            bind: Vec::new(),
            announced: Vec::new(),
            loopback: true,
            ipv6: true,
            ice_lite: false,
            force_relay: false,
            mdns: true,
            ice_tcp: false,
            ice_tcp_port: 0,
            certificate: None,
            key: None,
            bandwidth_adaptation: true,
            busy_poll_us: 0,
            real_time: false,
            twcc_period_ms: 100,
            no_media_ms: 1_000,
            slow_link_threshold: 4,
        }
    }
}

impl Configuration for MediaConfig {
    const LIVE: &'static [&'static str] =
        &["certificate", "key", "no_media_ms", "slow_link_threshold"];

    fn read(section: &mut Section<'_>) -> Self {
        let media: Self = section.keys();
        section.range("workers", media.workers, 0..=1_024);
        let tcp = media.ice_tcp || media.ice_tcp_port == 0;
        section.require(
            &["ice_tcp_port", "ice_tcp"],
            tcp,
            "needs media.ice_tcp = true",
        );
        let (certificate, key) = (media.certificate.is_some(), media.key.is_some());
        section.require(
            &["certificate", "key"],
            key || !certificate,
            "needs media.key",
        );
        section.require(
            &["key", "certificate"],
            certificate || !key,
            "needs media.certificate",
        );
        let last = |first: u16| {
            let more = u16::try_from(media.port_count().saturating_sub(1)).unwrap_or(u16::MAX);
            first.saturating_add(more)
        };
        let addresses = media.listening();
        section.listens(
            "port",
            Protocol::Udp,
            addresses,
            media.port..=last(media.port),
        );
        if media.ice_tcp {
            let (key, first) = match media.ice_tcp_port {
                0 => ("port", media.port),
                port => ("ice_tcp_port", port),
            };
            section.listens(key, Protocol::Tcp, addresses, first..=last(first));
        }
        section.range("busy_poll_us", media.busy_poll_us, 0..=1_000_000);
        section.range("twcc_period_ms", media.twcc_period_ms, 10..=1_000);
        media
    }

    fn probe(&self, probe: &mut Probe) {
        for address in &self.bind {
            probe.address("bind", *address);
        }
        let Some(certificate) = &self.certificate else {
            return;
        };
        probe.certificate("certificate", certificate);
        if let Err(error) = self.identity() {
            probe.error("certificate", error);
        }
    }
}

impl MediaConfig {
    /// The number of worker threads, at least one.
    pub fn worker_count(&self) -> usize {
        match self.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        }
    }

    /// The number of UDP ports, and of TCP ports with [`MediaConfig::ice_tcp`].
    pub fn port_count(&self) -> usize {
        match self.one_port {
            true => 1,
            false => self.worker_count(),
        }
    }

    /// Reads the certificate for DTLS, or makes one if none is configured. It blocks.
    pub fn identity(&self) -> Result<MediaIdentity, MediaError> {
        MediaIdentity::read(self.certificate.as_deref(), self.key.as_deref())
    }

    /// The addresses to which sockets are bound. Empty means all.
    fn listening(&self) -> &[IpAddr] {
        match self.bind.as_slice() {
            // Several addresses are announced, but sockets are bound to all.
            [_] => &self.bind,
            _ => &[],
        }
    }
}
