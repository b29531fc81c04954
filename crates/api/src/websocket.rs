//! The WebSocket server: one message a text frame, subprotocol `janus-protocol`.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Router;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use portunus_core::{Client, Gateway};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::listen;
use crate::start::WEBSOCKET;
use crate::{Counters, WebSocketConfig, reply};

/// The subprotocol that clients have to ask for.
const SUBPROTOCOL: &str = "janus-protocol";
/// A frame may be this many times as large as a request before the connection is closed for it.
const FRAME_FACTOR: usize = 4;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    config: WebSocketConfig,
    gateway: Gateway,
    counters: Arc<Counters>,
    stop: watch::Receiver<bool>,
}

impl Shared {
    pub(crate) fn new(
        config: &WebSocketConfig,
        gateway: Gateway,
        counters: Arc<Counters>,
        stop: &watch::Receiver<bool>,
    ) -> Arc<Self> {
        let (config, stop) = (config.clone(), stop.clone());
        Arc::new(Self {
            config,
            gateway,
            counters,
            stop,
        })
    }
}

/// What is served on the WebSocket ports: any path is the API.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(any(upgrade)).with_state(shared)
}

/// Turns a request into a connection.
pub(crate) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<listen::Client>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let upgrade = upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(shared.config.max_message.saturating_mul(FRAME_FACTOR))
        .max_frame_size(shared.config.max_message.saturating_mul(FRAME_FACTOR));
    if upgrade.selected_protocol().is_none() {
        shared.counters.refused.add(1);
        let text =
            "This is a Janus API server: ask for the WebSocket subprotocol \"janus-protocol\".\n";
        return (StatusCode::BAD_REQUEST, text).into_response();
    }
    upgrade.on_upgrade(move |socket| async move {
        tracing::debug!(address = %client.address, "WebSocket connected");
        shared.counters.websocket_connections.add(1);
        serve(&shared, socket).await;
        tracing::debug!(address = %client.address, "WebSocket closed");
        // The connection's place is free again.
        drop(client);
    })
}

/// Serves one connection until either side ends it.
async fn serve(shared: &Shared, socket: WebSocket) {
    let (client, mut outbox) = Client::pushed(WEBSOCKET);
    let (mut sink, mut stream) = socket.split();
    let (requests, mut inbox) = mpsc::channel::<Utf8Bytes>(64);
    let gateway = shared.gateway.clone();
    let answering = {
        let client = client.clone();
        tokio::spawn(async move {
            while let Some(message) = inbox.recv().await {
                gateway.submit(&client, message.as_bytes()).await;
            }
        })
    };
    let mut stop = shared.stop.clone();
    let mut liveness = Liveness::new(&shared.config);
    let close = loop {
        tokio::select! {
            message = stream.next() => {
                liveness.heard(&shared.config);
                match message {
                    Some(Ok(Message::Text(text))) => {
                        shared.counters.websocket_messages.add(1);
                        if text.len() > shared.config.max_message {
                            shared.counters.refused.add(1);
                            let error = reply::too_large(shared.config.max_message);
                            if !send(shared, &mut sink, &error).await { break None }
                        } else if requests.send(text).await.is_err() {
                            break None;
                        }
                    }
                    Some(Ok(Message::Binary(_))) => {
                        break Some((close_code::UNSUPPORTED, "requests are text"));
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break None,
                }
            }
            message = outbox.recv() => match message {
                Some(message) => if !send(shared, &mut sink, &message).await { break None },
                None => {
                    shared.counters.slow_clients.add(1);
                    break Some((close_code::POLICY, "too slow"));
                }
            },
            () = sleep_until(liveness.deadline), if !shared.config.ping_interval.is_zero() => {
                if liveness.expired(&shared.config) {
                    shared.counters.silent_clients.add(1);
                    break Some((close_code::AWAY, "no answer to a ping"));
                }
                if sink.send(Message::Ping(Default::default())).await.is_err() { break None }
            }
            () = listen::stopped(&mut stop) => {
                // What is queued (hangups, detachments) still goes out.
                while let Ok(message) = outbox.try_recv() {
                    if !send(shared, &mut sink, &message).await { break }
                }
                break Some((close_code::AWAY, "the server stops"));
            }
        }
    };
    answering.abort();
    shared.gateway.client_gone(&client);
    if let Some((code, reason)) = close {
        let frame = CloseFrame {
            code,
            reason: Utf8Bytes::from_static(reason),
        };
        // The peer may be gone already.
        let _ = timeout(
            Duration::from_secs(1),
            sink.send(Message::Close(Some(frame))),
        )
        .await;
    }
}

/// Writes one message; false if the client cannot take it.
async fn send(shared: &Shared, sink: &mut SplitSink<WebSocket, Message>, message: &Value) -> bool {
    let text = Message::Text(message.to_string().into());
    match timeout(shared.config.write_timeout, sink.send(text)).await {
        Ok(sent) => sent.is_ok(),
        Err(_) => {
            shared.counters.slow_clients.add(1);
            false
        }
    }
}

/// Whether the client is still there.
struct Liveness {
    deadline: Instant,
    pinged: bool,
}

impl Liveness {
    fn new(config: &WebSocketConfig) -> Self {
        Self {
            deadline: Instant::now() + config.ping_interval,
            pinged: false,
        }
    }

    fn heard(&mut self, config: &WebSocketConfig) {
        *self = Self::new(config);
    }

    /// The deadline has come: false, it is time to ping; true, a ping was not answered.
    fn expired(&mut self, config: &WebSocketConfig) -> bool {
        let expired = self.pinged;
        self.pinged = true;
        self.deadline = Instant::now() + config.ping_timeout;
        expired
    }
}
