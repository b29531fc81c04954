//! The WebSocket of a worker of agents.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use livekit_protocol::{ServerMessage, WorkerMessage};
use prost::Message as _;
use tokio::time::timeout;

use crate::agents::{Agents, Connection};
use crate::door::{Door, EntryError};
use crate::frame::{MAX_MESSAGE, READ_BUFFER};
use crate::token::JoinFault;

/// How long a worker may take to read a message.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Lets a worker in whose token has the grant `agent`.
pub(super) async fn agent(
    State(door): State<Arc<Door>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let token = super::token(&headers, &query.unwrap_or_default());
    let key = token.and_then(|token| {
        let verified = door.verify(token.as_deref())?;
        let video = verified.grants.video.as_ref();
        match video.is_some_and(|video| video.agent) {
            true => Ok(verified.key),
            false => Err(EntryError::from(JoinFault::NoGrant)),
        }
    });
    let key = match key {
        Ok(key) => key,
        Err(error) => return error.into_response(),
    };
    let Some(connection) = door.agents.connect(&key) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let agents = door.agents.clone();
    let leaving = Leaving {
        agents: agents.clone(),
        key: connection.key,
    };
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .read_buffer_size(READ_BUFFER)
        .on_upgrade(|socket| run(socket, agents, connection, leaving))
}

/// Forgets a worker when its connection ends, or never begins.
struct Leaving {
    agents: Agents,
    key: crate::agents::WorkerKey,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.agents.disconnect(self.key);
    }
}

/// Serves a worker until either side ends the connection.
async fn run(mut socket: WebSocket, agents: Agents, connection: Connection, _leaving: Leaving) {
    let Connection { key, mut messages } = connection;
    let mut is_text = false;
    loop {
        tokio::select! {
            message = messages.recv() => {
                let Some(message) = message else { break };
                match timeout(WRITE_LIMIT, socket.send(written(&message, is_text))).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return,
                }
            }
            received = socket.next() => {
                let read = match received {
                    Some(Ok(Message::Binary(bytes))) => {
                        is_text = false;
                        WorkerMessage::decode(bytes).ok()
                    }
                    Some(Ok(Message::Text(text))) => {
                        is_text = true;
                        serde_json::from_str(&text).ok()
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                };
                let Some(message) = read else { break };
                agents.message(key, message);
            }
        }
    }
    let frame = CloseFrame {
        code: close_code::NORMAL,
        reason: "".into(),
    };
    // An error does not matter.
    let _ = timeout(WRITE_LIMIT, socket.send(Message::Close(Some(frame)))).await;
}

fn written(message: &ServerMessage, is_text: bool) -> Message {
    match serde_json::to_string(message) {
        Ok(text) if is_text => Message::text(text),
        Ok(_) | Err(_) => Message::Binary(Bytes::from(message.encode_to_vec())),
    }
}
