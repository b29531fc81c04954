//! The configuration of a pull.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::{RtspError, Usable};

/// The configuration of a pull.
#[derive(Debug, Clone)]
pub struct Config {
    /// `rtsp://[user:password@]host[:port]/…`
    pub url: String,
    /// The login. It overrides that of the URL.
    pub login: Option<Login>,
    /// Take an audio stream.
    pub audio: bool,
    /// Take a video stream.
    pub video: bool,
    /// The streams that are preferred to those before them. `None` prefers the first of a kind.
    pub usable: Option<Usable>,
    /// The transport of packets.
    pub transport: Transport,
    /// The local address for RTP over UDP. `None` means all.
    pub local: Option<IpAddr>,
    /// The ports for RTP over UDP, in pairs whose first one is even.
    pub ports: RangeInclusive<u16>,
    /// The timeout of a connection attempt.
    pub connect_timeout: Duration,
    /// The timeout of a request. Keep-alives need no answer.
    pub request_timeout: Duration,
    /// The interval of keep-alives, but at most half of the server's timeout.
    pub keep_alive: Option<Duration>,
    /// The silence that ends a session, and the pause before the next attempt.
    pub reconnect_delay: Duration,
    /// Whether to repeat DESCRIBE with the path only after a 404, and to continue so.
    pub path_only: bool,
    /// The addresses to which it may connect. `None` means all.
    pub allowed: Option<Allowed>,
}

impl Config {
    /// Returns a configuration for audio and video of `url`, over UDP or else TCP, with the
    /// timeouts of Janus.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            login: None,
            audio: true,
            video: true,
            usable: None,
            transport: Transport::default(),
            local: None,
            ports: 10_000..=60_000,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            keep_alive: None,
            reconnect_delay: Duration::from_secs(5),
            path_only: false,
            allowed: None,
        }
    }
}

/// Tells whether an address may be connected to.
#[derive(Clone)]
pub struct Allowed(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl Allowed {
    /// Returns the test `is_allowed`.
    pub fn by(is_allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Allowed(Arc::new(is_allowed))
    }
}

impl std::fmt::Debug for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Allowed")
    }
}

impl Config {
    /// Checks that an address may be connected to.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), RtspError> {
        match &self.allowed {
            Some(Allowed(is_allowed)) if !is_allowed(address) => Err(RtspError::Forbidden(address)),
            _ => Ok(()),
        }
    }
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Not for logs.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({})", self.user)
    }
}

/// The transport of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP, or TCP if the server refuses UDP or no packet came by UDP.
    #[default]
    UdpThenTcp,
    /// Over UDP only.
    Udp,
    /// Over the RTSP connection only.
    Tcp,
}
