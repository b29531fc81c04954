//! The media plane as the control plane sees it: takes commands, publishes events.

mod captures;
#[cfg(feature = "testing")]
mod detached;
mod ingests;
mod legs;
mod network;
mod node_links;
mod outlets;
mod peers;
mod routes;
mod settings;
mod start;
mod stats;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use portunus_graph::PeerId;
use portunus_sdp::negotiated::Fingerprint;
use tokio::sync::{mpsc, watch};

use crate::backlog::Backlog;
use crate::candidates::Candidates;
use crate::capture::Captures;
use crate::command::{Command, PeerCommand};
use crate::inbox::Inbox;
use crate::totals::WorkerTotals;
use crate::turn::TurnStatus;
use crate::worker::SharedLoad;
use crate::{MediaConfig, MediaError, MediaSettings, PeerEvent};

pub use peers::PeerOptions;

/// The control plane's handle on the workers; cheap to clone.
#[derive(Debug, Clone)]
pub struct MediaPlane {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    workers: Vec<WorkerPort>,
    /// The fingerprint of the certificate of new peers. Locked while a peer is created, so that
    /// both match.
    fingerprint: Mutex<Fingerprint>,
    address: IpAddr,
    one_port: bool,
    next_id: AtomicU64,
    running: watch::Receiver<()>,
    lost: watch::Receiver<bool>,
    last_stats: Arc<AtomicBool>,
    /// Locked for moments, so that all workers get changes in one order.
    settings: Mutex<MediaSettings>,
    captures: Captures,
    #[cfg(feature = "testing")]
    notes: crate::testing::Notes,
}

/// The control plane's access to one worker.
#[derive(Debug)]
struct WorkerPort {
    inbox: Arc<Inbox>,
    /// The candidates of its peers.
    candidates: Arc<Candidates>,
    /// Its allocation at a TURN server.
    turn: Arc<TurnStatus>,
    peers: Arc<AtomicUsize>,
    totals: Arc<WorkerTotals>,
    load: Arc<SharedLoad>,
    ingests: Arc<AtomicUsize>,
    /// Messages of data channels that wait for it.
    messages: Backlog,
    /// The address of its UDP socket.
    local: SocketAddr,
    /// The address where it accepts TCP connections, if it does.
    listening: Option<SocketAddr>,
}

impl MediaPlane {
    /// Opens the sockets and starts the workers. The receiver gets the events of all peers.
    pub fn start(config: MediaConfig) -> Result<(Self, mpsc::Receiver<PeerEvent>), MediaError> {
        let settings = MediaSettings::new(&config);
        let started = start::start(config)?;
        let shared = Shared {
            workers: started.workers,
            fingerprint: Mutex::new(started.fingerprint),
            address: started.address,
            one_port: started.one_port,
            next_id: AtomicU64::new(1),
            running: started.running,
            lost: started.lost,
            last_stats: started.last_stats,
            settings: Mutex::new(settings),
            captures: Captures::default(),
            #[cfg(feature = "testing")]
            notes: Default::default(),
        };
        Ok((
            Self {
                shared: Arc::new(shared),
            },
            started.events,
        ))
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.shared.workers.len()
    }

    /// Ends all workers. Peers get a DTLS close_notify.
    pub fn shutdown(&self) {
        for port in &self.shared.workers {
            port.inbox.send(Command::Shutdown);
        }
    }

    /// Waits until all workers have ended.
    pub async fn ended(&self) {
        let mut running = self.shared.running.clone();
        // Nothing is ever sent: an error means that the last worker has ended.
        while running.changed().await.is_ok() {}
    }

    /// Waits until a worker ends by a fault. Its peers are lost, and commands to it have no effect:
    /// the server should be restarted.
    pub async fn worker_lost(&self) {
        let mut lost = self.shared.lost.clone();
        if lost.wait_for(|lost| *lost).await.is_err() {
            // All have ended as intended.
            std::future::pending::<()>().await;
        }
    }

    fn next_id(&self) -> u64 {
        self.shared.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn send(&self, peer: PeerId, command: PeerCommand) {
        self.send_to(peer.worker, Command::Peer(peer, command));
    }

    fn send_to(&self, worker: u16, command: Command) {
        #[cfg(feature = "testing")]
        if self.shared.workers.is_empty() {
            crate::testing::note(&self.shared.notes, command);
            return;
        }
        if let Some(port) = self.shared.workers.get(usize::from(worker)) {
            port.inbox.send(command);
        }
    }
}
