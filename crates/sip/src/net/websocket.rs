//! WebSockets with a SIP message in each message (RFC 7118).

use std::io::{self, ErrorKind};
use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{sleep_until, timeout};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config, client_async_with_config};

use crate::flow::Flow;
use crate::framing::{Role, datagram};
use crate::message::{Host, MAX_MESSAGE};

use super::connection::{Connection, Wire};
use super::sockets::Arrival;
use super::stream::later;

/// The subprotocol (RFC 7118 section 4).
const SUBPROTOCOL: &str = "sip";

pub(super) type Socket = WebSocketStream<Box<dyn Wire>>;

/// The client side of a WebSocket.
pub(super) async fn connect(
    wire: Box<dyn Wire>,
    secure: bool,
    host: &Host,
    port: u16,
    path: &str,
) -> io::Result<Socket> {
    let scheme = if secure { "wss" } else { "ws" };
    let slash = if path.starts_with('/') { "" } else { "/" };
    let uri: Uri = format!("{scheme}://{host}:{port}{slash}{path}")
        .parse()
        .map_err(io::Error::other)?;
    let request = ClientRequestBuilder::new(uri).with_sub_protocol(SUBPROTOCOL);
    let (socket, _) = client_async_with_config(request, wire, Some(config()))
        .await
        .map_err(broken)?;
    Ok(socket)
}

/// The server side of a WebSocket. A client that does not speak SIP is refused.
#[expect(clippy::result_large_err, reason = "the type is the library's")]
pub(super) async fn accept(wire: Box<dyn Wire>) -> io::Result<Socket> {
    let choose = |request: &Request, mut response: Response| {
        let mut offered = request
            .headers()
            .get_all(SEC_WEBSOCKET_PROTOCOL)
            .iter()
            .filter_map(|value| value.to_str().ok());
        if !offered.any(|list| {
            list.split(',')
                .any(|one| one.trim().eq_ignore_ascii_case(SUBPROTOCOL))
        }) {
            let mut refusal = ErrorResponse::new(Some("the subprotocol is sip".to_owned()));
            *refusal.status_mut() = StatusCode::BAD_REQUEST;
            return Err(refusal);
        }
        response.headers_mut().insert(
            SEC_WEBSOCKET_PROTOCOL,
            HeaderValue::from_static(SUBPROTOCOL),
        );
        Ok(response)
    };
    accept_hdr_async_with_config(wire, choose, Some(config()))
        .await
        .map_err(broken)
}

pub(super) async fn serve(
    connection: &mut Connection,
    mut socket: Socket,
    flow: Flow,
    role: Role,
) -> io::Result<()> {
    let quiet = match role {
        Role::Connected => connection.limits.keep_alive,
        Role::Accepted => connection.limits.idle,
    };
    let mut deadline = later(quiet);
    loop {
        let mut answer = None;
        tokio::select! {
            sent = connection.queue.recv() => match sent {
                Some(bytes) => answer = Some(message(&bytes)),
                None => break,
            },
            read = socket.next() => {
                let read = match read {
                    Some(read) => read.map_err(broken)?,
                    None => return Ok(()),
                };
                deadline = later(quiet);
                // The library answers pings at its next read.
                let bytes = match &read {
                    Message::Text(text) => text.as_bytes(),
                    Message::Binary(bytes) => bytes.as_ref(),
                    Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => &[],
                    Message::Close(_) => return Ok(()),
                };
                if let Some(message) = datagram(bytes)
                    && connection.up.send(Arrival::Message(flow, message.to_vec())).await.is_err()
                {
                    break;
                }
            },
            () = sleep_until(deadline) => match role {
                Role::Connected => {
                    deadline = later(quiet);
                    answer = Some(Message::Ping(Vec::new().into()));
                }
                Role::Accepted => return Err(ErrorKind::TimedOut.into()),
            },
        }
        if let Some(answer) = answer {
            let written = timeout(connection.limits.connect, socket.send(answer)).await;
            written.map_err(|_| ErrorKind::TimedOut)?.map_err(broken)?;
        }
    }
    // The peer may be gone.
    let _ = timeout(connection.limits.connect, socket.close(None)).await;
    Ok(())
}

/// Makes a text message of UTF-8, since browsers cannot read binary messages at once.
fn message(bytes: &Arc<[u8]>) -> Message {
    match std::str::from_utf8(bytes) {
        Ok(text) => Message::text(text),
        Err(_) => Message::binary(bytes.to_vec()),
    }
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(4 << 10)
        .write_buffer_size(0)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
}

fn broken(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::new(ErrorKind::InvalidData, other),
    }
}
