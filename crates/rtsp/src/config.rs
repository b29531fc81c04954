//! What is pulled, and how patiently.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::{Medium, RtspError};

/// How a stream is pulled.
#[derive(Debug, Clone)]
pub struct Config {
    /// `rtsp://[user:password@]host[:port]/…`
    pub url: String,
    /// Goes before what the URL says.
    pub login: Option<Login>,
    /// Take an audio stream.
    pub audio: bool,
    /// Take a video stream.
    pub video: bool,
    /// Which streams are preferred to those listed before them. `None` prefers the first of a kind.
    pub usable: Option<Usable>,
    /// How packets come.
    pub transport: Transport,
    /// The address for RTP over UDP; none: all.
    pub local: Option<IpAddr>,
    /// Where ports for RTP over UDP are picked, in pairs that begin with an even one.
    pub ports: RangeInclusive<u16>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a request may take. Keep-alives need no answer.
    pub request_timeout: Duration,
    /// How often a keep-alive is sent at least; half of the server's timeout if that is shorter.
    pub keep_alive: Option<Duration>,
    /// Silence after which a session is given up, and the pause before the next try.
    pub reconnect_delay: Duration,
    /// After a 404 to DESCRIBE, ask again with the path only, and go on so.
    pub path_only: bool,
    /// Which addresses may be connected to; none: all.
    pub allowed: Option<Allowed>,
}

impl Config {
    /// Audio and video of `url`, over UDP or else TCP, with the times that Janus users know.
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
    /// Those of which `is_allowed` is true.
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

/// Tells whether the packets of a medium are of use.
#[derive(Clone)]
pub struct Usable(Arc<dyn Fn(&Medium) -> bool + Send + Sync>);

impl Usable {
    /// Those of which `is_usable` is true.
    pub fn by(is_usable: impl Fn(&Medium) -> bool + Send + Sync + 'static) -> Self {
        Usable(Arc::new(is_usable))
    }

    pub(crate) fn takes(&self, medium: &Medium) -> bool {
        (self.0)(medium)
    }
}

impl std::fmt::Debug for Usable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Usable")
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

/// How packets come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// Over UDP; over TCP if the server refuses UDP, or after nothing came over it.
    #[default]
    UdpThenTcp,
    /// Over UDP only.
    Udp,
    /// Over the RTSP connection only.
    Tcp,
}
