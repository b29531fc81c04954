//! How the transports are set up. The defaults are those that an application written for Janus expects.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_config::{Configuration, Probe, Protocol, Section};
use portunus_core::Network;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{AdminApiConfig, MqttConfig, NatsConfig, RabbitConfig, tls};

/// All transports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiConfig {
    /// HTTP: the Janus API by long polling, and the web pages.
    pub http: HttpConfig,
    /// WHIP and WHEP, on the ports of HTTP.
    pub whip: WhipConfig,
    /// WebSocket.
    pub websocket: WebSocketConfig,
    /// Unix socket.
    pub unix: UnixConfig,
    /// MQTT.
    pub mqtt: MqttConfig,
    /// RabbitMQ.
    pub rabbitmq: RabbitConfig,
    /// NATS.
    pub nats: NatsConfig,
    /// The Admin API, on ports of its own.
    pub admin: AdminApiConfig,
    /// The certificate for HTTPS and secure WebSocket.
    pub tls: TlsConfig,
}

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Whether plain HTTP is served.
    pub enabled: bool,
    /// Addresses to listen on; empty means all, IPv6 and IPv4.
    pub bind: Vec<IpAddr>,
    /// The port of plain HTTP; 0 lets the kernel choose.
    pub port: u16,
    /// Whether HTTPS is served as well; it needs [`TlsConfig`].
    pub https: bool,
    /// The port of HTTPS.
    pub https_port: u16,
    /// Where the Janus API is: starts with a slash, does not end with one.
    pub base_path: String,
    /// Whether the web pages are served at `/`.
    pub pages: bool,
    /// Whether counters are served at `/metrics`.
    pub metrics: bool,
    /// The address and port where that is, by plain HTTP; none: those of HTTP and HTTPS.
    #[serde(with = "portunus_config::optional")]
    pub metrics_bind: Option<SocketAddr>,
    /// Networks that may read the counters at the ports of HTTP and HTTPS, beside programs on this machine.
    pub metrics_networks: Vec<Network>,
    /// The origins whose pages may show the server's pages in a frame, beside the server's own.
    pub frame_ancestors: Vec<String>,
    /// The value of `Access-Control-Allow-Origin`: `*`, or one origin.
    pub allow_origin: String,
    /// Whether API requests of another origin are refused with 403.
    pub enforce_origin: bool,
    /// Bytes of the largest request body.
    pub max_body: usize,
    /// Connections open at a time, over all HTTP ports.
    pub max_connections: usize,
    /// The same of one client address; 0: no limit of its own.
    pub max_connections_per_address: usize,
    /// How long the body of a request may take to come. What is done with it has the time that it takes.
    #[serde(with = "portunus_config::seconds")]
    pub request_timeout: Duration,
    /// How long a long poll waits before it is answered with a keepalive.
    #[serde(with = "portunus_config::seconds")]
    pub long_poll: Duration,
    /// Whether each request is told to whoever watches, by an event.
    pub events: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            bind: Vec::new(),
            port: 8088,
            https: false,
            https_port: 8089,
            base_path: "/janus".into(),
            pages: true,
            metrics: true,
            metrics_bind: None,
            metrics_networks: Vec::new(),
            frame_ancestors: Vec::new(),
            allow_origin: "*".into(),
            enforce_origin: false,
            max_body: 1 << 20,
            max_connections: 10_000,
            max_connections_per_address: 2_500,
            request_timeout: Duration::from_secs(10),
            // janus.js gives a long poll 60 s; proxies between often cut at 60 s too.
            long_poll: Duration::from_secs(30),
            events: true,
        }
    }
}

impl Configuration for HttpConfig {
    const LIVE: &'static [&'static str] = &["max_connections", "max_connections_per_address"];

    fn read(section: &mut Section<'_>) -> Self {
        let http: Self = section.keys();
        section.check(&["base_path"], base_path(&http.base_path));
        let text = "expected * or an origin such as https://example.org";
        section.require(&["allow_origin"], visible(&http.allow_origin), text);
        let ancestors = http.frame_ancestors.iter().try_for_each(|it| ancestor(it));
        section.check(&["frame_ancestors"], ancestors);
        for (on, key, port) in [
            (http.enabled, "port", http.port),
            (http.https, "https_port", http.https_port),
        ] {
            if on {
                section.listens(key, Protocol::Tcp, &http.bind, port..=port);
            }
        }
        if let Some(own) = http.metrics_bind {
            let ports = own.port()..=own.port();
            section.listens("metrics_bind", Protocol::Tcp, &[own.ip()], ports);
        }
        section.range("max_body", http.max_body, 1_024..=64 << 20);
        section.range("max_connections", http.max_connections, 1..=1_000_000);
        let per_address = http.max_connections_per_address;
        section.range("max_connections_per_address", per_address, 0..=1_000_000);
        section.range("request_timeout", http.request_timeout.as_secs(), 1..=600);
        section.range("long_poll", http.long_poll.as_secs(), 1..=600);
        http
    }

    fn probe(&self, probe: &mut Probe) {
        if self.enabled || self.https {
            addresses(probe, &self.bind);
        }
        let Some(own) = self.metrics_bind.filter(|_| self.metrics) else {
            return;
        };
        probe.address("metrics_bind", own.ip());
        if !self.metrics_networks.is_empty() {
            let text = "it has no effect: whoever reaches http.metrics_bind may read the counters";
            probe.warning("metrics_networks", text);
        }
    }
}

pub(crate) fn base_path(path: &str) -> Result<(), String> {
    let segment = |s: &str| {
        !s.is_empty()
            && s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b))
    };
    match path.strip_prefix('/') {
        // These paths are the server's own.
        Some("whip" | "whep" | "healthz" | "livez" | "readyz" | "metrics") => {
            Err(format!("{path:?} is taken"))
        }
        Some(rest) if rest.split('/').all(segment) => Ok(()),
        _ => Err(format!(
            "expected a path such as \"/janus\" (no slash at its end), got {path:?}"
        )),
    }
}

/// Refuses a text that is no origin of a Content Security Policy: a `;` or a space would begin another directive or source.
fn ancestor(origin: &str) -> Result<(), String> {
    let rest = origin
        .strip_prefix("https://")
        .or(origin.strip_prefix("http://"));
    let host = |it: &str| {
        let part = |b: u8| b.is_ascii_alphanumeric() || b"-._~*:[]".contains(&b);
        !it.is_empty() && it.bytes().all(part)
    };
    match origin == "*" || rest.is_some_and(host) {
        true => Ok(()),
        false => Err(format!(
            "expected \"*\" or origins such as \"https://example.org\" (no slash at the end), got {origin:?}"
        )),
    }
}

/// Whether something can stand in a header.
fn visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}

/// WHIP (RFC 9725) and WHEP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhipConfig {
    /// Whether `/whip` and `/whep` are served.
    pub enabled: bool,
    /// What a client's token has to open.
    pub authorization: WhipAuthorization,
    /// STUN and TURN servers that clients are told of.
    pub ice_servers: Vec<IceServer>,
    /// The origins whose pages may use it; `*`: all.
    pub allow_origins: Vec<String>,
    /// Publishers and viewers at a time.
    pub max_sessions: usize,
    /// Bytes of the largest offer, answer or fragment.
    pub max_body: usize,
    /// How long a client may take from the answer until media can flow.
    #[serde(with = "portunus_config::seconds")]
    pub connect_timeout: Duration,
}

impl Default for WhipConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            authorization: WhipAuthorization::Api,
            ice_servers: Vec::new(),
            allow_origins: vec!["*".into()],
            max_sessions: 100_000,
            // A browser that watches 50 speakers of a room offers some 250 KiB.
            max_body: 1 << 20,
            connect_timeout: Duration::from_secs(30),
        }
    }
}

impl Configuration for WhipConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let whip: Self = section.keys();
        let servers = whip.ice_servers.iter().try_for_each(IceServer::check);
        section.check(&["ice_servers"], servers);
        let origins = whip
            .allow_origins
            .iter()
            .try_for_each(|origin| origin_or_any(origin));
        section.check(&["allow_origins"], origins);
        section.range("max_sessions", whip.max_sessions, 1..=10_000_000);
        section.range("max_body", whip.max_body, 1_024..=1 << 20);
        section.range("connect_timeout", whip.connect_timeout.as_secs(), 1..=600);
        whip
    }
}

fn origin_or_any(origin: &str) -> Result<(), String> {
    if visible(origin) && !origin.ends_with('/') {
        return Ok(());
    }
    Err(format!(
        "expected \"*\" or origins such as \"https://example.org\" (no slash at the end), got {origin:?}"
    ))
}

/// Who decides on the bearer tokens of WHIP and WHEP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhipAuthorization {
    /// The API secret and the tokens of the Janus API, where it has any; then the plugin.
    Api,
    /// The plugin alone: a stream without a token of its own is open to everybody.
    Plugin,
}

/// A STUN or TURN server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "{ url = \"turn:…\", username = \"…\", credential = \"…\" }"
)]
pub struct IceServer {
    /// Its URL (RFC 7064, RFC 7065), such as `turn:turn.example.org:3478?transport=udp`.
    pub url: String,
    /// For TURN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// For TURN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

impl IceServer {
    /// Refuses what cannot be told to a client.
    fn check(&self) -> Result<(), String> {
        let given = [
            Some(&self.url),
            self.username.as_ref(),
            self.credential.as_ref(),
        ];
        let wrong = |text: &&String| !visible(text) || text.contains(['<', '>']);
        if let Some(text) = given.into_iter().flatten().find(wrong) {
            return Err(format!(
                "expected visible ASCII characters without < and >, got {text:?}"
            ));
        }
        let turn = match self.url.split_once(':').map(|(scheme, _)| scheme) {
            Some("stun" | "stuns") => false,
            Some("turn" | "turns") => true,
            _ => {
                return Err(format!(
                    "expected a URL that starts with stun:, stuns:, turn: or turns:, got {:?}",
                    self.url
                ));
            }
        };
        match (turn, self.username.is_some(), self.credential.is_some()) {
            (true, true, true) | (false, false, false) => Ok(()),
            (true, ..) => Err("a TURN server needs a username and a credential".into()),
            (false, ..) => Err("a STUN server has no username and no credential".into()),
        }
    }
}

/// The WebSocket server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketConfig {
    /// Whether plain WebSocket is served.
    pub enabled: bool,
    /// Addresses to listen on; empty means all, IPv6 and IPv4.
    pub bind: Vec<IpAddr>,
    /// The port of plain WebSocket; 0 lets the kernel choose.
    pub port: u16,
    /// Whether secure WebSocket is served as well; it needs [`TlsConfig`].
    pub wss: bool,
    /// The port of secure WebSocket.
    pub wss_port: u16,
    /// After how long without a frame from the client a ping is sent; zero: never.
    #[serde(with = "portunus_config::seconds")]
    pub ping_interval: Duration,
    /// How long after a ping the client may be silent before it counts as gone.
    #[serde(with = "portunus_config::seconds")]
    pub ping_timeout: Duration,
    /// Bytes of the largest request. A larger one is answered with error 454; one that is more than
    /// four times as large closes the connection.
    pub max_message: usize,
    /// How long a client may not read what it is sent before it is disconnected.
    #[serde(with = "portunus_config::seconds")]
    pub write_timeout: Duration,
    /// Connections open at a time, over all WebSocket ports.
    pub max_connections: usize,
    /// The same of one client address; 0: no limit of its own.
    pub max_connections_per_address: usize,
    /// Whether connections that come and go are told to whoever watches, by events.
    pub events: bool,
}

impl Default for WebSocketConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            bind: Vec::new(),
            port: 8188,
            wss: false,
            wss_port: 8989,
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(10),
            max_message: 1 << 20,
            write_timeout: Duration::from_secs(10),
            max_connections: 10_000,
            max_connections_per_address: 2_500,
            events: true,
        }
    }
}

impl Configuration for WebSocketConfig {
    const LIVE: &'static [&'static str] = &["max_connections", "max_connections_per_address"];

    fn read(section: &mut Section<'_>) -> Self {
        let websocket: Self = section.keys();
        for (on, key, port) in [
            (websocket.enabled, "port", websocket.port),
            (websocket.wss, "wss_port", websocket.wss_port),
        ] {
            if on {
                section.listens(key, Protocol::Tcp, &websocket.bind, port..=port);
            }
        }
        section.range("ping_timeout", websocket.ping_timeout.as_secs(), 1..=600);
        section.range("max_message", websocket.max_message, 1_024..=64 << 20);
        section.range("write_timeout", websocket.write_timeout.as_secs(), 1..=600);
        section.range("max_connections", websocket.max_connections, 1..=1_000_000);
        let per_address = websocket.max_connections_per_address;
        section.range("max_connections_per_address", per_address, 0..=1_000_000);
        websocket
    }

    fn probe(&self, probe: &mut Probe) {
        if self.enabled || self.wss {
            addresses(probe, &self.bind);
        }
    }
}

/// The Unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnixConfig {
    /// Where the socket is; none: it is not served.
    #[serde(with = "portunus_config::optional")]
    pub path: Option<PathBuf>,
    /// Its type.
    pub kind: UnixKind,
    /// The permissions of the socket's file.
    pub mode: FileMode,
    /// Bytes of the largest request; a larger one is answered with error 454.
    pub max_message: usize,
    /// Clients at a time.
    pub max_connections: usize,
    /// Whether clients that come and go are told to whoever watches, by events.
    pub events: bool,
}

impl Default for UnixConfig {
    fn default() -> Self {
        Self {
            path: None,
            kind: UnixKind::Seqpacket,
            mode: FileMode(0o660),
            // Stays under Linux's default limit of a packet (net.core.wmem_default, 212992).
            max_message: 128 << 10,
            max_connections: 1_000,
            events: true,
        }
    }
}

impl Configuration for UnixConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let unix: Self = section.keys();
        section.range("max_message", unix.max_message, 1_024..=1 << 20);
        section.range("max_connections", unix.max_connections, 1..=1_000_000);
        unix
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(path) = &self.path {
            socket(probe, "path", path);
        }
    }
}

/// The type of the Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnixKind {
    /// SOCK_SEQPACKET: a connection for each client.
    Seqpacket,
    /// SOCK_DGRAM: clients are known by the path that they bound.
    Datagram,
}

/// The permission bits of a file; in octal as text, such as `660`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl<'de> Deserialize<'de> for FileMode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        const FORM: &str = "octal permissions in quotes such as \"660\"";
        portunus_config::text(from, FORM, |text| {
            let mode = u32::from_str_radix(text, 8).ok();
            let mode = mode.filter(|mode| *mode <= 0o777).map(FileMode);
            mode.ok_or_else(|| format!("expected {FORM}, got {text:?}"))
        })
    }
}

impl Serialize for FileMode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:o}", self.0))
    }
}

/// A certificate chain and its key, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate chain, the server's own first.
    #[serde(with = "portunus_config::optional")]
    pub certificate: Option<PathBuf>,
    /// The private key.
    #[serde(with = "portunus_config::optional")]
    pub key: Option<PathBuf>,
}

impl Configuration for TlsConfig {
    const LIVE: &'static [&'static str] = &["certificate", "key"];

    fn read(section: &mut Section<'_>) -> Self {
        let tls: Self = section.keys();
        let (certificate, key) = (tls.certificate.is_some(), tls.key.is_some());
        let keys = &["certificate", "key"];
        section.require(keys, key || !certificate, "needs tls.key");
        let keys = &["key", "certificate"];
        section.require(keys, certificate || !key, "needs tls.certificate");
        tls
    }

    fn probe(&self, probe: &mut Probe) {
        let Some(certificate) = &self.certificate else {
            return;
        };
        probe.certificate("certificate", certificate);
        if let Err(error) = tls::read(self, "") {
            probe.error("certificate", error);
        }
    }
}

/// Looks for the addresses that the key `bind` of a section names.
pub(crate) fn addresses(probe: &mut Probe, bind: &[IpAddr]) {
    for address in bind {
        probe.address("bind", *address);
    }
}

/// Looks whether there can be a Unix socket at a path.
pub(crate) fn socket(probe: &mut Probe, key: &str, path: &Path) {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match folder.exists() {
        true => probe.written_folder(key, folder),
        false => probe.error(key, format!("there is no folder {}", folder.display())),
    }
}
