//! Keeps an address at a TURN server for each media worker (`media.turn_server`,
//! `media.turn_rest_api`), so that clients reach the server where UDP from outside is blocked.

mod rest;
mod stream;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portunus_events::TlsError;
use portunus_media::{MediaPlane, TurnFault, TurnLogin, TurnServer, TurnState};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::rustls::ClientConfig;

use crate::config::{ResolveError, TurnClientConfig, TurnTransport, TurnUri};
use rest::{Rest, RestError};
use stream::Stream;

/// The pause before the second attempt, and the longest one. Each is twice as long as the one
/// before.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LAST_WAIT: Duration = Duration::from_secs(60);
/// How long the start waits for allocations.
const START: Duration = Duration::from_secs(4);
/// The time limit of a connection with its handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// The reason why there is no allocation. The texts name the key.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("cannot reach the TURN server {uri} (media.turn_server): {error}")]
    Connect { uri: String, error: io::Error },
    #[error("{fault} ({}): {uri}", key_of(fault))]
    Server { uri: String, fault: TurnFault },
    #[error("the connection to the TURN server {uri} has ended: {error}")]
    Stream { uri: String, error: io::Error },
    #[error("the TURN REST API names no server that can be used (media.turn_rest_api)")]
    NoServer,
    #[error("cannot ask the TURN REST API (media.turn_rest_api): {0}")]
    Rest(#[from] RestError),
}

fn key_of(fault: &TurnFault) -> &'static str {
    match fault {
        TurnFault::Login => "media.turn_user, media.turn_password",
        _ => "media.turn_server",
    }
}

/// Usable servers, and their credentials.
#[derive(Debug, Clone)]
struct Access {
    servers: Vec<TurnUri>,
    login: TurnLogin,
}

/// Keeps the allocations of all workers.
pub(crate) struct TurnClients {
    media: MediaPlane,
    tls: Arc<ClientConfig>,
    source: Source,
    /// The last fault, so that it is logged once and not by each worker.
    fault: Mutex<String>,
}

enum Source {
    Configured(Access),
    Rest(Rest),
}

impl TurnClients {
    /// Starts, if it is configured. Returns once each worker has an allocation or has failed, or
    /// after some seconds.
    pub(crate) async fn start(
        config: &TurnClientConfig,
        media: &MediaPlane,
    ) -> Result<(), TlsError> {
        if !config.is_on() {
            return Ok(());
        }
        let tls = Arc::new(portunus_events::tls_client(config.turn_ca.as_deref())?);
        let source = match (&config.turn_server, Rest::new(config, &tls)) {
            (Some(server), _) => Source::Configured(Access {
                servers: vec![server.clone()],
                login: TurnLogin {
                    username: config.turn_user.clone(),
                    password: config.turn_password.clone().into_inner(),
                },
            }),
            (None, Some(rest)) => Source::Rest(rest),
            (None, None) => return Ok(()),
        };
        let clients = Arc::new(TurnClients {
            media: media.clone(),
            tls,
            source,
            fault: Mutex::default(),
        });
        let mut tried = Vec::new();
        for (worker, socket) in media.sockets().enumerate() {
            let Some(states) = media.watch_turn(worker) else {
                continue;
            };
            let (done, was_tried) = watch::channel(false);
            tried.push(was_tried);
            let keeper = Keeper {
                clients: clients.clone(),
                worker,
                socket,
                states,
                tried: done,
            };
            tokio::spawn(keeper.keep());
        }
        let all = async {
            for mut tried in tried {
                // The keeper lasts as long as the server.
                let _ = tried.wait_for(|is_tried| *is_tried).await;
            }
        };
        if timeout(START, all).await.is_err() {
            tracing::warn!("the TURN server does not answer yet (media.turn_server)");
        }
        Ok(())
    }

    async fn access(&self) -> Result<Access, Failure> {
        match &self.source {
            Source::Configured(access) => Ok(access.clone()),
            Source::Rest(rest) => Ok(rest.access().await?),
        }
    }

    /// Logs a fault that differs from the last one.
    fn failed(&self, text: &str) {
        let mut last = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != text {
            tracing::warn!("{text}. Clients are told of no relayed address; it is tried again");
            text.clone_into(&mut last);
        }
    }

    fn succeeded(&self, worker: usize, uri: &TurnUri, relayed: SocketAddr) {
        self.fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        tracing::info!(worker, server = %uri, %relayed, "clients are told of a relayed address");
    }
}

/// Keeps the allocation of one worker.
struct Keeper {
    clients: Arc<TurnClients>,
    worker: usize,
    /// The bound address of the worker's media socket.
    socket: SocketAddr,
    states: watch::Receiver<TurnState>,
    /// Becomes true after the first attempt.
    tried: watch::Sender<bool>,
}

impl Keeper {
    async fn keep(mut self) {
        let mut wait = FIRST_WAIT;
        loop {
            let began = Instant::now();
            let failure = self.allocate().await;
            self.clients.media.set_turn_server(self.worker, None);
            let text = failure.to_string();
            self.clients.failed(&text);
            self.clients.media.set_turn_unavailable(self.worker, text);
            self.tried.send_replace(true);
            if began.elapsed() >= LAST_WAIT {
                wait = FIRST_WAIT;
            }
            sleep(wait).await;
            wait = wait.saturating_mul(2).min(LAST_WAIT);
        }
    }

    /// Tries each server, and keeps the first allocation until it is lost. Returns why there is
    /// none.
    async fn allocate(&mut self) -> Failure {
        let access = match self.clients.access().await {
            Ok(access) => access,
            Err(failure) => return failure,
        };
        let mut last = Failure::NoServer;
        for uri in &access.servers {
            let addresses = match uri.resolve().await {
                Ok(addresses) => addresses,
                Err(error) => {
                    last = error.into();
                    continue;
                }
            };
            for address in addresses {
                let (had_one, failure) = self.allocate_at(uri, address, &access.login).await;
                if matches!(
                    &failure,
                    Failure::Server {
                        fault: TurnFault::Login,
                        ..
                    }
                ) && let Source::Rest(rest) = &self.clients.source
                {
                    rest.forget().await;
                }
                if had_one {
                    return failure;
                }
                last = failure;
            }
        }
        last
    }

    /// Returns whether there was an allocation, and why there is none any more.
    async fn allocate_at(
        &mut self,
        uri: &TurnUri,
        address: SocketAddr,
        login: &TurnLogin,
    ) -> (bool, Failure) {
        let connect = |error| Failure::Connect {
            uri: uri.to_string(),
            error,
        };
        let mut stream = None;
        let (address, from) = match uri.transport {
            TurnTransport::Udp => match self.reaches_from(address).await {
                Ok(from) => (address, from),
                Err(error) => return (false, connect(error)),
            },
            TurnTransport::Tcp | TurnTransport::Tls => {
                let tls =
                    (uri.transport == TurnTransport::Tls).then(|| (&self.clients.tls, uri.name()));
                let connecting = Stream::connect(address, tls);
                let connected = timeout(CONNECT, connecting).await;
                match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                    Ok(connected) => {
                        let at = (connected.address(), Ipv4Addr::LOCALHOST.into());
                        stream = Some(connected);
                        at
                    }
                    Err(error) => return (false, connect(error)),
                }
            }
        };
        let server = match TurnServer::bind(address, from, login.clone()) {
            Ok(server) => server,
            Err(error) => return (false, connect(error)),
        };
        if let Some(stream) = &stream
            && let Err(error) = stream.join(server.local()).await
        {
            return (false, connect(error));
        }
        self.states.mark_unchanged();
        self.clients
            .media
            .set_turn_server(self.worker, Some(server));
        let (media, worker) = (self.clients.media.clone(), self.worker);
        let pump = async move {
            match stream {
                Some(stream) => stream.run(|| media.turn_datagram_dropped(worker)).await,
                None => std::future::pending().await,
            }
        };
        let mut had_one = false;
        let failure = tokio::select! {
            fault = self.fault(uri, &mut had_one) => Failure::Server { uri: uri.to_string(), fault },
            error = pump => Failure::Stream { uri: uri.to_string(), error },
        };
        (had_one, failure)
    }

    /// Waits until the worker has failed.
    async fn fault(&mut self, uri: &TurnUri, had_one: &mut bool) -> TurnFault {
        loop {
            if self.states.changed().await.is_err() {
                // The media plane has ended.
                return std::future::pending().await;
            }
            let state = self.states.borrow_and_update().clone();
            match state {
                TurnState::Off | TurnState::Allocating | TurnState::Unavailable(_) => {}
                TurnState::Allocated(relayed) => {
                    *had_one = true;
                    self.tried.send_replace(true);
                    self.clients.succeeded(self.worker, uri, relayed);
                }
                TurnState::Failed(fault) => return fault,
            }
        }
    }

    /// Returns the local address for a server.
    async fn reaches_from(&self, server: SocketAddr) -> io::Result<IpAddr> {
        if !self.socket.ip().is_unspecified() {
            return Ok(self.socket.ip());
        }
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // Sends nothing: the kernel chooses the address.
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(server).await?;
        Ok(socket.local_addr()?.ip())
    }
}

#[cfg(test)]
mod tests;
