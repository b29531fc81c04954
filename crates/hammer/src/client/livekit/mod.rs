//! LiveKit's protocol over WebSocket: one connection for each participant, with protobuf frames.

mod frame;
mod token;

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use livekit_protocol::{JoinResponse, LeaveRequest, Ping, signal_request, signal_response};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::tls::Stream;
use super::{ClientError, Trust, tls};
use crate::machine::wall_clock;
pub(crate) use token::{ApiKey, Grants};

/// The longest wait for the connection and the first frame.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest wait for the connection's end.
const FAREWELL: Duration = Duration::from_secs(5);
/// The interval of pings, unless the server names one.
const PINGS: Duration = Duration::from_secs(5);
/// The read buffer of a connection, in bytes. There are thousands of them.
const READ_BUFFER: usize = 4 << 10;
/// The protocol version that current SDKs have.
const PROTOCOL: u32 = 17;

/// A participant's connection. The server gets `leave` when this is dropped.
#[derive(Debug)]
pub(crate) struct Signal {
    requests: UnboundedSender<signal_request::Message>,
    task: JoinHandle<()>,
    /// The server has got `leave`, or gets none because the connection broke.
    has_ended: bool,
}

/// The messages of the server, until the connection ends.
pub(crate) type Responses = UnboundedReceiver<signal_response::Message>;

/// A connection with its first message.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) signal: Signal,
    pub(crate) responses: Responses,
    pub(crate) join: Box<JoinResponse>,
}

/// A participant's session, which it can resume.
#[derive(Debug, Clone)]
pub(crate) struct Pass {
    /// The server's URL.
    pub(crate) url: String,
    /// The access token.
    pub(crate) token: String,
    /// The session's id.
    pub(crate) sid: String,
}

impl Signal {
    /// Joins the room of `token` at `url` (`ws://…` or `wss://…`), with two PeerConnections.
    pub(crate) async fn open(url: &str, token: &str, trust: &Trust) -> Result<Opened, ClientError> {
        let mut socket = connect(url, token, "", trust).await?;
        let join = loop {
            if let signal_response::Message::Join(join) = socket.first("join").await? {
                break Box::new(join);
            }
        };
        let pings = match u64::try_from(join.ping_interval) {
            Ok(seconds @ 1..) => Duration::from_secs(seconds),
            Ok(0) | Err(_) => PINGS,
        };
        let (signal, responses) = Self::begin(socket, pings);
        Ok(Opened {
            signal,
            responses,
            join,
        })
    }

    /// Resumes a session whose connection has broken.
    pub(crate) async fn resume(
        pass: &Pass,
        trust: &Trust,
    ) -> Result<(Self, Responses), ClientError> {
        let Pass { url, token, sid } = pass;
        let session = format!("&reconnect=1&sid={sid}");
        let mut socket = connect(url, token, &session, trust).await?;
        match socket.first("resume").await? {
            signal_response::Message::Reconnect(_) => Ok(Self::begin(socket, PINGS)),
            signal_response::Message::Leave(leave) => Err(ClientError::Refused {
                request: "resume".to_owned(),
                code: leave.reason.into(),
                reason: leave.reason().as_str_name().to_owned(),
            }),
            _ => Err(ClientError::Malformed {
                request: "resume".to_owned(),
                missing: "reconnect",
            }),
        }
    }

    fn begin(socket: Socket, pings: Duration) -> (Self, Responses) {
        let (requests, queue) = unbounded_channel();
        let (sender, responses) = unbounded_channel();
        let signal = Self {
            requests,
            task: tokio::spawn(serve(socket.0, queue, sender, pings)),
            has_ended: false,
        };
        (signal, responses)
    }

    /// Ends the connection without a farewell, as a lost network does.
    pub(crate) fn break_off(&mut self) {
        self.has_ended = true;
        self.task.abort();
    }

    /// Sends a request.
    pub(crate) fn send(&self, message: signal_request::Message) {
        // If the connection has ended, the channel of responses shows it.
        let _ = self.requests.send(message);
    }

    /// Leaves, and waits until the connection has ended.
    pub(crate) async fn leave(&mut self) {
        self.send(farewell());
        let _ = timeout(FAREWELL, &mut self.task).await;
        self.has_ended = true;
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        if !self.has_ended {
            self.send(farewell());
        }
    }
}

fn farewell() -> signal_request::Message {
    signal_request::Message::Leave(LeaveRequest::default())
}

/// A connection whose messages nobody has read yet.
struct Socket(WebSocketStream<Box<dyn Stream>>);

impl Socket {
    /// Returns the next response that hammer reads, which answers `request`.
    async fn first(&mut self, request: &str) -> Result<signal_response::Message, ClientError> {
        let missing = |_| ClientError::Malformed {
            request: request.to_owned(),
            missing: "readable frame",
        };
        let reading = timeout(PATIENCE, async {
            while let Some(message) = self.0.next().await {
                let Message::Binary(bytes) = message.map_err(|_| ClientError::Closed)? else {
                    continue;
                };
                if let Some(response) = frame::decode(bytes).map_err(missing)? {
                    return Ok(response);
                }
            }
            Err(ClientError::Closed)
        });
        reading.await.map_err(|_| late(request))?
    }
}

fn late(request: &str) -> ClientError {
    ClientError::Timeout {
        request: request.to_owned(),
        after: PATIENCE,
    }
}

/// Connects. `session` is a further part of the query.
async fn connect(
    url: &str,
    token: &str,
    session: &str,
    trust: &Trust,
) -> Result<Socket, ClientError> {
    let full = format!(
        "{}/rtc?access_token={token}&protocol={PROTOCOL}&sdk=rust&version=0.10.0&auto_subscribe=1{session}",
        url.trim_end_matches('/')
    );
    let request = full.into_client_request();
    let request = request.map_err(|_| ClientError::Url(url.to_owned()))?;
    let connecting = timeout(PATIENCE, async {
        let stream = tls::connect(request.uri(), ["ws", "wss"], trust).await?;
        let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER);
        let connected = client_async_with_config(request, stream, Some(config)).await;
        let (socket, _) = connected.map_err(|error| match error {
            Error::Http(response) => {
                let body = response.body().as_deref().unwrap_or_default();
                ClientError::Refused {
                    request: "join".to_owned(),
                    code: response.status().as_u16().into(),
                    reason: String::from_utf8_lossy(body).trim().to_owned(),
                }
            }
            error => ClientError::Connect {
                url: url.to_owned(),
                reason: error.to_string(),
            },
        })?;
        Ok(Socket(socket))
    });
    connecting.await.map_err(|_| late("join"))?
}

/// Serves a connection until either side leaves.
async fn serve(
    mut socket: WebSocketStream<Box<dyn Stream>>,
    mut queue: UnboundedReceiver<signal_request::Message>,
    responses: UnboundedSender<signal_response::Message>,
    pings: Duration,
) {
    let mut pings = interval(pings);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick comes at once.
    pings.tick().await;
    loop {
        let request = tokio::select! {
            request = queue.recv() => request,
            message = socket.next() => match message {
                Some(Ok(Message::Binary(bytes))) => {
                    // A message that cannot be read counts as absent.
                    if let Ok(Some(response)) = frame::decode(bytes) {
                        let _ = responses.send(response);
                    }
                    continue;
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return,
            },
            _ = pings.tick() => {
                let timestamp = i64::try_from(wall_clock().as_millis()).unwrap_or_default();
                let ping = Ping { timestamp, rtt: 0 };
                Some(signal_request::Message::PingReq(ping))
            }
        };
        let Some(request) = request else { break };
        let leaves = matches!(request, signal_request::Message::Leave(_));
        let frame = Message::Binary(frame::encode(request));
        if socket.send(frame).await.is_err() {
            return;
        }
        if leaves {
            break;
        }
    }
    let _ = socket.close(None).await;
}
