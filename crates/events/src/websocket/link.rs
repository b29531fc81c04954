//! A WebSocket connection.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::client::{ClientRequestBuilder, IntoClientRequest};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::config::Backend;
use crate::stream::Stream;

/// The timeout of a connection attempt, and of a message.
const LIMIT: Duration = Duration::from_secs(10);

/// The interval of pings. A peer that is silent for twice as long is gone.
const ASK: Duration = Duration::from_secs(15);

/// The limit of bytes of a received message. None are expected.
const MAX_HEARD: usize = 64 << 10;

/// The reason why a connection failed or ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the WebSocket backend cannot be reached: {0}")]
    Unreachable(std::io::Error),
    #[error("the WebSocket backend's TLS fails: {0}")]
    Tls(std::io::Error),
    #[error("the WebSocket backend takes no connection: {0}")]
    Refused(Error),
    #[error("the connection to the WebSocket backend broke: {0}")]
    Broken(Error),
    #[error("the WebSocket backend ended the connection")]
    Closed,
    #[error("the WebSocket backend does not take what is sent, or says nothing")]
    Hanging,
}

impl LinkError {
    /// Returns advice to the operator.
    pub(super) const fn advice(&self) -> &'static str {
        match self {
            LinkError::Unreachable(_) => {
                "see that it runs, and that events.websocket.backend is its address"
            }
            LinkError::Tls(_) => "see its certificate, and events.websocket.ca",
            LinkError::Refused(_) => {
                "see the path in events.websocket.backend, and events.websocket.subprotocol"
            }
            LinkError::Broken(_) | LinkError::Closed | LinkError::Hanging => {
                "see its own log; events wait until it is back, and the oldest are lost if that lasts"
            }
        }
    }
}

/// A connection that is open.
pub(super) struct Link {
    socket: WebSocketStream<Box<dyn Stream>>,
    ask: Interval,
    /// Whether anything came since it was asked.
    answered: bool,
}

impl Link {
    pub(super) async fn connect(
        backend: &Backend,
        subprotocol: Option<&HeaderValue>,
        tls: &TlsConnector,
    ) -> Result<Self, LinkError> {
        let late = || LinkError::Unreachable(std::io::ErrorKind::TimedOut.into());
        let connecting = Self::connect_without_limit(backend, subprotocol, tls);
        timeout(LIMIT, connecting).await.map_err(|_| late())?
    }

    async fn connect_without_limit(
        backend: &Backend,
        subprotocol: Option<&HeaderValue>,
        tls: &TlsConnector,
    ) -> Result<Self, LinkError> {
        let to = (backend.host.as_str(), backend.port);
        let tcp = TcpStream::connect(to)
            .await
            .map_err(LinkError::Unreachable)?;
        // Batches are written at once already.
        let _ = tcp.set_nodelay(true);
        let stream: Box<dyn Stream> = if backend.secure {
            let name = ServerName::try_from(backend.host.clone());
            let name = name.map_err(|error| LinkError::Tls(std::io::Error::other(error)))?;
            let secured = tls.connect(name, tcp).await;
            Box::new(secured.map_err(LinkError::Tls)?)
        } else {
            Box::new(tcp)
        };
        let request = ClientRequestBuilder::new(backend.uri.clone());
        let mut request = request.into_client_request().map_err(LinkError::Refused)?;
        if let Some(subprotocol) = subprotocol {
            let headers = request.headers_mut();
            headers.insert(SEC_WEBSOCKET_PROTOCOL, subprotocol.clone());
        }
        let config = WebSocketConfig::default()
            .read_buffer_size(4 << 10)
            .write_buffer_size(0)
            .max_message_size(Some(MAX_HEARD))
            .max_frame_size(Some(MAX_HEARD));
        let connected = client_async_with_config(request, stream, Some(config)).await;
        let (socket, _) = connected.map_err(LinkError::Refused)?;
        let begin = Instant::now().checked_add(ASK).unwrap_or_else(Instant::now);
        let mut ask = interval_at(begin, ASK);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Link {
            socket,
            ask,
            answered: true,
        })
    }

    /// Sends a text message.
    pub(super) async fn send(&mut self, body: &Bytes) -> Result<(), LinkError> {
        // JSON is UTF-8.
        let text = Utf8Bytes::try_from(body.clone()).unwrap_or_default();
        self.write(Message::Text(text)).await
    }

    /// Reads and ignores messages, and watches that the peer is alive. Cancel safe.
    pub(super) async fn listen(&mut self) -> Result<(), LinkError> {
        tokio::select! {
            message = self.socket.next() => match message {
                Some(Ok(Message::Close(_))) | None => Err(LinkError::Closed),
                Some(Ok(_)) => {
                    self.answered = true;
                    Ok(())
                }
                Some(Err(error)) => Err(LinkError::Broken(error)),
            },
            _ = self.ask.tick() => {
                if !std::mem::take(&mut self.answered) {
                    return Err(LinkError::Hanging);
                }
                self.write(Message::Ping(Bytes::new())).await?;
                Ok(())
            }
        }
    }

    /// Closes the connection.
    pub(super) async fn close(&mut self) {
        let _ = self.write(Message::Close(None)).await;
    }

    async fn write(&mut self, message: Message) -> Result<(), LinkError> {
        let sent = timeout(LIMIT, self.socket.send(message)).await;
        let sent = sent.map_err(|_| LinkError::Hanging)?;
        sent.map_err(LinkError::Broken)
    }
}
