//! The task that drives a node.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use portunus_brokers::nats;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::bus::{self, Complaint, Plan};
use super::credentials::{Credentials, Renewal};
use super::error::StartError;
use super::event_log;
use super::expiry::Expiry;
use super::link::{LinkNews, Links, Wire};
use super::listeners::listen;
use super::revocations::{self, Keeper};
use crate::authority::Folder;
use crate::bus::{BusEvent, BusRequest, Outcome};
use crate::config::{ClusterConfig, NAME};
use crate::counters::Counters;
use crate::event::{Event, Output};
use crate::id::{Epoch, NodeId};
use crate::key::HomeKey;
use crate::links::{ConnId, LinkEvent};
use crate::node::{Demand, Node, Sizes};
use crate::settings::{NodeSettings, Urls};
use crate::status::{OtherNode, Status};
use crate::wire::VersionRange;

/// The most events that wait for the server. While few places are left, links wait.
const EVENTS: usize = 16_384;
const SPARE: usize = 4_096;

/// The queues of the driver.
const COMMANDS: usize = 4_096;
const NEWS: usize = 1_024;

/// Between two looks at the figures.
const PUBLISHED: Duration = Duration::from_millis(200);

/// How long the end waits for the last words.
const FAREWELL: Duration = Duration::from_millis(500);

/// What the server says of itself.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The addresses of its media links.
    pub relay: Vec<SocketAddr>,
    /// The URL of its HTTP server for clients.
    pub url: Option<String>,
}

/// A node of a cluster; cheap to clone.
#[derive(Debug, Clone)]
pub struct Cluster {
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) enum Command {
    Demand(Demand),
    HasHome(HomeKey, oneshot::Sender<bool>),
    HomeOf(HomeKey, oneshot::Sender<Option<NodeId>>),
    Names(&'static str, oneshot::Sender<Vec<String>>),
    Status(oneshot::Sender<Status>),
    Leave(oneshot::Sender<()>),
}

/// What can be read at any time.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: NodeId,
    local: SocketAddr,
    complaint: Complaint,
    pub(super) facts: Mutex<Snapshot>,
}

/// The figures of the node a moment ago.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    pub(super) is_confirmed: bool,
    pub(super) counters: Counters,
    pub(super) sizes: Sizes,
    pub(super) least_loaded: Option<String>,
    pub(super) others: Arc<[OtherNode]>,
    pub(super) relief: Option<OtherNode>,
    pub(super) lost_events: u64,
    pub(super) refused_certificates: u64,
    pub(super) refused_revoked: u64,
    /// When the certificate expires, in seconds since 1970.
    pub(super) expires: u64,
}

impl Cluster {
    /// Starts the node of this configuration, on the running tokio runtime. Events have to be
    /// taken.
    pub async fn start(
        config: &ClusterConfig,
        facts: Facts,
    ) -> Result<(Self, mpsc::Receiver<Event>), StartError> {
        let folder = Folder::new(&config.node.folder);
        let written = folder.identity_written();
        let identity = folder.identity()?;
        let revocations = Keeper::open(folder.clone(), config.node.revoked.clone());
        let revocations = revocations.map_err(StartError::Revocations)?;
        let name = match config.node.name.is_empty() {
            true => identity.id.clone(),
            false => NodeId::new(&config.node.name)?,
        };
        if identity.id != name {
            return Err(StartError::OtherName(identity.id));
        }
        let servers = nats::addresses(config.node.bus.as_deref().unwrap_or_default());
        let servers = servers.map_err(StartError::Address)?;
        let options = nats::options(&config.login, &config.tls)?;
        let listeners = listen(config).await?;
        let local = listeners.first().and_then(|it| it.local_addr().ok());
        let local = local.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], config.node.port)));
        let of_node = |url: &Option<String>| {
            let url = url.as_ref()?;
            Some(url.replace(NAME, name.as_str()))
        };
        let settings = NodeSettings {
            id: name.clone(),
            epoch: random_epoch(),
            cluster: config.node.prefix.clone(),
            versions: VersionRange::up_to(config.node.version),
            region: config.node.region.clone(),
            control: config.control_addresses(local.port()),
            relay: facts.relay,
            urls: Urls {
                http: facts.url.or_else(|| of_node(&config.node.url)),
                websocket: of_node(&config.node.websocket_url),
                livekit: of_node(&config.node.livekit_url),
            },
            fingerprint: identity.fingerprint.clone(),
            without_bus: config.node.without_bus,
        };
        let (news, from_links) = mpsc::channel(NEWS);
        let room = Arc::new(Notify::new());
        let links = Links {
            credentials: Credentials::new(&identity)?,
            folder: folder.clone(),
            news,
            room: room.clone(),
            next: Arc::new(AtomicU64::new(1)),
            handshakes: Arc::new(AtomicUsize::new(0)),
            refusals: Arc::default(),
            revoked: revocations.in_force().clone(),
        };
        let mut tasks: Vec<JoinHandle<()>> = Vec::new();
        for listener in listeners {
            tasks.push(tokio::spawn(links.clone().accept(listener)));
        }
        let (requests, bus_requests) = mpsc::channel(NEWS);
        let (bus_events, from_bus) = mpsc::channel(NEWS);
        let complaint = Complaint::default();
        let plan = Plan {
            options,
            servers,
            prefix: config.node.prefix.clone(),
            replicas: config.node.replicas,
        };
        let bus = bus::run(plan, bus_requests, bus_events, complaint.clone());
        tasks.push(tokio::spawn(bus));
        let (commands, from_server) = mpsc::channel(COMMANDS);
        let (events, taken) = mpsc::channel(EVENTS);
        let shared = Arc::new(Shared {
            id: name,
            local,
            complaint,
            facts: Mutex::default(),
        });
        let driver = Driver {
            node: Node::new(settings, Instant::now()),
            wires: BTreeMap::new(),
            links,
            revocations,
            expiry: Expiry::of(&identity),
            renewal: Renewal::new(folder, &identity, written),
            requests,
            refused: Vec::new(),
            events,
            shared: shared.clone(),
            tasks,
            snapshot: Snapshot::default(),
            published: Instant::now(),
        };
        tokio::spawn(driver.run(from_server, from_bus, from_links, room));
        Ok((Cluster { commands, shared }, taken))
    }

    /// Returns the name of this node.
    pub fn id(&self) -> &NodeId {
        &self.shared.id
    }

    /// Returns the address of the control port.
    pub fn local(&self) -> SocketAddr {
        self.shared.local
    }

    /// Has the node do something. What cannot be done is logged.
    pub async fn demand(&self, demand: Demand) {
        // The driver is gone only at the end.
        let _ = self.commands.send(Command::Demand(demand)).await;
    }

    /// Returns whether something has a home on any node.
    pub async fn has_home(&self, key: &HomeKey) -> bool {
        let (to, answer) = oneshot::channel();
        let asked = self.commands.send(Command::HasHome(key.clone(), to)).await;
        asked.is_ok() && answer.await.unwrap_or_default()
    }

    /// Returns the home of something, if it is this node or one that there is a link to.
    pub async fn home_of(&self, key: &HomeKey) -> Option<NodeId> {
        let (to, answer) = oneshot::channel();
        let asked = self.commands.send(Command::HomeOf(key.clone(), to)).await;
        asked.ok()?;
        answer.await.ok().flatten()
    }

    /// Returns the names of all things of a kind with such homes.
    pub async fn names_of(&self, kind: &'static str) -> Vec<String> {
        let (to, answer) = oneshot::channel();
        let asked = self.commands.send(Command::Names(kind, to)).await;
        match asked {
            Ok(()) => answer.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// Returns the state of the node, or `None` at the end of the server.
    pub async fn status(&self) -> Option<Status> {
        let (to, answer) = oneshot::channel();
        self.commands.send(Command::Status(to)).await.ok()?;
        answer.await.ok()
    }

    /// Returns why the node is degraded, or `None` if it is not.
    pub fn degraded(&self) -> Option<String> {
        if self.snapshot().is_confirmed {
            return None;
        }
        let reason = self.shared.complaint.get();
        let reason = reason.unwrap_or_else(|| "the bus has not confirmed this node".to_owned());
        Some(format!("degraded: cluster: {reason}"))
    }

    /// Returns the URL of the node with the least load, which may be this one. `None` if no node has
    /// one.
    pub fn least_loaded(&self) -> Option<String> {
        self.snapshot().least_loaded
    }

    /// Returns the other nodes that serve and that this one has a link to, the least loaded first.
    pub fn others(&self) -> Arc<[OtherNode]> {
        self.snapshot().others
    }

    /// Returns the node to which new clients should go from here, because this one is above 70 % of
    /// its busiest worker and that one below 60 %.
    pub fn relief(&self) -> Option<OtherNode> {
        self.snapshot().relief
    }

    /// Leaves the cluster, because the server ends.
    pub async fn leave(&self) {
        let (to, left) = oneshot::channel();
        if self.commands.send(Command::Leave(to)).await.is_ok() {
            let _ = left.await;
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let facts = self.shared.facts.lock();
        facts.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
struct Driver {
    node: Node,
    wires: BTreeMap<ConnId, Wire>,
    links: Links,
    revocations: Keeper,
    expiry: Expiry,
    renewal: Renewal,
    requests: mpsc::Sender<BusRequest>,
    /// Requests for which the queue of the bus had no place.
    refused: Vec<BusRequest>,
    events: mpsc::Sender<Event>,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    snapshot: Snapshot,
    /// When the figures may be published again.
    published: Instant,
}

impl Driver {
    async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut from_bus: mpsc::Receiver<BusEvent>,
        mut from_links: mpsc::Receiver<LinkNews>,
        room: Arc<Notify>,
    ) {
        loop {
            let deadline = self
                .node
                .deadline()
                .saturating_duration_since(Instant::now());
            let has_room = self.events.capacity() >= SPARE;
            if !has_room {
                self.node.deafened(Instant::now());
            }
            tokio::select! {
                Some(event) = from_bus.recv() => {
                    let event = self.revocations.filter(event);
                    self.node.bus_event(event, Instant::now());
                }
                Some(news) = from_links.recv(), if has_room => self.link_news(news),
                command = commands.recv() => match command {
                    Some(Command::Demand(demand)) => self.demand(demand),
                    Some(Command::HasHome(key, to)) => {
                        // Who asked may be gone.
                        let _ = to.send(self.node.has_home(&key));
                    }
                    Some(Command::HomeOf(key, to)) => {
                        let _ = to.send(self.node.home_of(&key));
                    }
                    Some(Command::Names(kind, to)) => {
                        let _ = to.send(self.node.names_of(kind));
                    }
                    Some(Command::Status(to)) => {
                        // Who asked may be gone.
                        let _ = to.send(self.status());
                    }
                    Some(Command::Leave(left)) => {
                        self.demand(Demand::Leave);
                        self.serve();
                        // The bus confirms the last write, or does not.
                        let _ = timeout(FAREWELL, written(&mut from_bus)).await;
                        self.end();
                        let _ = left.send(());
                        return;
                    }
                    None => return self.end(),
                },
                () = room.notified() => {}
                () = sleep(deadline) => self.node.tick(Instant::now()),
            }
            self.serve();
        }
    }

    fn demand(&mut self, demand: Demand) {
        if let Err(error) = self.node.demand(demand, Instant::now()) {
            tracing::warn!(%error, "cluster: refused");
        }
    }

    fn status(&self) -> Status {
        let mut status = self.node.status(Instant::now());
        status.certificate_days = self.expiry.days_left();
        status.disagreements.extend(self.expiry.warning());
        status
    }

    fn link_news(&mut self, news: LinkNews) {
        let event = match news {
            LinkNews::Event(LinkEvent::Closed { conn }) => {
                self.wires.remove(&conn);
                LinkEvent::Closed { conn }
            }
            LinkNews::Event(event) => event,
            LinkNews::Open(wire) => {
                let event = LinkEvent::Opened {
                    conn: wire.conn,
                    node: wire.node.clone(),
                    is_dialled: wire.is_dialled,
                };
                if !self.node.trusts(&wire.node, &wire.fingerprint) {
                    let why = "it is another certificate than the node's entry on the bus has";
                    self.links.refusals.certificate(&wire.node, &why);
                    // It closes as its wire is dropped.
                    if wire.is_dialled {
                        let failed = LinkEvent::Failed { node: wire.node };
                        self.node.link_event(failed, Instant::now());
                    }
                    return;
                }
                self.wires.insert(wire.conn, wire);
                event
            }
        };
        self.node.link_event(event, Instant::now());
    }

    /// Does what the node wants, and sends its frames.
    fn serve(&mut self) {
        self.renew();
        self.expiry.look(Instant::now());
        if self.revocations.look(Instant::now()) {
            self.enforce(None);
        }
        loop {
            while let Some(output) = self.node.poll_output() {
                self.output(output);
            }
            if self.refused.is_empty() {
                break;
            }
            for request in std::mem::take(&mut self.refused) {
                let event = BusEvent::Written {
                    id: request.id,
                    outcome: Outcome::Unknown,
                };
                self.node.bus_event(event, Instant::now());
            }
        }
        let now = Instant::now();
        for (conn, wire) in &self.wires {
            while let Ok(permit) = wire.frames.try_reserve() {
                match self.node.poll_frame(*conn, now) {
                    Some(frame) => permit.send(frame),
                    None => break,
                }
            }
        }
        self.publish();
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Bus(request) => {
                if let Err(error) = self.requests.try_send(request) {
                    self.refused.push(error.into_inner());
                }
            }
            Output::Dial { node, addresses } => self.links.dial(node, addresses),
            Output::Close { conn, reason } => {
                if let Some(wire) = self.wires.remove(&conn) {
                    tracing::info!(node = %wire.node, %reason, "cluster: a link is closed");
                    drop(wire);
                }
            }
            Output::Event(Event::Direct {
                from,
                channel: revocations::CHANNEL,
                payload,
            }) => match self.revocations.take(&payload) {
                Ok(true) => self.enforce(Some(&from)),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(node = %from, %error, "cluster: a list of revoked certificates is refused");
                }
            },
            Output::Event(event) => {
                if let Event::NodeUp { node, .. } | Event::NodeResumed { node } = &event {
                    self.send_revocations(node.clone());
                }
                event_log::write(&event, self.node.settings().versions);
                if self.events.try_send(event).is_err() {
                    self.snapshot.lost_events += 1;
                }
            }
        }
    }

    /// Takes a renewed certificate. Links that are up stay, since both sides have seen the one before.
    fn renew(&mut self) {
        let now = Instant::now();
        // Others refuse a certificate that the entry on the bus does not have. While the bus is
        // away, that cannot be written.
        if !self.node.is_confirmed() {
            return;
        }
        let Some(identity) = self.renewal.look(now, &self.links.credentials) else {
            return;
        };
        tracing::info!(
            fingerprint = identity.fingerprint,
            "cluster: this node has a renewed certificate"
        );
        self.expiry = Expiry::of(&identity);
        self.node.certified(identity.fingerprint, now);
    }

    /// Closes the links of nodes whose certificate is revoked, and passes the list on, but not to
    /// `from`, which has it.
    fn enforce(&mut self, from: Option<&NodeId>) {
        let revoked = self.revocations.in_force();
        let wires = self.wires.iter();
        let wires = wires.filter(|(_, wire)| revoked.has(&wire.fingerprint));
        let closed: Vec<ConnId> = wires.map(|(conn, _)| *conn).collect();
        for conn in closed {
            if let Some(wire) = self.wires.remove(&conn) {
                self.links.refusals.revocation(&wire.node);
            }
            let event = LinkEvent::Closed { conn };
            self.node.link_event(event, Instant::now());
        }
        let nodes: Vec<NodeId> = self.wires.values().map(|wire| wire.node.clone()).collect();
        for node in nodes.into_iter().filter(|node| from != Some(node)) {
            self.send_revocations(node);
        }
    }

    fn send_revocations(&mut self, to: NodeId) {
        if let Some(payload) = self.revocations.text() {
            let channel = revocations::CHANNEL;
            self.demand(Demand::Direct {
                to,
                channel,
                payload,
            });
        }
    }

    /// Lets others read the figures, which are looked at now and then only.
    fn publish(&mut self) {
        let now = Instant::now();
        let is_same = self.snapshot.is_confirmed == self.node.is_confirmed();
        if is_same && now < self.published {
            return;
        }
        self.published = now + PUBLISHED;
        self.snapshot.is_confirmed = self.node.is_confirmed();
        self.snapshot.counters = self.node.counters();
        self.snapshot.sizes = self.node.sizes();
        self.snapshot.least_loaded = self.node.least_loaded();
        self.snapshot.others = self.node.others().into();
        self.snapshot.relief = self.node.relief();
        let refusals = &self.links.refusals;
        self.snapshot.refused_certificates = refusals.certificates.load(Ordering::Relaxed);
        self.snapshot.refused_revoked = refusals.revoked.load(Ordering::Relaxed);
        self.snapshot.expires = self.expiry.at();
        let mut facts = self
            .shared
            .facts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *facts = self.snapshot.clone();
    }

    fn end(&mut self) {
        self.wires.clear();
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn written(from_bus: &mut mpsc::Receiver<BusEvent>) {
    while let Some(event) = from_bus.recv().await {
        if matches!(event, BusEvent::Written { .. }) {
            return;
        }
    }
}

/// Returns the number of a run.
fn random_epoch() -> Epoch {
    let mut bytes = [0; 8];
    // Without random numbers no key of TLS could be made either.
    let _ = openssl::rand::rand_bytes(&mut bytes);
    Epoch(u64::from_be_bytes(bytes) >> 11)
}
