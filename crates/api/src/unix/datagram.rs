//! SOCK_DGRAM: no connections; clients are known by the path that they bound, and replies go there.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portunus_core::{Client, Outbox};
use serde_json::Value;
use tokio::net::UnixDatagram;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Shared;
use crate::listen::stopped;
use crate::pace::Pace;
use crate::reply;
use crate::start::UNIX;

/// How long a client's socket may be full before the client counts as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may be silent, with nothing sent to it either, before it is forgotten.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Requests of one client that wait for the gateway; more are dropped, as datagrams are.
const INBOX: usize = 64;

/// Serves clients until the server stops.
pub(crate) async fn serve(socket: UnixDatagram, shared: Arc<Shared>) {
    let socket = Arc::new(socket);
    let mut stop = shared.stop.clone();
    let mut clients = HashMap::<PathBuf, mpsc::Sender<Bytes>>::new();
    let mut buffer = vec![0; shared.config.max_message + 1];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            () = stopped(&mut stop) => return,
        };
        let (length, sender) = match received {
            Ok(received) => received,
            Err(error) => {
                tracing::warn!(%error, "cannot receive from the Unix socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (Some(path), Some(message)) = (sender.as_pathname(), buffer.get(..length)) else {
            // Nobody to reply to.
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
        let message = match clients
            .get(path)
            .map(|inbox| inbox.try_send(message.clone()))
        {
            Some(Ok(())) => continue,
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                shared.counters.refused.add(1);
                continue;
            }
            // New, or gone and back again.
            Some(Err(mpsc::error::TrySendError::Closed(message))) => message,
            None => message,
        };
        clients.retain(|_, inbox| !inbox.is_closed());
        if clients.len() >= shared.config.max_connections {
            shared.counters.connections_refused.add(1);
            refuse(&socket, path, &reply::too_many_clients());
            continue;
        }
        shared.counters.unix_connections.add(1);
        let (inbox, requests) = mpsc::channel(INBOX);
        // It is empty: there is room.
        let _ = inbox.try_send(message);
        clients.insert(path.to_owned(), inbox);
        tokio::spawn(client(
            socket.clone(),
            path.to_owned(),
            shared.clone(),
            requests,
        ));
    }
}

/// Sends an error if there is room for it.
fn refuse(socket: &UnixDatagram, path: &Path, reply: &Value) {
    if let Err(error) = socket.try_send_to(reply.to_string().as_bytes(), path) {
        tracing::debug!(%error, path = %path.display(), "cannot refuse a request");
    }
}

/// One client, until it is gone: datagrams have no end, so that is when it cannot be sent to or is idle.
async fn client(
    socket: Arc<UnixDatagram>,
    path: PathBuf,
    shared: Arc<Shared>,
    requests: mpsc::Receiver<Bytes>,
) {
    let (client, outbox) = Client::pushed(UNIX);
    let pace = Pace::new();
    let outcome = tokio::select! {
        () = read(&shared, &client, &pace, requests) => Ok(()),
        outcome = write(&socket, &path, &shared, &pace, outbox) => outcome,
    };
    shared.gateway.client_gone(&client);
    if let Err(error) = outcome {
        tracing::debug!(%error, path = %path.display(), "Unix socket client is gone");
    }
}

async fn read(shared: &Shared, client: &Client, pace: &Pace, mut requests: mpsc::Receiver<Bytes>) {
    while let Some(request) = requests.recv().await {
        pace.ask().await;
        shared.gateway.submit(client, &request).await;
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
        let message = tokio::select! {
            message = timeout(IDLE_TIMEOUT, outbox.recv()) => message,
            () = stopped(&mut stop) => break,
        };
        let Ok(message) = message else { return Ok(()) };
        let Some(message) = message else {
            // The gateway has cut it off.
            shared.counters.slow_clients.add(1);
            return Err(io::ErrorKind::TimedOut.into());
        };
        let text = message.to_string();
        match timeout(WRITE_TIMEOUT, socket.send_to(text.as_bytes(), path)).await {
            Ok(sent) => {
                sent?;
                pace.wrote();
            }
            Err(_) => {
                shared.counters.slow_clients.add(1);
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    // The last events say that calls have ended.
    while let Some(message) = outbox.try_recv() {
        socket.try_send_to(message.to_string().as_bytes(), path)?;
    }
    Ok(())
}
