//! One connection, made or accepted: its handshakes, and the parts common to streams and
//! WebSockets.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::flow::{ConnectionId, Flow, Transport};
use crate::framing::Role;
use crate::message::Host;

use super::config::Limits;
use super::sockets::Arrival;
use super::{stream, tls, websocket};

/// The time that sent data may stay unacknowledged by the peer's kernel.
const UNANSWERED: Duration = Duration::from_secs(32);

/// The byte stream under TLS and WebSockets.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// A connection before its handshakes.
pub(super) struct Connection {
    pub id: ConnectionId,
    pub transport: Transport,
    pub remote: SocketAddr,
    pub limits: Limits,
    /// Messages to send. When the other end is dropped, the connection ends.
    pub queue: mpsc::Receiver<Arc<[u8]>>,
    pub up: mpsc::Sender<Arrival>,
}

/// The side that opens it.
pub(super) enum Origin {
    /// We connect. The certificate has to name `host`.
    Out {
        host: Host,
        tls: TlsConnector,
        path: String,
    },
    /// The peer connected.
    In {
        stream: TcpStream,
        tls: Option<TlsAcceptor>,
    },
}

impl Connection {
    /// Runs until it ends, and reports that.
    pub async fn run(mut self, origin: Origin) {
        let (id, up) = (self.id, self.up.clone());
        let ended = match self.open(origin).await {
            Ok(opened) => self.serve(opened).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(remote = %self.remote, transport = %self.transport, %error, "SIP connection ended");
        }
        // Nobody receives it when the endpoint is gone.
        let _ = up.send(Arrival::Ended(id)).await;
    }

    async fn serve(&mut self, opened: Opened) -> io::Result<()> {
        let Opened {
            framing,
            flow,
            role,
        } = opened;
        if self.up.send(Arrival::Opened(flow)).await.is_err() {
            return Ok(());
        }
        match framing {
            Framing::Stream(wire) => stream::serve(self, wire, flow, role).await,
            Framing::WebSocket(socket) => websocket::serve(self, *socket, flow, role).await,
        }
    }

    async fn open(&mut self, origin: Origin) -> io::Result<Opened> {
        let late = |_| io::Error::from(ErrorKind::TimedOut);
        timeout(self.limits.connect, self.open_without_limit(origin))
            .await
            .map_err(late)?
    }

    async fn open_without_limit(&mut self, origin: Origin) -> io::Result<Opened> {
        let role = match &origin {
            Origin::Out { .. } => Role::Connected,
            Origin::In { .. } => Role::Accepted,
        };
        let is_websocket = matches!(self.transport, Transport::Ws | Transport::Wss);
        let (wire, local, asked): (Box<dyn Wire>, _, _) = match origin {
            Origin::Out { host, tls, path } => {
                let tcp = TcpStream::connect(self.remote).await?;
                set_options(&tcp);
                let local = tcp.local_addr()?;
                let wire: Box<dyn Wire> = if self.transport.is_secure() {
                    let name = tls::server_name(&host).ok_or(ErrorKind::InvalidInput)?;
                    Box::new(tls.connect(name, tcp).await?)
                } else {
                    Box::new(tcp)
                };
                (wire, local, Some((host, path)))
            }
            Origin::In { stream: tcp, tls } => {
                set_options(&tcp);
                let local = tcp.local_addr()?;
                let wire: Box<dyn Wire> = match tls {
                    Some(tls) => Box::new(tls.accept(tcp).await?),
                    None => Box::new(tcp),
                };
                (wire, local, None)
            }
        };
        let framing = match (is_websocket, asked) {
            (false, _) => Framing::Stream(wire),
            (true, Some((host, path))) => {
                let secure = self.transport.is_secure();
                Framing::WebSocket(Box::new(
                    websocket::connect(wire, secure, &host, self.remote.port(), &path).await?,
                ))
            }
            (true, None) => Framing::WebSocket(Box::new(websocket::accept(wire).await?)),
        };
        let flow = Flow {
            transport: self.transport,
            local,
            remote: self.remote,
            connection: Some(self.id),
        };
        Ok(Opened {
            framing,
            flow,
            role,
        })
    }
}

/// A connection after its handshakes.
struct Opened {
    framing: Framing,
    flow: Flow,
    role: Role,
}

/// The form of a connection's messages.
enum Framing {
    Stream(Box<dyn Wire>),
    WebSocket(Box<websocket::Socket>),
}

fn set_options(tcp: &TcpStream) {
    // It works without both.
    let _ = tcp.set_nodelay(true);
    let _ = socket2::SockRef::from(tcp).set_tcp_user_timeout(Some(UNANSWERED));
}
