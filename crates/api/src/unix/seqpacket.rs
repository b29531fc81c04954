//! SOCK_SEQPACKET with a connection for each client.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use portunus_core::{ApiError, Client, ClientMessage, Outbox, Purse, Requester};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_seqpacket::{UnixSeqpacket, UnixSeqpacketListener};

use super::{Shared, enlarge, instead_of};
use crate::listener::{PAUSES, stopped};
use crate::pace::{Pace, Requests};
use crate::packages::UNIX;
use crate::{notifications, reply};

/// How long a client may not read before it is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Accepts connections until the server stops.
pub(crate) async fn serve(mut listener: UnixSeqpacketListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(shared.config.max_connections));
    let mut stop = shared.stop.clone();
    let mut pause = PAUSES.0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => return,
        };
        match accepted {
            Ok(socket) => {
                pause = PAUSES.0;
                let place = places.clone().try_acquire_owned();
                let refusal = match (place, shared.purse()) {
                    (Ok(place), Ok(purse)) => {
                        tokio::spawn(connection(socket, shared.clone(), place, purse));
                        continue;
                    }
                    (Err(_), _) => ApiError::NotAcceptingSessions,
                    (_, Err(error)) => error.into(),
                };
                shared.counters.connections_refused.add(1);
                let text = refusal.reply(None, None).to_string();
                // A new socket has room for it. Otherwise the client sees only the end.
                let _ = timeout(Duration::ZERO, socket.send(text.as_bytes())).await;
            }
            Err(error) => {
                shared.counters.accept_failed(&error);
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2).min(PAUSES.1);
            }
        }
    }
}

async fn connection(
    socket: UnixSeqpacket,
    shared: Arc<Shared>,
    _place: OwnedSemaphorePermit,
    purse: Purse,
) {
    shared.counters.unix_connections.add(1);
    let _open = shared.counters.open_unix.hold();
    enlarge(&socket);
    let (client, mut outbox) = Client::pushed(UNIX, Requester::unix(), purse);
    let events = shared.administration.gateway().events();
    notifications::unix_connected(events, &client, shared.api, socket.as_raw_fd(), false);
    let pace = Pace::new();
    let outcome = tokio::select! {
        outcome = read(&socket, &shared, &client, &pace) => outcome,
        outcome = write(&socket, &shared, &mut outbox, &pace) => outcome,
    };
    shared.administration.gateway().client_gone(&client);
    notifications::disconnected(events, &client);
    if let Err(error) = outcome {
        tracing::debug!(%error, "Unix socket connection ended");
    }
}

async fn read(
    socket: &UnixSeqpacket,
    shared: &Shared,
    client: &Client,
    pace: &Pace,
) -> io::Result<()> {
    let max = shared.config.max_message;
    let mut buffer = vec![0; max + 1];
    let mut requests = Requests::new(shared.api, &shared.administration, client, pace);
    loop {
        let length = requests.meanwhile(socket.recv(&mut buffer)).await?;
        let length = length.bytes_read();
        let message = match buffer.get(..length) {
            None | Some([]) => return Ok(()),
            Some(message) => message,
        };
        shared.counters.unix_messages.add(1);
        if length > max {
            shared.counters.refused.add(1);
            let text = reply::too_large(max).to_string();
            send(socket, shared, text.as_bytes()).await?;
            continue;
        }
        requests.take(message).await;
    }
}

async fn write(
    socket: &UnixSeqpacket,
    shared: &Shared,
    outbox: &mut Outbox,
    pace: &Pace,
) -> io::Result<()> {
    let mut stop = shared.stop.clone();
    loop {
        let posted = tokio::select! {
            posted = outbox.recv_posted() => posted,
            () = stopped(&mut stop) => break,
        };
        let Some(posted) = posted else {
            // The gateway has disconnected the client.
            shared.counters.slow_clients.add(1);
            return Err(io::ErrorKind::TimedOut.into());
        };
        say(socket, shared, &posted.message).await?;
        pace.wrote();
    }
    // The last events report the ends of calls.
    while let Some(posted) = outbox.try_recv_posted() {
        say(socket, shared, &posted.message).await?;
    }
    Ok(())
}

/// Sends a reply or an event.
async fn say(socket: &UnixSeqpacket, shared: &Shared, message: &ClientMessage) -> io::Result<()> {
    let sent = send(socket, shared, message.text().as_bytes()).await;
    let instead = sent
        .as_ref()
        .err()
        .and_then(|error| instead_of(&message.clone().into_value(), error));
    match instead {
        Some(instead) => send(socket, shared, instead.to_string().as_bytes()).await,
        None => sent,
    }
}

async fn send(socket: &UnixSeqpacket, shared: &Shared, text: &[u8]) -> io::Result<()> {
    match timeout(WRITE_TIMEOUT, socket.send(text)).await {
        Ok(sent) => sent.map(drop),
        Err(_) => {
            shared.counters.slow_clients.add(1);
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}
