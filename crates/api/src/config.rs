//! How the transports are set up. The defaults are those that an application written for Janus expects.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

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
    /// The certificate for HTTPS and secure WebSocket.
    pub tls: TlsConfig,
}

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub metrics_bind: Option<SocketAddr>,
    /// The value of `Access-Control-Allow-Origin`: `*`, or one origin.
    pub allow_origin: String,
    /// Whether API requests of another origin are refused with 403.
    pub enforce_origin: bool,
    /// Bytes of the largest request body.
    pub max_body: usize,
    /// Connections open at a time, over all HTTP ports.
    pub max_connections: usize,
    /// How long the body of a request may take to come. What is done with it has the time that it takes.
    pub request_timeout: Duration,
    /// How long a long poll waits before it is answered with a keepalive.
    pub long_poll: Duration,
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
            allow_origin: "*".into(),
            enforce_origin: false,
            max_body: 1 << 20,
            max_connections: 10_000,
            request_timeout: Duration::from_secs(10),
            // janus.js gives a long poll 60 s; proxies between often cut at 60 s too.
            long_poll: Duration::from_secs(30),
        }
    }
}

/// WHIP (RFC 9725) and WHEP.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Who decides on the bearer tokens of WHIP and WHEP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhipAuthorization {
    /// The API secret and the tokens of the Janus API, where it has any; then the plugin.
    Api,
    /// The plugin alone: a stream without a token of its own is open to everybody.
    Plugin,
}

/// A STUN or TURN server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IceServer {
    /// Its URL (RFC 7064, RFC 7065), such as `turn:turn.example.org:3478?transport=udp`.
    pub url: String,
    /// For TURN.
    pub username: Option<String>,
    /// For TURN.
    pub credential: Option<String>,
}

/// The WebSocket server.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub ping_interval: Duration,
    /// How long after a ping the client may be silent before it counts as gone.
    pub ping_timeout: Duration,
    /// Bytes of the largest request. A larger one is answered with error 454; one that is more than
    /// four times as large closes the connection.
    pub max_message: usize,
    /// How long a client may not read what it is sent before it is disconnected.
    pub write_timeout: Duration,
    /// Connections open at a time, over all WebSocket ports.
    pub max_connections: usize,
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
        }
    }
}

/// The Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixConfig {
    /// Where the socket is; none: it is not served.
    pub path: Option<PathBuf>,
    /// Its type.
    pub kind: UnixKind,
    /// The permissions of the socket's file.
    pub mode: FileMode,
    /// Bytes of the largest request; a larger one is answered with error 454.
    pub max_message: usize,
    /// Clients at a time.
    pub max_connections: usize,
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
        }
    }
}

/// The type of the Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixKind {
    /// SOCK_SEQPACKET: a connection for each client.
    Seqpacket,
    /// SOCK_DGRAM: clients are known by the path that they bound.
    Datagram,
}

/// The permission bits of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(pub u32);

/// A certificate chain and its key, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsConfig {
    /// The certificate chain, the server's own first.
    pub certificate: Option<PathBuf>,
    /// The private key.
    pub key: Option<PathBuf>,
}
