//! SOCK_DGRAM: clients are known by the path that they bound.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use portunus_core::{Client, Gateway};
use tokio::net::UnixDatagram;
use tokio::sync::watch;

use crate::listen::stopped;
use crate::start::UNIX;
use crate::{Counters, UnixConfig, reply};

pub(super) async fn serve(
    socket: UnixDatagram,
    config: UnixConfig,
    gateway: Gateway,
    counters: Arc<Counters>,
    mut stop: watch::Receiver<bool>,
) {
    let socket = Arc::new(socket);
    let mut clients: HashMap<PathBuf, Client> = HashMap::new();
    let (gone_in, mut gone) = tokio::sync::mpsc::unbounded_channel::<PathBuf>();
    let mut buffer = vec![0; config.max_message + 1];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            path = gone.recv() => {
                if let Some(client) = path.and_then(|path| clients.remove(&path)) {
                    gateway.client_gone(&client);
                }
                continue;
            }
            () = stopped(&mut stop) => return,
        };
        let Ok((len, from)) = received else { continue };
        // Without a path there is nobody to answer.
        let Some(path) = from.as_pathname().map(PathBuf::from) else {
            continue;
        };
        counters.unix_messages.add(1);
        if len > config.max_message {
            counters.refused.add(1);
            let error = reply::too_large(config.max_message).to_string();
            let _ = socket.send_to(error.as_bytes(), &path).await;
            continue;
        }
        if !clients.contains_key(&path) && clients.len() >= config.max_connections {
            counters.connections_refused.add(1);
            let refusal = reply::too_many_clients().to_string();
            let _ = socket.send_to(refusal.as_bytes(), &path).await;
            continue;
        }
        let client = clients.entry(path.clone()).or_insert_with(|| {
            counters.unix_connections.add(1);
            let (client, mut outbox) = Client::pushed(UNIX);
            let (socket, gone) = (socket.clone(), gone_in.clone());
            tokio::spawn(async move {
                while let Some(message) = outbox.recv().await {
                    if socket
                        .send_to(message.to_string().as_bytes(), &path)
                        .await
                        .is_err()
                    {
                        break;
                    }
                }
                // The server may have stopped.
                let _ = gone.send(path);
            });
            client
        });
        if let Some(message) = buffer.get(..len) {
            gateway.submit(client, message).await;
        }
    }
}
