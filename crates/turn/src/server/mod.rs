//! The sockets of the TURN server.

mod relay;
mod sockets;
mod stream;
mod udp;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rand::Rng;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::places::Places;
use crate::shared::Limits;
use crate::{Keychain, MediaAddresses, Now, Shared, TurnConfig, TurnTotals};
use sockets::{Addresses, Sockets};

/// The reason why the TURN server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port cannot be listened on.
    #[error("cannot listen for TURN on {address} (set {key}): {error}")]
    Listen {
        /// The address and port.
        address: SocketAddr,
        /// The configuration key of the port.
        key: &'static str,
        /// The error.
        error: io::Error,
    },
}

/// The TURN server for clients (`RTCIceServer` of W3C's WebRTC).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IceServer {
    /// The URLs (RFC 7065), UDP first.
    pub urls: Vec<String>,
    /// The user name of the credentials.
    pub username: String,
    /// The password of the credentials.
    pub credential: String,
}

/// Makes the acceptor for the next TLS connection.
type NewAcceptor = dyn Fn() -> TlsAcceptor + Send + Sync;

/// The acceptor for TLS connections, once set.
#[derive(Default)]
struct Tls(OnceLock<Box<NewAcceptor>>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.0.get().is_some()).finish()
    }
}

impl Tls {
    fn acceptor(&self) -> Option<TlsAcceptor> {
        self.0.get().map(|new| new())
    }
}

/// The running TURN server, which is cheap to clone. It runs until [`Turn::stop`].
#[derive(Debug, Clone)]
pub struct Turn {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    tls_acceptor: Arc<Tls>,
    host: String,
    credential_lifetime: Duration,
    /// The addresses of UDP, TCP and TLS.
    udp: Vec<SocketAddr>,
    tcp: Vec<SocketAddr>,
    tls: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
}

impl Turn {
    /// Binds the sockets and serves them on the running tokio runtime. TLS connections are closed
    /// until [`Turn::set_tls`]. Only `media` is relayed to.
    pub fn start(config: &TurnConfig, media: MediaAddresses) -> Result<Self, StartError> {
        let sockets = Sockets::bind(config, &media)?;
        let mut random = rand::rng();
        let keychain = match config.secret.is_empty() {
            true => Keychain::new(&random.random::<[u8; 32]>()),
            false => Keychain::new(config.secret.as_bytes()),
        };
        let limits = Limits {
            allocations: config.max_allocations,
            allocations_per_address: config.max_allocations_per_address,
            lifetime: config.max_lifetime,
        };
        let nonce_key = random.random();
        let shared = Shared::new(keychain, nonce_key, limits, media, Instant::now());
        let shared = Arc::new(shared);
        let (stop, stopped) = watch::channel(false);
        let Addresses {
            udp,
            tcp,
            tls: tls_addresses,
        } = sockets.addresses();
        for socket in sockets.udp {
            tokio::spawn(udp::serve(socket, shared.clone(), stopped.clone()));
        }
        let places = Places::new(config.max_connections, config.max_connections_per_address);
        let server = stream::Server {
            shared: shared.clone(),
            places,
            max_queue: config.max_queue,
            stop: stopped,
        };
        let tls_acceptor = Arc::<Tls>::default();
        for listener in sockets.tcp {
            tokio::spawn(stream::serve(listener, None, server.clone()));
        }
        for listener in sockets.tls {
            let tls = Some(tls_acceptor.clone());
            tokio::spawn(stream::serve(listener, tls, server.clone()));
        }
        let inner = Inner {
            shared,
            tls_acceptor,
            host: config.host.clone(),
            credential_lifetime: config.credential_lifetime,
            udp,
            tcp,
            tls: tls_addresses,
            stop,
        };
        Ok(Turn {
            inner: Arc::new(inner),
        })
    }

    /// Returns whether TLS is served, which requires [`Turn::set_tls`].
    pub fn has_tls(&self) -> bool {
        !self.inner.tls.is_empty()
    }

    /// Accepts TLS connections from now on. `acceptor` is called for each, so that the certificate
    /// may change. Only the first call counts.
    pub fn set_tls(&self, acceptor: impl Fn() -> TlsAcceptor + Send + Sync + 'static) {
        if self.inner.tls_acceptor.0.set(Box::new(acceptor)).is_err() {
            tracing::debug!("TURN by TLS has its certificate already");
        }
    }

    /// Returns the server for a client, with new credentials that are valid for
    /// [`Turn::credential_lifetime`].
    pub fn ice_server(&self) -> IceServer {
        let inner = &self.inner;
        let name = format!("{:016x}", rand::rng().random::<u64>());
        let expiry = Now::read()
            .unix
            .saturating_add(inner.credential_lifetime.as_secs());
        let login = inner.shared.keychain.login(&name, expiry);
        IceServer {
            urls: self.urls(),
            username: login.username,
            credential: login.password,
        }
    }

    /// Returns the lifetime of credentials.
    pub fn credential_lifetime(&self) -> Duration {
        self.inner.credential_lifetime
    }

    /// Replaces the addresses that are relayed to.
    pub fn set_media(&self, media: MediaAddresses) {
        self.inner.shared.set_media(media);
    }

    /// Returns the totals since the start.
    pub fn totals(&self) -> TurnTotals {
        self.inner.shared.totals()
    }

    /// Returns the addresses of UDP.
    pub fn udp(&self) -> &[SocketAddr] {
        &self.inner.udp
    }

    /// Returns the addresses of TCP.
    pub fn tcp(&self) -> &[SocketAddr] {
        &self.inner.tcp
    }

    /// Returns the addresses of TLS.
    pub fn tls(&self) -> &[SocketAddr] {
        &self.inner.tls
    }

    /// Closes all sockets.
    pub fn stop(&self) {
        self.inner.stop.send_replace(true);
    }

    /// Returns the URLs for clients (RFC 7065), UDP first.
    pub fn urls(&self) -> Vec<String> {
        let inner = &self.inner;
        let host = match inner.host.is_empty() {
            true => inner.shared.media().first().map(in_url),
            false => Some(inner.host.parse().map_or(inner.host.clone(), in_url)),
        };
        let host = host.unwrap_or_else(|| "localhost".to_owned());
        let url = |scheme, addresses: &[SocketAddr], transport| {
            let port = addresses.first()?.port();
            Some(format!("{scheme}:{host}:{port}?transport={transport}"))
        };
        let all = [
            url("turn", &inner.udp, "udp"),
            url("turn", &inner.tcp, "tcp"),
            url("turns", &inner.tls, "tcp"),
        ];
        all.into_iter().flatten().collect()
    }
}

/// Returns an IP address for a URL.
fn in_url(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// Waits until the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}
