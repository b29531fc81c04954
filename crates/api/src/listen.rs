//! TCP listeners and the connections that they accept, plain or by TLS.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::counters::{Gauge, Held};
use crate::requester::Locality;
use crate::{Counters, StartError};

/// How long a client may take for a TLS handshake or for a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// A connection that requests come by. It holds the connection's place among the allowed ones for as long as any
/// clone of it lives, so that an upgraded connection still counts.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Where the connection came from; of a request that a trusted proxy hands on, where its client is.
    pub(crate) address: SocketAddr,
    _place: Arc<(OwnedSemaphorePermit, Held)>,
}

/// Binds a port on some addresses, or on all; `key` is the configuration key of the port.
pub(crate) async fn bind(
    addresses: &[IpAddr],
    port: u16,
    key: &'static str,
) -> Result<Vec<TcpListener>, StartError> {
    let failed = |address, error| StartError::Listen {
        address,
        error,
        key,
    };
    if addresses.is_empty() {
        // On Linux an IPv6 wildcard socket takes IPv4 too, unless the machine has no IPv6.
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let listener = match TcpListener::bind(any).await {
            Err(error) if no_ipv6(&error) => {
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
                TcpListener::bind(any).await.map_err(|e| failed(any, e))?
            }
            outcome => outcome.map_err(|e| failed(any, e))?,
        };
        return Ok(vec![listener]);
    }
    let mut listeners = Vec::with_capacity(addresses.len());
    for ip in addresses {
        let address = SocketAddr::from((*ip, port));
        let listener = TcpListener::bind(address).await;
        listeners.push(listener.map_err(|e| failed(address, e))?);
    }
    Ok(listeners)
}

/// Binds a port on the loopback addresses that the machine has.
pub(crate) async fn bind_loopback(
    port: u16,
    key: &'static str,
) -> Result<Vec<TcpListener>, StartError> {
    let mut listeners = bind(&[Ipv4Addr::LOCALHOST.into()], port, key).await?;
    let chosen = listeners.first().and_then(|first| first.local_addr().ok());
    let chosen = chosen.map_or(port, |address| address.port());
    match bind(&[Ipv6Addr::LOCALHOST.into()], chosen, key).await {
        Ok(more) => listeners.extend(more),
        // The kernel chose a port that is free with IPv4: that is enough.
        Err(_) if port == 0 => {}
        Err(StartError::Listen { error, .. }) if no_ipv6(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(listeners)
}

fn no_ipv6(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.kind() == io::ErrorKind::Unsupported
        || error.raw_os_error() == Some(97) // EAFNOSUPPORT has no ErrorKind
}

/// What the listeners of one server share.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) router: Router,
    pub(crate) places: Arc<Semaphore>,
    /// Connections that are open, of one listener.
    pub(crate) open: Gauge,
    pub(crate) counters: Arc<Counters>,
    pub(crate) locality: Arc<Locality>,
    /// Turns true once, when the server stops.
    pub(crate) stop: watch::Receiver<bool>,
}

/// Ends when the server stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone: the server has stopped.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Accepts connections until the server stops.
pub(crate) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, server: Server) {
    let mut stop = server.stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => return,
        };
        match accepted {
            Ok((stream, address)) => accept(stream, address, tls.clone(), server.clone()),
            Err(error) => {
                // Mostly out of file descriptors: the next try would fail as well.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn accept(stream: TcpStream, address: SocketAddr, tls: Option<TlsAcceptor>, server: Server) {
    let Ok(place) = server.places.clone().try_acquire_owned() else {
        server.counters.connections_refused.add(1);
        return;
    };
    let client = Client {
        address: SocketAddr::new(address.ip().to_canonical(), address.port()),
        _place: Arc::new((place, server.open.hold())),
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    tokio::spawn(async move {
        let Some(tls) = tls else {
            return connection(stream, client, server).await;
        };
        match tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => connection(stream, client, server).await,
            Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%address, "TLS handshake timed out"),
        }
    });
}

async fn connection<S>(stream: S, client: Client, server: Server)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Server {
        router,
        mut stop,
        locality,
        ..
    } = server;
    let address = client.address;
    let service = router.map_request(move |mut request: Request<hyper::body::Incoming>| {
        let sender = locality.sender(client.address, &request);
        let client = Client {
            address: sender.address,
            ..client.clone()
        };
        request.extensions_mut().insert(sender.requester);
        request.extensions_mut().insert(sender);
        request.extensions_mut().insert(client);
        request.map(Body::new)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%address, %error, "connection ended");
    }
}
