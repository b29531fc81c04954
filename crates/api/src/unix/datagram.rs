//! SOCK_DGRAM without connections: clients are identified by the paths that they bound, which get
//! the replies.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use portunus_core::{ApiError, Client, LogGate, Outbox, Purse, Requester};
use serde_json::Value;
use tokio::net::UnixDatagram;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Shared, enlarge, instead_of};
use crate::listener::stopped;
use crate::pace::{Pace, Requests};
use crate::packages::UNIX;
use crate::{notifications, reply};

/// How long a client's socket may be full before the client counts as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may be idle in both directions before it is forgotten.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// The most bytes of waiting requests of a client, including their places. More are refused.
const INBOX: usize = 4 << 20;
/// The size of a request's place, in bytes.
const PLACE: usize = 64;

/// The sender's side of a client's task.
#[derive(Debug)]
struct Inbox {
    requests: mpsc::UnboundedSender<Bytes>,
    /// The waiting bytes.
    waiting: Arc<AtomicUsize>,
}

/// The receiver's side of a client's task.
#[derive(Debug)]
struct Waiting {
    requests: mpsc::UnboundedReceiver<Bytes>,
    bytes: Arc<AtomicUsize>,
}

/// The reason why a request does not reach a client's task.
#[derive(Debug)]
enum Undelivered {
    /// Too many bytes wait.
    Full(Bytes),
    /// The task has ended.
    Gone(Bytes),
}

impl Inbox {
    fn new() -> (Inbox, Waiting) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let bytes = Arc::<AtomicUsize>::default();
        let inbox = Inbox {
            requests: sender,
            waiting: bytes.clone(),
        };
        let waiting = Waiting {
            requests: receiver,
            bytes,
        };
        (inbox, waiting)
    }

    fn deliver(&self, request: Bytes) -> Result<(), Undelivered> {
        let size = request.len().saturating_add(PLACE);
        if self.waiting.load(Ordering::Relaxed).saturating_add(size) > INBOX {
            return Err(Undelivered::Full(request));
        }
        self.waiting.fetch_add(size, Ordering::Relaxed);
        self.requests
            .send(request)
            .map_err(|error| Undelivered::Gone(error.0))
    }
}

impl Waiting {
    async fn recv(&mut self) -> Option<Bytes> {
        let request = self.requests.recv().await?;
        self.bytes
            .fetch_sub(request.len().saturating_add(PLACE), Ordering::Relaxed);
        Some(request)
    }
}

/// Serves clients until the server stops.
pub(crate) async fn serve(socket: UnixDatagram, shared: Arc<Shared>) {
    enlarge(&socket);
    let socket = Arc::new(socket);
    let mut stop = shared.stop.clone();
    let mut clients = HashMap::<PathBuf, Inbox>::new();
    let gate = LogGate::default();
    let mut buffer = vec![0; shared.config.max_message + 1];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            () = stopped(&mut stop) => return,
        };
        let (length, sender) = match received {
            Ok(received) => received,
            Err(error) => {
                if let Some(suppressed) = gate.open() {
                    tracing::warn!(%error, suppressed, "cannot receive from the Unix socket");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (Some(path), Some(message)) = (sender.as_pathname(), buffer.get(..length)) else {
            // There is no address to reply to.
            shared.counters.refused.add(1);
            continue;
        };
        shared.counters.unix_messages.add(1);
        if length > shared.config.max_message {
            shared.counters.refused.add(1);
            refuse(&socket, path, &reply::too_large(shared.config.max_message));
            continue;
        }
        let message = Bytes::copy_from_slice(message);
        let delivered = match clients.get(path) {
            Some(inbox) => inbox.deliver(message),
            None => Err(Undelivered::Gone(message)),
        };
        let message = match delivered {
            Ok(()) => continue,
            Err(Undelivered::Full(message)) => {
                shared.counters.refused.add(1);
                let request = serde_json::from_slice(&message).unwrap_or_default();
                refuse(
                    &socket,
                    path,
                    &reply::refused(&request, "Too many requests wait"),
                );
                continue;
            }
            // A new client, or one that has returned.
            Err(Undelivered::Gone(message)) => message,
        };
        clients.retain(|_, inbox| !inbox.requests.is_closed());
        if clients.len() >= shared.config.max_connections {
            shared.counters.connections_refused.add(1);
            refuse(&socket, path, &reply::too_many_clients());
            continue;
        }
        let purse = match shared.purse() {
            Ok(purse) => purse,
            Err(error) => {
                shared.counters.connections_refused.add(1);
                let refusal = ApiError::from(error).reply(None, None);
                refuse(&socket, path, &refusal);
                continue;
            }
        };
        shared.counters.unix_connections.add(1);
        let (inbox, requests) = Inbox::new();
        // The queue is empty, and its task is about to start.
        let _ = inbox.deliver(message);
        clients.insert(path.to_owned(), inbox);
        tokio::spawn(client(
            socket.clone(),
            path.to_owned(),
            shared.clone(),
            requests,
            purse,
        ));
    }
}

/// Sends an error if there is room for it.
fn refuse(socket: &UnixDatagram, path: &Path, reply: &Value) {
    if let Err(error) = socket.try_send_to(reply.to_string().as_bytes(), path) {
        tracing::debug!(%error, path = %path.display(), "cannot refuse a request");
    }
}

/// Serves one client until it is unreachable or idle, since datagrams have no end.
async fn client(
    socket: Arc<UnixDatagram>,
    path: PathBuf,
    shared: Arc<Shared>,
    requests: Waiting,
    purse: Purse,
) {
    let _open = shared.counters.open_unix.hold();
    let (client, outbox) = Client::pushed(UNIX, Requester::unix(), purse);
    let events = shared.administration.gateway().events();
    notifications::unix_connected(events, &client, shared.api, socket.as_raw_fd(), true);
    let pace = Pace::new();
    let outcome = tokio::select! {
        () = read(&shared, &client, &pace, requests) => Ok(()),
        outcome = write(&socket, &path, &shared, &pace, outbox) => outcome,
    };
    shared.administration.gateway().client_gone(&client);
    notifications::disconnected(events, &client);
    if let Err(error) = outcome {
        tracing::debug!(%error, path = %path.display(), "Unix socket client is gone");
    }
}

async fn read(shared: &Shared, client: &Client, pace: &Pace, mut waiting: Waiting) {
    let mut requests = Requests::new(shared.api, &shared.administration, client, pace);
    while let Some(request) = requests.meanwhile(waiting.recv()).await {
        requests.take(&request).await;
    }
}

async fn write(
    socket: &UnixDatagram,
    path: &Path,
    shared: &Shared,
    pace: &Pace,
    mut outbox: Outbox,
) -> io::Result<()> {
    let mut stop = shared.stop.clone();
    loop {
        let posted = tokio::select! {
            posted = timeout(IDLE_TIMEOUT, outbox.recv_posted()) => posted,
            () = stopped(&mut stop) => break,
        };
        let Ok(posted) = posted else { return Ok(()) };
        let Some(posted) = posted else {
            // The gateway has disconnected the client.
            shared.counters.slow_clients.add(1);
            return Err(io::ErrorKind::TimedOut.into());
        };
        let message = &posted.message;
        let sent = send(socket, path, shared, &message.text()).await;
        let instead = sent
            .as_ref()
            .err()
            .and_then(|error| instead_of(&message.clone().into_value(), error));
        match instead {
            Some(instead) => send(socket, path, shared, &instead.to_string()).await?,
            None => sent?,
        }
        pace.wrote();
    }
    // The last events report the ends of calls.
    while let Some(posted) = outbox.try_recv_posted() {
        socket.try_send_to(posted.message.text().as_bytes(), path)?;
    }
    Ok(())
}

async fn send(socket: &UnixDatagram, path: &Path, shared: &Shared, text: &str) -> io::Result<()> {
    match timeout(WRITE_TIMEOUT, socket.send_to(text.as_bytes(), path)).await {
        Ok(sent) => sent.map(drop),
        Err(_) => {
            shared.counters.slow_clients.add(1);
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[tokio::test]
    async fn requests_are_bounded_by_their_bytes_not_by_their_number() {
        let (inbox, mut waiting) = Inbox::new();
        let short = Bytes::from_static(b"{}");
        for _ in 0..10_000 {
            inbox.deliver(short.clone()).unwrap();
        }
        let long = Bytes::from(vec![b' '; INBOX]);
        assert!(matches!(inbox.deliver(long), Err(Undelivered::Full(_))));
        for _ in 0..10_000 {
            assert_eq!(waiting.recv().await.unwrap(), short);
        }
        assert_eq!(waiting.bytes.load(Ordering::Relaxed), 0);
        drop(waiting);
        assert!(matches!(inbox.deliver(short), Err(Undelivered::Gone(_))));
    }
}
