//! The way from an HTTP request to a WebSocket that can send a message in fragments (RFC 6455
//! section 5.4). axum's WebSockets send each message as one frame, and keep a buffer of the size
//! of the longest one: in a large room that is a `join` with thousands of participants.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::sink::{Sink, SinkExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::frame::{MAX_MESSAGE, READ_BUFFER};

/// The longest fragment that is sent, in bytes.
const FRAGMENT: usize = 16 << 10;

/// The WebSocket of a client.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A request for a WebSocket (RFC 6455 section 4.2.1). Other requests are refused with 404.
#[derive(Debug)]
pub(super) struct Upgrade {
    accept: HeaderValue,
    on_upgrade: OnUpgrade,
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        let headers = &parts.headers;
        let is_asked = parts.method == Method::GET
            && names(headers, CONNECTION, "upgrade")
            && names(headers, UPGRADE, "websocket")
            && names(headers, SEC_WEBSOCKET_VERSION, "13");
        let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| is_asked);
        let accept = key.map(|key| derive_accept_key(key.as_bytes()));
        let accept = accept.and_then(|accept| HeaderValue::try_from(accept).ok());
        let on_upgrade = parts.extensions.remove::<OnUpgrade>();
        match (accept, on_upgrade) {
            (Some(accept), Some(on_upgrade)) => Ok(Self { accept, on_upgrade }),
            _ => Err(StatusCode::NOT_FOUND),
        }
    }
}

impl Upgrade {
    /// Accepts the request. `serve` gets the WebSocket once the answer is sent.
    pub(super) fn accept<F: Future<Output = ()> + Send>(
        self,
        serve: impl FnOnce(Socket) -> F + Send + 'static,
    ) -> Response {
        let on_upgrade = self.on_upgrade;
        tokio::spawn(async move {
            let upgraded = match on_upgrade.await {
                Ok(upgraded) => upgraded,
                Err(error) => return tracing::debug!(%error, "a client left before its WebSocket"),
            };
            let config = WebSocketConfig::default()
                .max_message_size(Some(MAX_MESSAGE))
                .max_frame_size(Some(MAX_MESSAGE))
                .read_buffer_size(READ_BUFFER)
                .write_buffer_size(0);
            let (io, role) = (TokioIo::new(upgraded), Role::Server);
            serve(WebSocketStream::from_raw_socket(io, role, Some(config)).await).await;
        });
        let headers = [
            (CONNECTION, HeaderValue::from_static("upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_ACCEPT, self.accept),
        ];
        (StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response()
    }
}

/// Returns whether a header has this word in its list.
fn names(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).into_iter();
    let mut words = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    words.any(|it| it.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// Sends a message of `kind` in fragments.
pub(super) async fn send<S>(sink: &mut S, kind: Data, content: Bytes) -> Result<(), S::Error>
where
    S: Sink<Message> + Unpin,
{
    let (mut kind, mut rest) = (kind, content);
    loop {
        let fragment = rest.split_to(rest.len().min(FRAGMENT));
        let is_last = rest.is_empty();
        let frame = Frame::message(fragment, OpCode::Data(kind), is_last);
        sink.send(Message::Frame(frame)).await?;
        if is_last {
            return Ok(());
        }
        kind = Data::Continue;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use futures_util::StreamExt;
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn long_messages_arrive_whole() {
        let (server, client) = duplex(1 << 10);
        let mut server = WebSocketStream::from_raw_socket(server, Role::Server, None).await;
        let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        for len in [0, 1, FRAGMENT, FRAGMENT + 1, 10 * FRAGMENT] {
            let content = Bytes::from(vec![b'x'; len]);
            let sent = send(&mut server, Data::Text, content.clone());
            let (sent, received) = tokio::join!(sent, client.next());
            sent.unwrap();
            let received = received.unwrap().unwrap();
            assert!(received.is_text());
            assert_eq!(received.into_data(), content);
        }
    }

    #[test]
    fn a_header_is_a_list_of_words() {
        let mut headers = HeaderMap::new();
        headers.append(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        assert!(names(&headers, CONNECTION, "upgrade"));
        assert!(!names(&headers, CONNECTION, "keep"));
        assert!(!names(&headers, UPGRADE, "websocket"));
    }
}
