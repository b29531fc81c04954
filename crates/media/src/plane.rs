//! The media plane as the control plane sees it: commands in, events out.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_sdp::negotiated::{Fingerprint, IceCredentials, Negotiated};
use tokio::sync::{mpsc, oneshot, watch};

use crate::capture::Captures;
use crate::command::{Command, RouteOptions, SourceRef, TrackRef};
use crate::inbox::Inbox;
use crate::offered::{Offered, PublicAddress};
use crate::totals::WorkerTotals;
use crate::turn::{TurnServer, TurnState, TurnStatus};
use crate::user_fragment::with_worker;
use crate::waiting::Waiting;
use crate::worker::SharedLoad;
use crate::{
    DataMessage, LineStats, MediaConfig, MediaError, MediaIdentity, MediaSettings, MediaTotals,
    PeerEvent, PeerStats, TalkDetection, WorkerStats,
};

/// Bytes of messages of data channels that wait for a worker.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A peer: which worker it lives on, and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId {
    pub(crate) worker: u16,
    pub(crate) serial: u64,
}

impl PeerId {
    /// The number of the worker that it lives on, as in [`WorkerStats`].
    pub const fn worker(self) -> usize {
        self.worker as usize
    }
}

/// A route from a source to a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId {
    /// The sink's worker.
    pub(crate) worker: u16,
    pub(crate) serial: u64,
}

/// How a peer starts.
#[derive(Debug, Clone)]
pub struct PeerOptions {
    /// Our ICE credentials. The peer is told [`MediaPlane::local_ice`] of them.
    pub ice: IceCredentials,
    /// Whether our ICE agent is the controlling one (the side that offers).
    pub controlling: bool,
    /// The worker to live on; none: the one that has the fewest peers.
    pub worker: Option<usize>,
}

/// The control plane's handle on the workers; cheap to clone.
#[derive(Debug, Clone)]
pub struct MediaPlane {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    workers: Vec<WorkerPort>,
    /// Of the certificate that new peers present. Locked while a peer is made, so that it has the certificate of its fingerprint.
    fingerprint: Mutex<Fingerprint>,
    address: IpAddr,
    /// All workers share a port.
    one_port: bool,
    next_id: AtomicU64,
    running: watch::Receiver<()>,
    lost: watch::Receiver<bool>,
    last_stats: Arc<AtomicBool>,
    /// Held for moments: all workers are told of the changes in one order.
    settings: Mutex<MediaSettings>,
    captures: Captures,
    #[cfg(feature = "testing")]
    notes: crate::testing::Notes,
}

/// The way to one worker.
#[derive(Debug)]
pub(crate) struct WorkerPort {
    pub(crate) inbox: Arc<Inbox>,
    /// How peers reach the worker.
    pub(crate) candidates: Arc<Offered>,
    /// Its allocation at a TURN server.
    pub(crate) turn: Arc<TurnStatus>,
    pub(crate) peers: Arc<AtomicUsize>,
    pub(crate) totals: Arc<WorkerTotals>,
    pub(crate) load: Arc<SharedLoad>,
    pub(crate) ingests: Arc<AtomicUsize>,
    /// Messages of data channels that it has not taken.
    pub(crate) messages: Waiting,
    /// Where its socket is bound.
    pub(crate) local: SocketAddr,
    /// Where it listens for connections, if it does.
    pub(crate) listening: Option<SocketAddr>,
}

impl MediaPlane {
    /// Opens the sockets and starts the workers; events of all peers come out of the receiver.
    pub fn start(config: MediaConfig) -> Result<(Self, mpsc::Receiver<PeerEvent>), MediaError> {
        let settings = MediaSettings::new(&config);
        let started = crate::start::start(config)?;
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

    /// A media plane without workers, for tests: commands are only noted, and events are what is sent to the sender.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn detached() -> (Self, mpsc::Sender<PeerEvent>, mpsc::Receiver<PeerEvent>) {
        let detached = crate::testing::Detached::new();
        let shared = Shared {
            workers: Vec::new(),
            fingerprint: Mutex::new(detached.fingerprint),
            address: detached.address,
            one_port: false,
            next_id: AtomicU64::new(1),
            running: watch::channel(()).1,
            lost: watch::channel(false).1,
            last_stats: Arc::default(),
            settings: Mutex::new(MediaSettings::new(&MediaConfig::default())),
            captures: Captures::default(),
            notes: Default::default(),
        };
        let plane = Self {
            shared: Arc::new(shared),
        };
        (plane, detached.sender, detached.events)
    }

    /// What was asked for so far.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn requested(&self) -> crate::testing::Requested {
        let notes = self.shared.notes.lock();
        notes
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Makes these the figures of `peer`.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn pretend_stats(&self, peer: PeerId, stats: PeerStats) {
        let notes = self.shared.notes.lock();
        let mut notes = notes.unwrap_or_else(std::sync::PoisonError::into_inner);
        notes.stats.insert(peer, stats);
    }

    /// Lets whoever asks for the figures of `peer` wait for ever.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn withhold_stats(&self, peer: PeerId) {
        let notes = self.shared.notes.lock();
        let mut notes = notes.unwrap_or_else(std::sync::PoisonError::into_inner);
        notes.silent.insert(peer);
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.shared.workers.len()
    }

    /// Where the workers' sockets are bound.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        self.shared.workers.iter().map(|worker| worker.local)
    }

    /// The UDP addresses of all workers, as peers are told and as they are bound, the most preferred of each worker first. Those
    /// that workers share are there once.
    pub fn addresses(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        let most = match self.shared.one_port {
            true => 1,
            false => self.workers(),
        };
        let workers = self.shared.workers.iter().take(most);
        workers.flat_map(|worker| worker.candidates.udp_addresses())
    }

    /// Tells new peers of public addresses of a NAT, too, in place of those that were found before. An address that is announced
    /// by the configuration is not replaced.
    pub fn set_public(&self, found: &[PublicAddress]) {
        for worker in &self.shared.workers {
            worker.candidates.set_public(found);
            worker.inbox.send(Command::Candidates);
        }
    }

    /// Has a worker allocate an address at a TURN server, in the place of one that it has, or give that back. New peers of the
    /// worker are told of it. What comes of it is told by [`MediaPlane::turn_state`].
    pub fn set_turn_server(&self, worker: usize, server: Option<TurnServer>) {
        if let Some(worker) = self.shared.workers.get(worker) {
            worker.inbox.send(Command::Turn(server.map(Box::new)));
        }
    }

    /// Has [`MediaPlane::turn_states`] say why a worker has no allocation, until it is given a server again.
    pub fn set_turn_unavailable(&self, worker: usize, why: String) {
        if let Some(worker) = self.shared.workers.get(worker) {
            worker.turn.set(TurnState::Unavailable(why));
        }
    }

    /// Counts a datagram of a worker that a stream to its TURN server did not take.
    pub fn turn_datagram_dropped(&self, worker: usize) {
        if let Some(worker) = self.shared.workers.get(worker) {
            worker.turn.dropped_by_stream();
        }
    }

    /// How far each worker is with its allocation at a TURN server, in the order of the workers.
    pub fn turn_states(&self) -> Vec<TurnState> {
        let workers = self.shared.workers.iter();
        workers.map(|worker| worker.turn.state()).collect()
    }

    /// The same of one worker, with each change to come. Returns `None` if there is no such worker.
    pub fn watch_turn(&self, worker: usize) -> Option<watch::Receiver<TurnState>> {
        let worker = self.shared.workers.get(worker)?;
        Some(worker.turn.watch())
    }

    /// The public addresses that were found last.
    pub fn public_ips(&self) -> Vec<IpAddr> {
        let first = self.shared.workers.first();
        first
            .map(|worker| worker.candidates.public_ips())
            .unwrap_or_default()
    }

    /// Where workers listen for connections of peers, in the order of the workers; nowhere without ICE-TCP. Workers that share a
    /// port have one listener.
    pub fn listeners(&self) -> impl Iterator<Item = SocketAddr> {
        let workers = self.shared.workers.iter();
        workers.filter_map(|worker| worker.listening)
    }

    /// What all workers did since the start.
    pub fn totals(&self) -> MediaTotals {
        let mut sum = MediaTotals::default();
        for worker in &self.shared.workers {
            sum.peers += worker.peers.load(Ordering::Relaxed) as u64;
            worker.totals.add_to(&mut sum);
            worker.turn.add_to(&mut sum.relayed);
        }
        sum
    }

    /// What each worker did in the last seconds.
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        let stats = |(index, worker): (usize, &WorkerPort)| {
            let peers = worker.peers.load(Ordering::Relaxed);
            worker.load.stats(index, peers)
        };
        self.shared.workers.iter().enumerate().map(stats).collect()
    }

    /// What administrators may change, as it is.
    pub fn settings(&self) -> MediaSettings {
        let settings = self.shared.settings.lock();
        *settings.unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long what is sent can be sent again, at least: up to a second, which is the default. All workers and sources follow.
    pub fn set_nack_queue(&self, queue: Duration) {
        self.configure(|it| it.nack_queue = queue.min(MediaSettings::NACK_QUEUE));
    }

    /// Whether what came before the last keyframe is not sent again.
    pub fn set_nack_optimizations(&self, on: bool) {
        self.configure(|it| it.nack_optimizations = on);
    }

    /// How long a medium may be silent before that is told; zero: clients are not to be told, and plugins are after a second.
    pub fn set_no_media(&self, silence: Duration) {
        let silence = Some(silence).filter(|silence| !silence.is_zero());
        self.configure(|it| it.no_media = silence);
    }

    /// Packets lost within a second that are told as a slow link; 0: never.
    pub fn set_slow_link_threshold(&self, packets: u32) {
        self.configure(|it| it.slow_link_threshold = packets);
    }

    fn configure(&self, change: impl FnOnce(&mut MediaSettings)) {
        let settings = self.shared.settings.lock();
        let mut settings = settings.unwrap_or_else(PoisonError::into_inner);
        change(&mut settings);
        for port in &self.shared.workers {
            port.inbox.send(Command::Configure(*settings));
        }
    }

    /// The fingerprint of the certificate that new peers present.
    pub fn fingerprint(&self) -> Fingerprint {
        self.locked_fingerprint().clone()
    }

    fn locked_fingerprint(&self) -> MutexGuard<'_, Fingerprint> {
        let fingerprint = self.shared.fingerprint.lock();
        fingerprint.unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets new peers present another certificate. Those that there are keep theirs. Returns whether it is another one.
    pub fn set_identity(&self, identity: MediaIdentity) -> bool {
        let mut fingerprint = self.locked_fingerprint();
        let is_new = *fingerprint != *identity.0.fingerprint();
        if is_new {
            *fingerprint = identity.0.fingerprint().clone();
            for port in &self.shared.workers {
                port.inbox.send(Command::SetIdentity(identity.clone()));
            }
        }
        is_new
    }

    /// The address that stands in `o=` and `c=` lines.
    pub fn address(&self) -> IpAddr {
        self.shared.address
    }

    /// Makes a peer; it waits for [`MediaPlane::negotiate`].
    pub fn create_peer(&self, options: PeerOptions) -> PeerId {
        self.create_peer_with_fingerprint(options).0
    }

    /// As [`MediaPlane::create_peer`], with the fingerprint of the certificate that the peer presents.
    pub fn create_peer_with_fingerprint(&self, options: PeerOptions) -> (PeerId, Fingerprint) {
        let workers = &self.shared.workers;
        let fewest = || {
            let load = |n: &usize| workers.get(*n).map(|w| w.peers.load(Ordering::Relaxed));
            (0..workers.len()).min_by_key(load).unwrap_or(0)
        };
        let worker = options
            .worker
            .filter(|n| *n < workers.len())
            .unwrap_or_else(fewest);
        let peer = PeerId {
            worker: worker as u16,
            serial: self.next_id(),
        };
        if let Some(port) = workers.get(worker) {
            port.peers.fetch_add(1, Ordering::Relaxed);
        }
        let PeerOptions {
            ice, controlling, ..
        } = options;
        let ice = self.local_ice(peer, ice);
        let fingerprint = self.locked_fingerprint();
        self.send(
            peer,
            Command::CreatePeer {
                peer,
                ice,
                controlling,
            },
        );
        (peer, fingerprint.clone())
    }

    /// The candidates of a peer as SDP has them after `a=`: `candidate:1 1 udp …`.
    pub fn candidates(&self, peer: PeerId) -> Arc<[String]> {
        let port = self.shared.workers.get(usize::from(peer.worker));
        port.map(|port| port.candidates.lines()).unwrap_or_default()
    }

    /// Applies the outcome of an offer/answer exchange, the first as any later one.
    pub fn negotiate(&self, peer: PeerId, negotiated: Negotiated) {
        self.send(
            peer,
            Command::Negotiate {
                peer,
                negotiated: Box::new(negotiated),
            },
        );
    }

    /// Makes credentials of ours those of a peer: where workers share a port, the user fragment ends with the number of its worker.
    pub fn local_ice(&self, peer: PeerId, ice: IceCredentials) -> IceCredentials {
        match self.shared.one_port {
            true => IceCredentials {
                ufrag: with_worker(&ice.ufrag, peer.worker),
                pwd: ice.pwd,
            },
            false => ice,
        }
    }

    /// Starts an ICE restart with new credentials, as [`MediaPlane::local_ice`] makes them; DTLS and SRTP stay.
    pub fn restart_ice(&self, peer: PeerId, ice: IceCredentials) {
        self.send(peer, Command::RestartIce { peer, ice });
    }

    /// Adds a trickled candidate: the text of the `candidate` member of the client's message.
    pub fn add_candidate(&self, peer: PeerId, candidate: String) {
        self.send(peer, Command::AddCandidate { peer, candidate });
    }

    /// Closes a peer; [`crate::Event::Closed`] follows.
    pub fn close_peer(&self, peer: PeerId) {
        self.send(peer, Command::ClosePeer { peer });
    }

    /// Relays what comes from `from` to the m-line `to` of a peer. The m-line of either end may come
    /// into being later; the route ends with [`MediaPlane::remove_route`], or with its source or sink.
    pub fn route(
        &self,
        from: impl Into<SourceRef>,
        to: TrackRef,
        options: RouteOptions,
    ) -> RouteId {
        let from = from.into();
        let route = RouteId {
            worker: to.peer.worker,
            serial: self.next_id(),
        };
        self.send(
            to.peer,
            Command::AddRoute {
                route,
                from,
                to,
                options,
            },
        );
        route
    }

    /// Changes how a route selects and relays.
    pub fn set_route(&self, route: RouteId, options: RouteOptions) {
        self.send_to(route.worker, Command::SetRoute { route, options });
    }

    /// Ends a route.
    pub fn remove_route(&self, route: RouteId) {
        self.send_to(route.worker, Command::RemoveRoute { route });
    }

    /// Caps what the peer sends, by REMB, in bit/s; none: no cap.
    pub fn set_bitrate(&self, peer: PeerId, bitrate: Option<u64>) {
        self.send(peer, Command::SetBitrate { peer, bitrate });
    }

    /// What the peer sends is encrypted end to end: payloads do not say whether they are keyframes. What codecs say outside
    /// of that is still believed.
    pub fn set_opaque(&self, peer: PeerId) {
        self.send(peer, Command::SetOpaque { peer });
    }

    /// Asks the peer for a keyframe on all its video.
    pub fn request_keyframe(&self, peer: PeerId) {
        self.send(peer, Command::RequestKeyframe { peer });
    }

    /// Tells by [`crate::Event::Talking`] when the peer begins and ceases to talk on an m-line of its, as far as its
    /// packets say how loud they are; none: no more.
    pub fn detect_talking(&self, track: TrackRef, detection: Option<TalkDetection>) {
        self.send(track.peer, Command::DetectTalking { track, detection });
    }

    /// Tells by [`crate::Event::Speech`] how much is spoken on an m-line of the peer's, as far as its packets say how
    /// loud they are; false: no more.
    pub fn measure_speech(&self, track: TrackRef, wanted: bool) {
        self.send(track.peer, Command::MeasureSpeech { track, wanted });
    }

    /// Sends a message on the data channel with its label, which is opened if there is none. It is lost, and counted, if the
    /// peer's worker has too many before it.
    pub fn send_data(&self, peer: PeerId, message: DataMessage) {
        let size = message.size().saturating_add(size_of::<Command>());
        let port = self.shared.workers.get(usize::from(peer.worker));
        let held = match port {
            Some(port) => port.messages.hold(size, MAX_MESSAGE_BYTES),
            None => Waiting::default().hold(size, MAX_MESSAGE_BYTES),
        };
        match (held, port) {
            (Some(held), _) => self.send(
                peer,
                Command::SendData {
                    peer,
                    message,
                    held,
                },
            ),
            (None, Some(port)) => port.totals.message_refused(),
            (None, None) => {}
        }
    }

    /// The peer's figures; none if it is gone. They are asked for at once, before what is asked of the peer after this.
    pub fn stats(
        &self,
        peer: PeerId,
    ) -> impl Future<Output = Option<PeerStats>> + Send + 'static + use<> {
        let (reply, stats) = oneshot::channel();
        self.send(peer, Command::Stats { peer, reply });
        let text = |line: &String| line.trim_start_matches("candidate:").to_owned();
        let local = self.candidates(peer).iter().map(text).collect();
        async move {
            let mut stats = stats.await.ok()?;
            stats.ice.local = local;
            Some(stats)
        }
    }

    /// What m-lines of many peers carry; those that are gone are left out. It costs less than [`MediaPlane::stats`] of each.
    pub fn line_stats(
        &self,
        peers: impl IntoIterator<Item = PeerId>,
    ) -> impl Future<Output = HashMap<PeerId, LineStats>> + Send + 'static {
        let mut by_worker = BTreeMap::<u16, Vec<PeerId>>::new();
        for peer in peers {
            by_worker.entry(peer.worker).or_default().push(peer);
        }
        let ask = |(worker, peers)| {
            let (reply, stats) = oneshot::channel();
            self.send_to(worker, Command::LineStats { peers, reply });
            stats
        };
        let asked: Vec<_> = by_worker.into_iter().map(ask).collect();
        async move {
            let mut all = HashMap::new();
            for stats in asked {
                // A worker that has ended has no peers.
                all.extend(stats.await.unwrap_or_default());
            }
            all
        }
    }

    /// Whether the end of a peer that nobody has asked for is to be told with its last figures ([`PeerEvent::last`]).
    pub fn want_last_stats(&self, wanted: bool) {
        self.shared.last_stats.store(wanted, Ordering::Relaxed);
    }

    /// Ends all workers; peers are told by DTLS close_notify.
    pub fn shutdown(&self) {
        for port in &self.shared.workers {
            port.inbox.send(Command::Shutdown);
        }
    }

    /// Waits until all workers have ended.
    pub async fn ended(&self) {
        let mut running = self.shared.running.clone();
        // Nothing is ever sent: an error says that the last worker has ended.
        while running.changed().await.is_ok() {}
    }

    /// Waits until a worker ends that was not told to, by a fault of the system or of ours: its peers are lost, and
    /// nothing takes what is asked of it. Whoever runs the server had better begin anew.
    pub async fn worker_lost(&self) {
        let mut lost = self.shared.lost.clone();
        if lost.wait_for(|lost| *lost).await.is_err() {
            // All have ended as they were told to.
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn ports(&self) -> &[WorkerPort] {
        &self.shared.workers
    }

    pub(crate) fn captures(&self) -> &Captures {
        &self.shared.captures
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.shared.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn send(&self, peer: PeerId, command: Command) {
        self.send_to(peer.worker, command);
    }

    pub(crate) fn send_to(&self, worker: u16, command: Command) {
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
