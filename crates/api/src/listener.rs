//! TCP listeners and the connections that they accept, plain or by TLS.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::{Extension, Router};
use hyper::Request;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use portunus_core::{Budget, OverBudget, Purse, Share, prices};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::bodies;
use crate::counters::{Gauge, Held};
use crate::kept_sockets::KeptSockets;
use crate::requester::Locality;
use crate::socket::{CountedStream, Received};
use crate::tls::Tls;
use crate::{Counters, StartError};

/// The time limit for a TLS handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// The longest head of a request, in bytes. Longer ones are refused with status 431.
const MAX_HEAD: usize = 16 << 10;

/// The first and the longest pause of an accept loop after a failure. Each pause is twice as long
/// as the one before.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Sent to a plain connection without a place or memory.
const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\n\
Retry-After: 2\r\n\
Connection: close\r\n\
Content-Type: text/plain\r\n\
Content-Length: 56\r\n\
\r\n\
Your address, or all clients, have too many connections\n";

/// A connection of requests. It holds a place among the allowed connections as long as any clone
/// exists, so that an upgraded connection still counts.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The address of the connection. For a request by a trusted proxy it is the client's.
    pub(crate) address: SocketAddr,
    /// Pays for the data of its requests and responses.
    pub(crate) purse: Purse,
    pub(crate) received: Received,
    _place: Arc<(Share, Held)>,
}

/// Binds a port on some addresses, or on all if `addresses` is empty. `key` is the configuration
/// key of the port.
pub(crate) async fn bind(
    addresses: &[IpAddr],
    port: u16,
    key: &'static str,
    kept: &KeptSockets,
) -> Result<Vec<TcpListener>, StartError> {
    let failed = |address, error| StartError::Listen {
        address,
        error,
        key,
    };
    if addresses.is_empty() {
        // On Linux an IPv6 wildcard socket accepts IPv4 as well, unless the machine has no IPv6.
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let listener = match kept.bind(any).await {
            Err(error) if no_ipv6(&error) => {
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
                kept.bind(any).await.map_err(|e| failed(any, e))?
            }
            outcome => outcome.map_err(|e| failed(any, e))?,
        };
        return Ok(vec![listener]);
    }
    let mut listeners = Vec::with_capacity(addresses.len());
    for ip in addresses {
        let address = SocketAddr::from((*ip, port));
        let listener = kept.bind(address).await;
        listeners.push(listener.map_err(|e| failed(address, e))?);
    }
    Ok(listeners)
}

/// Binds a port on the machine's loopback addresses.
pub(crate) async fn bind_loopback(
    port: u16,
    key: &'static str,
    kept: &KeptSockets,
) -> Result<Vec<TcpListener>, StartError> {
    let mut listeners = bind(&[Ipv4Addr::LOCALHOST.into()], port, key, kept).await?;
    let chosen = listeners.first().and_then(|first| first.local_addr().ok());
    let chosen = chosen.map_or(port, |address| address.port());
    match bind(&[Ipv6Addr::LOCALHOST.into()], chosen, key, kept).await {
        Ok(more) => listeners.extend(more),
        // The kernel chose a port that is free on IPv4, which suffices.
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

/// The state that the listeners of one server share.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) router: Router,
    /// The places for connections.
    pub(crate) places: Budget,
    /// The memory for connections.
    pub(crate) memory: Budget,
    /// The open connections of one listener.
    pub(crate) open: Gauge,
    pub(crate) counters: Arc<Counters>,
    pub(crate) locality: Arc<Locality>,
    /// Becomes true when the server stops.
    pub(crate) stop: watch::Receiver<bool>,
}

/// Returns when the server stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, since the server has stopped.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Accepts connections until the server stops.
pub(crate) async fn serve(listener: TcpListener, tls: Option<Tls>, server: Server) {
    let mut stop = server.stop.clone();
    let mut pause = PAUSES.0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => return,
        };
        match accepted {
            Ok((stream, address)) => {
                pause = PAUSES.0;
                let tls = tls.as_ref().map(Tls::acceptor);
                accept(stream, address, tls, server.clone());
            }
            Err(error) => {
                server.counters.accept_failed(&error);
                // Mostly there are no file descriptors, and the next attempt would fail as well.
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2).min(PAUSES.1);
            }
        }
    }
}

fn accept(stream: TcpStream, address: SocketAddr, tls: Option<TlsAcceptor>, server: Server) {
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    let Ok(client) = admit(address, tls.is_some(), &server) else {
        server.counters.connections_refused.add(1);
        if tls.is_none() {
            refuse(&stream);
        }
        return;
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

/// Returns the purse of a request's connection, if it has one.
pub(crate) fn purse(client: Option<&Extension<Client>>) -> Purse {
    let purse = client.map(|Extension(client)| client.purse.clone());
    purse.unwrap_or_default()
}

/// Takes the place and the memory for a connection.
fn admit(address: SocketAddr, by_tls: bool, server: &Server) -> Result<Client, OverBudget> {
    let of = address.ip().into();
    let place = server.places.purse(of).take(1)?;
    let price = match by_tls {
        true => prices::CONNECTION + prices::TLS,
        false => prices::CONNECTION,
    };
    let purse = server.memory.purse(of);
    Ok(Client {
        address,
        purse: purse.open(price, prices::CONNECTION_PREPAID)?,
        received: Received::default(),
        _place: Arc::new((place, server.open.hold())),
    })
}

/// Informs a client why its connection is closed immediately.
fn refuse(stream: &TcpStream) {
    // An error does not matter.
    let _ = stream.try_write(REFUSAL.as_bytes());
    // With unread bytes the system would reset the connection instead of closing it.
    let _ = stream.try_read(&mut [0; 4 << 10]);
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
    let (address, purse) = (client.address, client.purse.clone());
    let stream = CountedStream::new(stream, client.received.clone());
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
    let service = service.map_response(move |response| bodies::paid(response, purse.clone()));
    // Yields after each request, so that one client does not hold up others.
    let service = service.then(|response| async {
        yield_now().await;
        response
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
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
