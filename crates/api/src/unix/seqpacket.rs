//! SOCK_SEQPACKET: a connection for each client.

use std::path::Path;
use std::sync::Arc;

use portunus_core::{Client, Gateway};
use tokio::sync::{Semaphore, watch};
use tokio_seqpacket::{UnixSeqpacket, UnixSeqpacketListener};

use crate::listen::stopped;
use crate::start::UNIX;
use crate::{Counters, UnixConfig, reply};

/// Whether a server listens there.
pub(super) fn answers(path: &Path) -> bool {
    use std::os::unix::net::UnixStream;
    // A stream socket cannot connect to a listener of another type, but the error tells whether
    // there is one: EPROTOTYPE rather than ECONNREFUSED.
    const EPROTOTYPE: i32 = 91;
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => error.raw_os_error() == Some(EPROTOTYPE),
    }
}

pub(super) async fn serve(
    mut listener: UnixSeqpacketListener,
    config: UnixConfig,
    gateway: Gateway,
    counters: Arc<Counters>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(config.max_connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => return,
        };
        let Ok(socket) =
            accepted.inspect_err(|error| tracing::warn!(%error, "cannot accept a Unix client"))
        else {
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            counters.connections_refused.add(1);
            let refusal = reply::too_many_clients().to_string();
            // It is told if it can take it at once.
            let _ = socket.send(refusal.as_bytes()).await;
            continue;
        };
        counters.unix_connections.add(1);
        let (gateway, counters, stop) = (gateway.clone(), counters.clone(), stop.clone());
        let max = config.max_message;
        tokio::spawn(async move {
            connection(&socket, max, &gateway, &counters, stop).await;
            drop(place);
        });
    }
}

async fn connection(
    socket: &UnixSeqpacket,
    max: usize,
    gateway: &Gateway,
    counters: &Counters,
    mut stop: watch::Receiver<bool>,
) {
    let (client, mut outbox) = Client::pushed(UNIX);
    // One byte more than allowed tells a packet that is too large.
    let mut buffer = vec![0; max + 1];
    loop {
        tokio::select! {
            received = socket.recv(&mut buffer) => {
                let len = match received {
                    Ok(received) if received.bytes_read() > 0 => received.bytes_read(),
                    Ok(_) | Err(_) => break,
                };
                counters.unix_messages.add(1);
                match buffer.get(..len) {
                    Some(message) if len <= max => gateway.submit(&client, message).await,
                    _ => {
                        counters.refused.add(1);
                        let error = reply::too_large(max).to_string();
                        if socket.send(error.as_bytes()).await.is_err() { break }
                    }
                }
            }
            message = outbox.recv() => {
                let Some(message) = message else {
                    counters.slow_clients.add(1);
                    break;
                };
                if socket.send(message.to_string().as_bytes()).await.is_err() { break }
            }
            () = stopped(&mut stop) => break,
        }
    }
    gateway.client_gone(&client);
}
