//! Connections that occupy the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::http::connect;
use crate::{Options, Tally, address};

/// The figures of all connections.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    held: AtomicU64,
    refused: AtomicU64,
}

/// Opens connections, and uses each until the time is over.
async fn hold<U, F>(options: &Options, to: SocketAddr, mut act: U) -> Tally
where
    U: FnMut(usize, TcpStream, Arc<Counts>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let counts = Arc::new(Counts::default());
    let until = Instant::now() + options.time();
    let mut all = JoinSet::new();
    for n in 0..options.connections {
        if Instant::now() > until {
            break;
        }
        match connect(address(n), to).await {
            Ok(stream) => {
                counts.held.fetch_add(1, Relaxed);
                all.spawn(act(n, stream, counts.clone()));
            }
            Err(_) => {
                counts.refused.fetch_add(1, Relaxed);
            }
        }
    }
    tokio::time::sleep_until(until.into()).await;
    all.shutdown().await;
    Tally {
        sent: counts.sent.load(Relaxed),
        held: counts.held.load(Relaxed),
        refused: counts.refused.load(Relaxed),
        ..Tally::default()
    }
}

/// A quarter is silent, a quarter sends its head byte by byte, a quarter too long a body, the last
/// one requests without end.
pub async fn http(options: &Options) -> Tally {
    hold(options, options.http, |n, mut stream, counts| async move {
        let mut read = [0; 4_096];
        match n % 4 {
            0 => drop(stream.read(&mut read).await),
            1 => {
                for byte in b"POST /janus HTTP/1.1\r\nHost: a\r\nX: "
                    .iter()
                    .chain([b'a'; 4_096].iter())
                {
                    if stream.write_all(&[*byte]).await.is_err() {
                        counts.refused.fetch_add(1, Relaxed);
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            2 => {
                let head = b"POST /janus HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n";
                let mut more = stream.write_all(head).await;
                while more.is_ok() {
                    more = stream.write_all(&[b' '; 1_024]).await;
                    counts.sent.fetch_add(1, Relaxed);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                counts.refused.fetch_add(1, Relaxed);
            }
            _ => {
                let request =
                    b"POST /janus HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n{\"janus\": 1}";
                while stream.write_all(request).await.is_ok() {
                    counts.sent.fetch_add(1, Relaxed);
                    if !matches!(stream.read(&mut read).await, Ok(1..)) {
                        counts.refused.fetch_add(1, Relaxed);
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    })
    .await
}

async fn upgrade(stream: TcpStream) -> Option<WebSocketStream<TcpStream>> {
    let mut request = "ws://a/".into_client_request().unwrap();
    let protocol = "janus-protocol".parse().unwrap();
    request
        .headers_mut()
        .insert("Sec-WebSocket-Protocol", protocol);
    let (socket, _) = tokio_tungstenite::client_async(request, stream)
        .await
        .ok()?;
    Some(socket)
}

/// A quarter is silent after its handshake, a quarter during it, a quarter sends pings, the last
/// one messages that are too long.
pub async fn websocket(options: &Options) -> Tally {
    let long = Utf8Bytes::from(" ".repeat(2 << 20));
    hold(options, options.websocket, |n, mut stream, counts| {
        let long = long.clone();
        async move {
            if n % 4 == 1 {
                let _ = stream
                    .write_all(b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n")
                    .await;
                drop(stream.read(&mut [0; 64]).await);
                return;
            }
            let Some(mut socket) = upgrade(stream).await else {
                counts.refused.fetch_add(1, Relaxed);
                return;
            };
            loop {
                let message = match n % 4 {
                    0 => {
                        socket.next().await;
                        return;
                    }
                    2 => Message::Ping(vec![7; 100].into()),
                    _ => Message::Text(long.clone()),
                };
                if socket.send(message).await.is_err() {
                    counts.refused.fetch_add(1, Relaxed);
                    return;
                }
                counts.sent.fetch_add(1, Relaxed);
                // Pongs and errors are read.
                let answer = tokio::time::timeout(Duration::from_secs(1), socket.next()).await;
                if matches!(answer, Ok(None | Some(Err(_)))) {
                    counts.refused.fetch_add(1, Relaxed);
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    })
    .await
}

/// The receive buffer of a client that does not read, in bytes.
const UNREAD: usize = 4 << 10;

/// Half of them send requests by WebSocket, half by HTTP. None reads an answer.
pub async fn slow_readers(options: &Options) -> Tally {
    let options_of = |to| {
        hold(options, to, move |_, stream, counts| {
            ask(stream, to == options.websocket, counts)
        })
    };
    let (one, other) = tokio::join!(options_of(options.websocket), options_of(options.http));
    Tally {
        sent: one.sent + other.sent,
        held: one.held + other.held,
        refused: one.refused + other.refused,
        ..Tally::default()
    }
}

/// Requests the long answer to `info` until the connection ends or takes no more.
async fn ask(mut stream: TcpStream, by_websocket: bool, counts: Arc<Counts>) {
    // Otherwise the system takes megabytes of answers that nobody reads.
    let _ = socket2::SockRef::from(&stream).set_recv_buffer_size(UNREAD);
    if by_websocket {
        let Some(mut socket) = upgrade(stream).await else {
            counts.refused.fetch_add(1, Relaxed);
            return;
        };
        let info = r#"{"janus":"info","transaction":"t"}"#;
        while socket.send(Message::text(info)).await.is_ok() {
            counts.sent.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    } else {
        let info = b"GET /janus/info HTTP/1.1\r\nHost: a\r\n\r\n";
        while stream.write_all(info).await.is_ok() {
            counts.sent.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    counts.refused.fetch_add(1, Relaxed);
}
