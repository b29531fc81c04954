//! The configuration of the plugin.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::trunk::{PhoneTrunks, TrunkConfig};
use portunus_core::configuration::{Configuration, PortRange, Probe, Protocol, Section};
use portunus_core::media::ingest::{IngestError, interface_address, probe_interface};
use portunus_core::{Network, Networks, certificate_expiry};
use portunus_sip::net::ping;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The plugin's section of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SipConfig {
    /// The transports and ports to listen on.
    pub listen: Vec<Listen>,
    /// The networks from which accounts without a registration (guests) can be called by name.
    /// Empty disables it.
    pub direct_callers: Vec<Network>,
    /// The address of the SIP sockets. `None` for all of IPv4.
    #[serde(with = "portunus_core::configuration::optional")]
    pub local_ip: Option<IpAddr>,
    /// The address or name that SIP servers get instead, behind a 1:1 NAT.
    #[serde(with = "portunus_core::configuration::optional")]
    pub public_address: Option<String>,
    /// Contacts get the address that the registrar sees.
    pub behind_nat: bool,
    /// The address for RTP, or the name of an interface. `None` for all.
    #[serde(with = "portunus_core::configuration::optional")]
    pub local_media_ip: Option<String>,
    /// The address for RTP that peers get. `None` for `local_media_ip`, else that of SIP.
    #[serde(with = "portunus_core::configuration::optional")]
    pub sdp_ip: Option<IpAddr>,
    /// The range of ports for RTP.
    pub rtp_port_range: PortRange,
    /// The DSCP of audio to peers.
    pub dscp_audio_rtp: u8,
    /// The same of video.
    pub dscp_video_rtp: u8,
    /// RTP goes to the source of the peer's RTP, if that differs from its description.
    pub latching: bool,
    /// Audio is transcoded if the two sides have no codec in common.
    pub transcoding: bool,
    /// The certificate chain for TLS, a PEM file, for clients and servers. `None` disables the TLS
    /// listener.
    #[serde(with = "portunus_core::configuration::optional")]
    pub tls_certificate: Option<PathBuf>,
    /// Its key.
    #[serde(with = "portunus_core::configuration::optional")]
    pub tls_key: Option<PathBuf>,
    /// Authorities for servers' certificates, besides those of the system.
    #[serde(with = "portunus_core::configuration::optional")]
    pub tls_cacert: Option<PathBuf>,
    /// User-Agent and Server.
    pub user_agent: String,
    /// The interval of registrations.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub register_ttl: Duration,
    /// The interval of OPTIONS to registrars; 0 disables them.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub keepalive_interval: Duration,
    /// The time limit of a response, in ms (64 times T1 of RFC 3261).
    pub timer_t1x64_ms: u32,
    /// The session interval that our calls ask for (RFC 4028); 0 asks for none.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub session_expires: Duration,
    /// The time that a call waits for a page after its page is gone.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub reconnect_grace: Duration,
    /// The maximum number of accounts, over all clients; 0 means no limit.
    pub max_accounts: usize,
    /// The maximum number of calls, over all clients; 0 means no limit.
    pub max_calls: usize,
    /// The maximum number of accounts of one client without the right to administer; 0 means no
    /// limit.
    pub max_accounts_per_client: usize,
    /// The maximum number of requests of such a client in a minute that lead to REGISTER, INVITE,
    /// SUBSCRIBE, PUBLISH or MESSAGE; 0 means no limit.
    pub requests_per_minute: u32,
    /// The time without RTP after which a caller in an audio room counts as gone; 0 disables it.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub rtp_timeout: Duration,
    /// The number of wrong pins for a room, over all calls, after which it refuses callers for a
    /// while; 0 means no limit.
    pub pin_attempts: u32,
    /// The first such wait. It doubles with each further wrong pin, up to an hour.
    #[serde(with = "portunus_core::configuration::seconds")]
    pub pin_wait: Duration,
    /// The folder with the prompts for callers. `None` for the plugin's own, in English.
    #[serde(with = "portunus_core::configuration::optional")]
    pub prompts: Option<PathBuf>,
    /// Telephone providers and exchanges, which call audio rooms and are called by them.
    pub trunks: Vec<TrunkConfig>,
    /// Whether events are published to event handlers.
    pub events: bool,
    /// The networks for SIP and RTP: those of the server.
    #[serde(skip)]
    pub outgoing: Networks,
    /// The trunks that are set while the server runs.
    #[serde(skip)]
    pub phone_trunks: PhoneTrunks,
    /// Whether trunks may be set while the server runs.
    #[serde(skip)]
    pub has_reception: bool,
}

impl Default for SipConfig {
    fn default() -> Self {
        let any = |transport| Listen { transport, port: 0 };
        SipConfig {
            listen: vec![any(ListenTransport::Udp), any(ListenTransport::Tcp)],
            direct_callers: Vec::new(),
            local_ip: None,
            public_address: None,
            behind_nat: false,
            local_media_ip: None,
            sdp_ip: None,
            rtp_port_range: PortRange::default(),
            dscp_audio_rtp: 0,
            dscp_video_rtp: 0,
            latching: false,
            transcoding: false,
            tls_certificate: None,
            tls_key: None,
            tls_cacert: None,
            user_agent: "Portunus".to_owned(),
            register_ttl: Duration::from_secs(3_600),
            keepalive_interval: Duration::from_secs(120),
            timer_t1x64_ms: 32_000,
            session_expires: Duration::ZERO,
            reconnect_grace: Duration::from_secs(20),
            max_accounts: 10_000,
            max_calls: 2_000,
            max_accounts_per_client: 20,
            requests_per_minute: 120,
            rtp_timeout: Duration::from_secs(120),
            pin_attempts: 10,
            pin_wait: Duration::from_secs(60),
            prompts: None,
            trunks: Vec::new(),
            events: true,
            outgoing: Networks::default(),
            phone_trunks: PhoneTrunks::default(),
            has_reception: false,
        }
    }
}

impl Configuration for SipConfig {
    const LIVE: &'static [&'static str] = &["tls_certificate", "tls_key", "tls_cacert"];

    fn read(section: &mut Section<'_>) -> Self {
        let sip: Self = section.keys();
        section.range("dscp_audio_rtp", sip.dscp_audio_rtp, 0..=63);
        section.range("dscp_video_rtp", sip.dscp_video_rtp, 0..=63);
        section.range("timer_t1x64_ms", sip.timer_t1x64_ms, 640..=600_000);
        section.range("register_ttl", sip.register_ttl.as_secs(), 1..=31_622_400);
        section.range("reconnect_grace", sip.reconnect_grace.as_secs(), 0..=3_600);
        let range = sip.rtp_port_range;
        let addresses = [sip.bound()];
        for listen in &sip.listen {
            let protocol = match listen.transport {
                ListenTransport::Udp => Protocol::Udp,
                _ => Protocol::Tcp,
            };
            section.listens("listen", protocol, &addresses, listen.port..=listen.port);
        }
        section.takes_pairs("rtp_port_range", range);
        let text = "expected two ports at least, the first of them even";
        section.require(&["rtp_port_range"], range.first() < range.last(), text);
        let expires = sip.session_expires.as_secs();
        let is_expiry = expires == 0 || expires >= 90;
        let text = "expected 0, or 90 at least (RFC 4028)";
        section.require(&["session_expires"], is_expiry, text);
        let is_line = !sip.user_agent.contains(['\r', '\n']);
        section.require(&["user_agent"], is_line, "expected one line of text");
        let text = "expected both of tls_certificate and tls_key, or none";
        let has_both = sip.tls_certificate.is_some() == sip.tls_key.is_some();
        section.require(&["tls_certificate", "tls_key"], has_both, text);
        let wants_tls = sip.listen.iter().any(|listen| listen.transport.is_secure());
        let text = "TLS needs tls_certificate and tls_key";
        let has_tls = !wants_tls || sip.tls_certificate.is_some();
        section.require(&["listen", "tls_certificate"], has_tls, text);
        let has_udp = sip
            .listen
            .iter()
            .any(|it| it.transport == ListenTransport::Udp);
        section.require(&["listen"], has_udp, "expected one of \"udp\" at least");
        crate::trunk::check(&sip.trunks, section);
        sip
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(address) = self.local_ip {
            probe.address("local_ip", address);
        }
        if let Some(name) = &self.local_media_ip {
            probe_interface(probe, "local_media_ip", name);
        }
        let files = self.endpoint().tls;
        let key = match files.certificate.is_some() {
            true => "tls_certificate",
            false => "tls_cacert",
        };
        if (files.certificate.is_some() || files.authorities.is_some())
            && let Err(error) = files.check()
        {
            probe.error(key, error);
        }
        if let Some(folder) = &self.prompts {
            probe.folder("prompts", folder);
        }
        if let Some(certificate) = &self.tls_certificate {
            probe.certificate("tls_certificate", certificate);
        }
        for (n, trunk) in self.trunks.iter().enumerate() {
            let Some((server, _)) = trunk.outgoing() else {
                continue;
            };
            let key = format!("trunks[{n}].server");
            let files = files.clone();
            probe.connects(&key, &trunk.server, async move {
                let asked = ping(&server, &files).await;
                asked.map_err(|error| error.to_string())
            });
        }
    }
}

impl SipConfig {
    /// Returns the expiry of the certificate, in s since 1970; 0 if there is none. Blocks.
    pub(crate) fn certificate_expiry(&self) -> u64 {
        let file = self.tls_certificate.as_deref();
        file.and_then(certificate_expiry).unwrap_or(0)
    }

    /// Returns the address of the SIP sockets.
    pub(crate) fn bound(&self) -> IpAddr {
        self.local_ip.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Returns the configured address for RTP that peers get, if it exists.
    pub(crate) fn media_address(&self) -> Option<IpAddr> {
        if self.sdp_ip.is_some() {
            return self.sdp_ip;
        }
        let name = self.local_media_ip.as_deref()?;
        if let Ok(address) = name.parse() {
            return Some(address);
        }
        let log = |error: &IngestError| {
            tracing::warn!("sip.local_media_ip: {error}; the address of SIP is told");
        };
        interface_address(name).inspect_err(log).ok()
    }
}

/// A transport and its port: `udp:5060`. Port 0 means any free port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    /// The transport.
    pub transport: ListenTransport,
    /// The port; 0 means any free port.
    pub port: u16,
}

/// The transport of SIP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum ListenTransport {
    Udp,
    Tcp,
    Tls,
    Ws,
    Wss,
}

impl ListenTransport {
    const ALL: [(Self, &'static str); 5] = [
        (ListenTransport::Udp, "udp"),
        (ListenTransport::Tcp, "tcp"),
        (ListenTransport::Tls, "tls"),
        (ListenTransport::Ws, "ws"),
        (ListenTransport::Wss, "wss"),
    ];

    const fn is_secure(self) -> bool {
        matches!(self, ListenTransport::Tls | ListenTransport::Wss)
    }

    fn name(self) -> &'static str {
        let all = Self::ALL.iter();
        all.filter(|(transport, _)| *transport == self)
            .map(|(_, name)| *name)
            .next()
            .unwrap_or_default()
    }
}

const LISTEN_FORM: &str = "transport and port such as \"udp:5060\" (udp, tcp, tls, ws, wss)";

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected {LISTEN_FORM}, got {text:?}");
        let (transport, port) = text.split_once(':').unwrap_or((text, "0"));
        let mut all = ListenTransport::ALL.into_iter();
        let (transport, _) = all.find(|(_, name)| *name == transport).ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        Ok(Listen { transport, port })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.transport.name(), self.port)
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        portunus_core::configuration::text(from, LISTEN_FORM, str::parse)
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
