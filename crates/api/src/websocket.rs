//! The Janus API and the Admin API over WebSocket, with a message in each frame and a subprotocol
//! for each API.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use portunus_admin::Administration;
use portunus_core::{ApiError, Client, Outbox, OverBudget, Purse, Requester, Share};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use crate::listener::{self, stopped};
use crate::pace::{Api, Pace, Requests};
use crate::packages::WEBSOCKET;
use crate::socket::Received;
use crate::{Counters, WebSocketConfig, notifications, reply};

/// The subprotocol that clients must request, as in Janus.
const fn protocol(api: Api) -> &'static str {
    match api {
        Api::Janus => "janus-protocol",
        Api::Admin => "janus-admin-protocol",
    }
}

/// The most messages that are written together.
const TOGETHER: usize = 64;

/// How long a client may take to read the end of a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    api: Api,
    config: WebSocketConfig,
    administration: Administration,
    counters: Arc<Counters>,
    stop: watch::Receiver<bool>,
}

impl Shared {
    pub(crate) fn new(
        api: Api,
        config: &WebSocketConfig,
        administration: Administration,
        counters: Arc<Counters>,
        stop: &watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            api,
            config: config.clone(),
            administration,
            counters,
            stop: stop.clone(),
        })
    }
}

/// Accepts WebSockets at any path.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(any(upgrade)).with_state(shared)
}

/// The read buffer of a connection, in bytes. Most requests fit into it, descriptions take a few
/// reads.
const READ_BUFFER: usize = 4 << 10;

/// Upgrades a request to a connection.
pub(crate) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(peer): Extension<listener::Client>,
    Extension(requester): Extension<Requester>,
    request: WebSocketUpgrade,
) -> Response {
    let max = shared.config.max_message;
    let request = request
        .protocols([protocol(shared.api)])
        // Above the server's limit, so that a slightly larger message gets an error reply.
        .max_message_size(max.saturating_mul(4))
        .max_frame_size(max.saturating_mul(4))
        // Each connection has such a buffer permanently. The library's default is 128 KiB.
        .read_buffer_size(READ_BUFFER)
        // Limits the data of a message that is being written.
        .max_write_buffer_size(max.saturating_mul(4).max(1 << 20));
    if request.selected_protocol().is_none() {
        shared.counters.refused.add(1);
        let text = format!("The subprotocol {} is required.\n", protocol(shared.api));
        return (StatusCode::BAD_REQUEST, text).into_response();
    }
    request.on_upgrade(async move |socket| {
        let address = peer.address;
        shared.counters.websocket_connections.add(1);
        let _open = shared.counters.open_websockets.hold();
        tracing::debug!(%address, "WebSocket connected");
        let connection = Connection::new(&shared, requester, peer.purse.clone());
        let (events, client) = (
            shared.administration.gateway().events(),
            connection.client.clone(),
        );
        notifications::websocket_connected(events, &client, shared.api, address);
        let ending = connection.run(socket, peer.received.clone()).await;
        notifications::disconnected(events, &client);
        tracing::debug!(%address, ?ending, "WebSocket disconnected");
        // Until here it has held its place among the allowed connections.
        drop(peer);
    })
}

/// The reason why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Closed by the client or the network.
    Left,
    /// The client did not answer a ping.
    Silent,
    /// The client did not read its messages.
    Slow,
    /// The client sent a message far too large, or not WebSocket.
    Protocol,
    /// There is no memory for the client's data.
    OverBudget(OverBudget),
    /// The server stops.
    Stopped,
}

impl Ending {
    /// A lost network or a silent end counts as left, anything else as a violation of the protocol.
    fn of(error: axum::Error) -> Self {
        match error.into_inner().downcast_ref() {
            Some(
                Error::ConnectionClosed
                | Error::AlreadyClosed
                | Error::Io(_)
                | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
            ) => Ending::Left,
            _ => Ending::Protocol,
        }
    }
}

/// Frames beside the client's queue.
#[derive(Debug)]
enum Aside {
    Ping,
    Reply(Value),
}

struct Connection<'s> {
    shared: &'s Shared,
    client: Client,
    outbox: Outbox,
}

impl<'s> Connection<'s> {
    fn new(shared: &'s Shared, requester: Requester, purse: Purse) -> Self {
        let (client, outbox) = Client::pushed(WEBSOCKET, requester, purse);
        Self {
            shared,
            client,
            outbox,
        }
    }

    async fn run(mut self, socket: WebSocket, received: Received) -> Ending {
        let shared = self.shared;
        let (mut sink, stream) = socket.split();
        let (aside, asides) = mpsc::channel(8);
        let pace = Pace::new();
        let incoming = Incoming::new(stream, received, self.client.purse());
        let ending = tokio::select! {
            ending = read(shared, &self.client, &pace, incoming, aside) => ending,
            ending = write(shared, &mut self.outbox, &pace, asides, &mut sink) => ending,
        };
        shared.administration.gateway().client_gone(&self.client);
        let (code, reason) = match ending {
            Ending::Left => (close_code::NORMAL, ""),
            Ending::Silent => (close_code::POLICY, "no answer to a ping"),
            Ending::Slow => (close_code::POLICY, "messages were not read in time"),
            Ending::Protocol => (close_code::SIZE, "message too large, or no WebSocket"),
            Ending::OverBudget(_) => (close_code::AGAIN, "no memory for this message"),
            Ending::Stopped => (close_code::AWAY, "the server stops"),
        };
        match ending {
            Ending::Slow => shared.counters.slow_clients.add(1),
            Ending::Silent => shared.counters.silent_clients.add(1),
            Ending::Protocol | Ending::OverBudget(_) => shared.counters.refused.add(1),
            Ending::Left | Ending::Stopped => {}
        }
        if let Ending::OverBudget(error) = ending {
            let reply = ApiError::from(error).reply(None, None).to_string();
            let _ = timeout(CLOSE_TIMEOUT, sink.send(Message::text(reply))).await;
        }
        let reason = reason.into();
        let close = sink.send(Message::Close(Some(CloseFrame { code, reason })));
        // An error does not matter.
        let _ = timeout(CLOSE_TIMEOUT, close).await;
        ending
    }
}

/// The header and the mask of a control frame, in bytes.
const CONTROL_FRAME: u64 = 6;

/// Messages of a client, which pays for the received part of an unfinished one.
struct Incoming {
    stream: SplitStream<WebSocket>,
    received: Received,
    /// The number of received bytes that are no longer kept.
    done: u64,
    share: Share,
}

impl Incoming {
    fn new(stream: SplitStream<WebSocket>, received: Received, purse: &Purse) -> Self {
        Self {
            stream,
            done: received.bytes(),
            received,
            share: purse.empty_share(),
        }
    }

    /// Returns the next message, and pays for it until the following call. Cancel safe.
    async fn next(&mut self) -> Result<Message, Ending> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Message, Ending>> {
        let message = match self.stream.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(message))) => message,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(Ending::of(error))),
            Poll::Ready(None) => return Poll::Ready(Err(Ending::Left)),
            Poll::Pending => {
                let held = self.received.bytes().saturating_sub(self.done);
                let held = usize::try_from(held).unwrap_or(usize::MAX);
                return match self.share.resize(held) {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(Ending::OverBudget(error))),
                };
            }
        };
        match &message {
            Message::Ping(data) | Message::Pong(data) => {
                // Control frames may come between the parts of a message.
                let size = (data.len() as u64).saturating_add(CONTROL_FRAME);
                self.done = self.done.saturating_add(size);
            }
            Message::Text(_) | Message::Binary(_) | Message::Close(_) => {
                self.done = self.received.bytes();
            }
        }
        Poll::Ready(Ok(message))
    }
}

/// Passes the client's requests to the gateway, and pings the client.
async fn read(
    shared: &Shared,
    client: &Client,
    pace: &Pace,
    mut incoming: Incoming,
    aside: mpsc::Sender<Aside>,
) -> Ending {
    let config = &shared.config;
    let idle = match config.ping_interval {
        Duration::ZERO => Duration::MAX,
        interval => interval,
    };
    let mut pinged = false;
    let mut requests = Requests::new(shared.api, &shared.administration, client, pace);
    loop {
        let patience = if pinged { config.ping_timeout } else { idle };
        let message = match timeout(patience, requests.meanwhile(incoming.next())).await {
            Ok(Ok(message)) => message,
            Ok(Err(ending)) => return ending,
            Err(_) if pinged => return Ending::Silent,
            Err(_) => {
                pinged = true;
                // The writer ends only with the connection.
                let _ = aside.send(Aside::Ping).await;
                continue;
            }
        };
        pinged = false;
        let request = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return Ending::Left,
        };
        shared.counters.websocket_messages.add(1);
        if request.len() > config.max_message {
            shared.counters.refused.add(1);
            let reply = reply::too_large(config.max_message);
            let _ = aside.send(Aside::Reply(reply)).await;
            continue;
        }
        requests.take(&request).await;
        // Yields after each request, so that one client does not hold up others.
        requests.meanwhile(yield_now()).await;
    }
}

/// Sends replies and events in order.
async fn write(
    shared: &Shared,
    outbox: &mut Outbox,
    pace: &Pace,
    mut asides: mpsc::Receiver<Aside>,
    sink: &mut SplitSink<WebSocket, Message>,
) -> Ending {
    let limit = shared.config.write_timeout;
    let mut stop = shared.stop.clone();
    loop {
        // Pays for the messages until they are written.
        let mut paid = Vec::new();
        let message = tokio::select! {
            posted = outbox.recv_posted() => match posted {
                Some(posted) => {
                    let (text, share) = posted.into_text();
                    paid.push(share);
                    Message::text(text)
                }
                // The gateway has disconnected the client.
                None => return Ending::Slow,
            },
            Some(aside) = asides.recv() => match aside {
                Aside::Ping => Message::Ping(Bytes::new()),
                Aside::Reply(reply) => Message::text(reply.to_string()),
            },
            () = stopped(&mut stop) => break,
        };
        // Waiting messages are sent by the same system call.
        let together = async {
            sink.feed(message).await?;
            pace.wrote();
            for _ in 1..TOGETHER {
                let Some(posted) = outbox.try_recv_posted() else {
                    break;
                };
                let (text, share) = posted.into_text();
                paid.push(share);
                sink.feed(Message::text(text)).await?;
                pace.wrote();
            }
            sink.flush().await
        };
        match timeout(limit, together).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ending::Left,
            Err(_) => return Ending::Slow,
        }
    }
    // The last events report the ends of calls.
    while let Some(posted) = outbox.try_recv_posted() {
        let message = Message::text(posted.into_text().0);
        let sent = timeout(CLOSE_TIMEOUT, sink.send(message)).await;
        if !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    Ending::Stopped
}
