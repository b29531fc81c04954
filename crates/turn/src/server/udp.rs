//! Clients of UDP.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use super::{relay, stopped};
use crate::framing::MAX_FRAME;
use crate::{Action, Client, Now, Shared};

/// The interval of checks for expired allocations.
const SWEEP: Duration = Duration::from_secs(1);
/// The pause after an error of a socket.
const PAUSE: Duration = Duration::from_millis(50);
/// The bytes of the head of ChannelData.
const HEAD: usize = 4;

/// A client with an allocation.
#[derive(Debug)]
struct Allocated {
    client: Mutex<Client>,
    relay: UdpSocket,
}

impl Allocated {
    fn client(&self) -> MutexGuard<'_, Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client with an allocation, and the task that reads its relay socket. Both end when it is
/// dropped.
#[derive(Debug)]
struct Entry {
    allocated: Arc<Allocated>,
    pump: AbortHandle,
    shared: Arc<Shared>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.pump.abort();
        self.allocated.client().end(&self.shared);
    }
}

/// A socket, and the clients that have an allocation by it, limited by the most allocations.
struct Listener {
    socket: Arc<UdpSocket>,
    shared: Arc<Shared>,
    entries: HashMap<SocketAddr, Entry>,
}

/// Serves a socket until the server stops.
pub(super) async fn serve(socket: UdpSocket, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut listener = Listener {
        socket: Arc::new(socket),
        shared,
        entries: HashMap::new(),
    };
    let socket = listener.socket.clone();
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // One more byte than any message has, so that a longer one is recognized by its length.
    let mut buffer = vec![0; MAX_FRAME + 1];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            _ = sweep.tick() => {
                let now = Now::read();
                let entries = &mut listener.entries;
                entries.retain(|_, entry| entry.allocated.client().is_allocated(now));
                continue;
            }
            () = stopped(&mut stop) => return,
        };
        match received {
            Ok((len, from)) => {
                let datagram = buffer.get(..len).unwrap_or_default();
                listener.receive(from, datagram, Now::read());
            }
            Err(error) => {
                tracing::debug!(%error, "cannot read a socket of TURN");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl Listener {
    fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Now) {
        let Some(entry) = self.entries.get(&from) else {
            return self.receive_first(from, datagram, now);
        };
        let mut client = entry.allocated.client();
        match client.receive(&self.shared, datagram, now) {
            Action::Nothing => {}
            Action::Relay { to, data } => {
                relay::send(&entry.allocated.relay, to, data, &self.shared.counters);
            }
            Action::Reply(response) => self.send(from, &response),
            Action::Released(response) => {
                self.send(from, &response);
                drop(client);
                self.entries.remove(&from);
            }
            // Its allocation has just expired.
            Action::Open(_) => {
                drop(client);
                self.entries.remove(&from);
                self.receive_first(from, datagram, now);
            }
        }
    }

    /// Takes a datagram of a client without an allocation. No state is kept unless it gets one.
    fn receive_first(&mut self, from: SocketAddr, datagram: &[u8], now: Now) {
        let mut client = Client::new(from);
        match client.receive(&self.shared, datagram, now) {
            Action::Reply(response) => self.send(from, &response),
            Action::Open(pending) => {
                let opened = relay::open(pending.bind);
                let address = opened.as_ref().map(|(_, address)| *address);
                let response = client.opened(&self.shared, pending, address, now);
                self.send(from, &response);
                if let Some((relay, _)) = opened {
                    self.keep(from, client, relay);
                }
            }
            Action::Nothing | Action::Relay { .. } | Action::Released(_) => {}
        }
    }

    fn keep(&mut self, from: SocketAddr, client: Client, relay: UdpSocket) {
        let client = Mutex::new(client);
        let allocated = Arc::new(Allocated { client, relay });
        let pump = pump(
            allocated.clone(),
            self.socket.clone(),
            from,
            self.shared.clone(),
        );
        let entry = Entry {
            allocated,
            pump: tokio::spawn(pump).abort_handle(),
            shared: self.shared.clone(),
        };
        self.entries.insert(from, entry);
    }

    fn send(&self, to: SocketAddr, response: &[u8]) {
        if let Err(error) = self.socket.try_send_to(response, to) {
            relay::dropped(&error, &self.shared.counters);
        }
    }
}

/// Sends a client the data of its relay socket.
async fn pump(
    allocated: Arc<Allocated>,
    socket: Arc<UdpSocket>,
    client: SocketAddr,
    shared: Arc<Shared>,
) {
    let mut buffer = vec![0; HEAD + MAX_FRAME];
    let mut head = Vec::with_capacity(HEAD);
    loop {
        let Some(room) = buffer.get_mut(HEAD..) else {
            return;
        };
        let (len, from) = match allocated.relay.recv_from(room).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!(%error, "cannot read a relay socket of TURN");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let data = buffer.get(HEAD..HEAD + len).unwrap_or_default();
        head.clear();
        let envelope = allocated
            .client()
            .envelop(&shared, from, data, Now::read(), &mut head);
        let sent = match envelope {
            None => continue,
            Some(false) => socket.try_send_to(&head, client),
            Some(true) => {
                if let Some(place) = buffer.get_mut(..HEAD) {
                    place.copy_from_slice(&head);
                }
                let whole = buffer.get(..HEAD + len).unwrap_or_default();
                socket.try_send_to(whole, client)
            }
        };
        match sent {
            Ok(_) => shared.counters.relayed_to_client(len),
            Err(error) => relay::dropped(&error, &shared.counters),
        }
    }
}
