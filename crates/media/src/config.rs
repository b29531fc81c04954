//! How the media plane is set up.

use std::net::IpAddr;
use std::path::PathBuf;

use portunus_config::{Configuration, Probe, Protocol, Section};
use serde::{Deserialize, Serialize};

use crate::MediaIdentity;

/// How the media plane is set up; every key has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MediaConfig {
    /// Worker threads; 0 means one for each core.
    pub workers: usize,
    /// Pin worker n to core n.
    pub pin: bool,
    /// The UDP port of worker 0; worker n has the n-th after it. 0 lets the kernel choose.
    pub port: u16,
    /// All workers share [`MediaConfig::port`], and [`MediaConfig::ice_tcp_port`].
    pub one_port: bool,
    /// Addresses to bind; empty means all interfaces' addresses, found at start.
    pub bind: Vec<IpAddr>,
    /// 1:1 NAT: what clients are told instead of the bound addresses (same port unless one is given). In a file they may
    /// be names, so whoever looks these up reads them.
    #[serde(skip)]
    pub announced: Vec<AnnouncedAddress>,
    /// Loopback addresses are candidates too.
    pub loopback: bool,
    /// IPv6 addresses are candidates too.
    pub ipv6: bool,
    /// Answer connectivity checks only (RFC 8445 section 2.5).
    pub ice_lite: bool,
    /// Clients are told of relayed addresses only, and others are not used.
    pub force_relay: bool,
    /// mDNS names in clients' candidates are resolved.
    pub mdns: bool,
    /// Peers may connect by TCP (RFC 6544), where UDP does not get through.
    pub ice_tcp: bool,
    /// The TCP port of worker 0; worker n has the n-th after it. 0: the number of its UDP port.
    pub ice_tcp_port: u16,
    /// A PEM file with the certificate for DTLS; without one it is made at start.
    #[serde(with = "portunus_config::optional")]
    pub certificate: Option<PathBuf>,
    /// A PEM file with its key: where there is one, there is the other.
    #[serde(with = "portunus_config::optional")]
    pub key: Option<PathBuf>,
    /// Layers are chosen, and publishers asked for less, by what the links of viewers carry.
    pub bandwidth_adaptation: bool,
    /// How long a worker that has had something to do looks for more before it sleeps, in µs; 0: it sleeps at once.
    pub busy_poll_us: u32,
    /// Workers go before all ordinary threads of their cores (SCHED_FIFO), where the process may.
    pub real_time: bool,
    /// How often transport-wide feedback is sent, in ms.
    pub twcc_period_ms: u32,
    /// How long a medium may be silent before that is reported, in ms; 0: a second.
    pub no_media_ms: u32,
    /// Lost packets a second that are reported as a slow link; 0 never.
    pub slow_link_threshold: u32,
}

/// An address that clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedAddress {
    /// The bound address that it stands for; none: for all of its family.
    pub bound: Option<IpAddr>,
    /// What clients are told.
    pub ip: IpAddr,
    /// The port of worker 0 as clients see it; none: as bound.
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
        if let Err(error) = MediaIdentity::read(self) {
            probe.error("certificate", error);
        }
    }
}

impl MediaConfig {
    /// Worker threads, one at least.
    pub fn worker_count(&self) -> usize {
        match self.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        }
    }

    /// Ports of UDP, and as many of TCP with [`MediaConfig::ice_tcp`].
    pub fn port_count(&self) -> usize {
        match self.one_port {
            true => 1,
            false => self.worker_count(),
        }
    }

    /// The addresses that sockets are bound to; none: all.
    fn listening(&self) -> &[IpAddr] {
        match self.bind.as_slice() {
            // Several are told to clients, but sockets are on all.
            [_] => &self.bind,
            _ => &[],
        }
    }
}
