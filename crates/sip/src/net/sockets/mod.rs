//! All sockets of an endpoint, and the table of connections.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Duration, Instant, sleep};

use crate::agent::Allow;
use crate::flow::{ConnectionId, Flow, Route, Target, Transport};
use crate::locate::Reach;
use crate::message::Host;

use super::config::{Config, Limits, Listen};
use super::connection::{Connection, Origin};
use super::error::StartError;
use super::tls::Tls;
use super::udp;

/// The maximum number of events that wait for the endpoint. Beyond that, sockets are not read.
const ARRIVALS: usize = 1024;
/// The maximum number of messages that wait for a connection. One that takes no more is closed.
const QUEUE: usize = 512;
/// The backlog of listeners.
const BACKLOG: i32 = 512;

/// An event of a socket.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A message.
    Message(Flow, Vec<u8>),
    /// Messages do not arrive there.
    Unreachable(Transport, SocketAddr),
    /// A connection is there.
    Opened(Flow),
    /// A connection has ended, or was never established.
    Ended(ConnectionId),
    /// A peer connects.
    Connecting(Transport, TcpStream, SocketAddr),
}

/// An event for the agent.
#[derive(Debug)]
pub(super) enum Told {
    Message(Flow, Vec<u8>),
    Unreachable(Transport, SocketAddr),
    Closed(Flow),
}

/// The key of a connection for requests. Secure ones have the host of their certificate as well.
type Key = (Transport, SocketAddr, Option<Host>);

#[derive(Debug)]
struct Entry {
    transport: Transport,
    remote: SocketAddr,
    /// `None` during the handshakes.
    flow: Option<Flow>,
    /// The key for requests; `None` if requests must not use it.
    key: Option<Key>,
    is_accepted: bool,
    used: Instant,
    queue: mpsc::Sender<Arc<[u8]>>,
    task: AbortHandle,
}

/// All sockets.
pub(super) struct Sockets {
    /// The addresses to listen on.
    listen: Vec<Listen>,
    listening: Vec<Listen>,
    datagrams: Vec<(SocketAddr, Arc<UdpSocket>)>,
    limits: Limits,
    allow: Allow,
    tls: Tls,
    path: String,
    entries: HashMap<ConnectionId, Entry>,
    by_key: HashMap<Key, ConnectionId>,
    accepted: HashMap<IpAddr, usize>,
    accepted_in_all: usize,
    next: u64,
    /// Connections refused for lack of room.
    pub refused: u64,
    up: mpsc::Sender<Arrival>,
    arrivals: mpsc::Receiver<Arrival>,
    told: VecDeque<Told>,
    tasks: JoinSet<()>,
}

impl Sockets {
    /// The certificates of connections by TLS.
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Makes the table without open sockets.
    pub fn new(config: &Config) -> Result<Self, StartError> {
        let (up, arrivals) = mpsc::channel(ARRIVALS);
        let secure = config
            .listen
            .iter()
            .any(|listen| listen.transport.is_secure());
        Ok(Self {
            listen: config.listen.clone(),
            listening: Vec::new(),
            datagrams: Vec::new(),
            limits: config.limits,
            allow: config.agent.allow.clone(),
            tls: Tls::new(&config.tls, secure)?,
            path: config.websocket_path.clone(),
            entries: HashMap::new(),
            by_key: HashMap::new(),
            accepted: HashMap::new(),
            accepted_in_all: 0,
            next: 1,
            refused: 0,
            up,
            arrivals,
            told: VecDeque::new(),
            tasks: JoinSet::new(),
        })
    }

    /// Makes the table with open sockets.
    #[cfg(test)]
    pub fn bind(config: &Config) -> Result<Self, StartError> {
        let mut sockets = Self::new(config)?;
        sockets.open()?;
        Ok(sockets)
    }

    /// Binds all listeners, or none if that fails.
    pub fn open(&mut self) -> Result<(), StartError> {
        for listen in self.listen.clone() {
            if let Err(error) = self.listen(listen) {
                // Their sockets close with the tasks.
                self.tasks.abort_all();
                self.listening.clear();
                self.datagrams.clear();
                return Err(StartError::Listen { listen, error });
            }
        }
        Ok(())
    }

    /// Returns the listeners with their actual ports.
    pub fn listening(&self) -> &[Listen] {
        &self.listening
    }

    /// Returns the transports and address families that can be used.
    pub fn reach(&self) -> Reach {
        let mut transports = Vec::new();
        if !self.datagrams.is_empty() {
            transports.push(Transport::Udp);
        }
        transports.extend([
            Transport::Tcp,
            Transport::Tls,
            Transport::Ws,
            Transport::Wss,
        ]);
        let any = |v6: bool| {
            self.listening.is_empty()
                || self
                    .listening
                    .iter()
                    .any(|listen| listen.address.is_ipv6() == v6)
        };
        Reach {
            transports,
            v4: any(false),
            v6: any(true),
        }
    }

    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.entries.len()
    }

    /// Returns the next event. Cancel safe.
    pub async fn next(&mut self) -> Told {
        loop {
            if let Some(told) = self.told.pop_front() {
                return told;
            }
            while self.tasks.try_join_next().is_some() {}
            // There is always a sender: our own.
            let Some(arrival) = self.arrivals.recv().await else {
                continue;
            };
            match arrival {
                Arrival::Message(flow, bytes) => {
                    if let Some(entry) = flow.connection.and_then(|id| self.entries.get_mut(&id)) {
                        entry.used = Instant::now();
                    }
                    return Told::Message(flow, bytes);
                }
                Arrival::Unreachable(transport, remote) => {
                    return Told::Unreachable(transport, remote);
                }
                Arrival::Opened(flow) => {
                    if let Some(entry) = flow.connection.and_then(|id| self.entries.get_mut(&id)) {
                        entry.flow = Some(flow);
                    }
                }
                Arrival::Ended(id) => self.remove(id),
                Arrival::Connecting(transport, stream, remote) => {
                    self.accept(transport, stream, remote)
                }
            }
        }
    }

    /// Sends a message. [`Self::next`] reports it if that fails.
    pub fn send(&mut self, route: &Route, bytes: Arc<[u8]>) {
        let (transport, remote) = (route.transport(), route.remote());
        if matches!(route, Route::Target(_)) && !self.allow.allows(remote.ip()) {
            self.told.push_back(Told::Unreachable(transport, remote));
            return;
        }
        if transport == Transport::Udp {
            self.send_datagram(route, remote, &bytes);
            return;
        }
        let named = route
            .connection()
            .filter(|id| self.entries.contains_key(id));
        let host = match route {
            Route::Target(Target { host, .. }) => host.clone(),
            Route::Flow(_) => remote.ip().into(),
        };
        let key = key(transport, remote, &host);
        let id = named
            .or_else(|| self.by_key.get(&key).copied())
            .unwrap_or_else(|| self.connect(key, host));
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        entry.used = Instant::now();
        if entry.queue.try_send(bytes).is_err() {
            // It has ended, or its peer does not read.
            entry.task.abort();
            self.remove(id);
        }
    }

    fn send_datagram(&mut self, route: &Route, remote: SocketAddr, bytes: &[u8]) {
        let local = match route {
            Route::Flow(flow) => Some(flow.local),
            Route::Target(_) => None,
        };
        let fits = |address: &SocketAddr| address.is_ipv6() == remote.is_ipv6();
        let near = |address: &SocketAddr| {
            address.ip().is_unspecified() || address.ip().is_loopback() == remote.ip().is_loopback()
        };
        let mut all = self.datagrams.iter();
        let socket = all
            .find(|(address, _)| Some(*address) == local)
            .or_else(|| {
                self.datagrams
                    .iter()
                    .find(|(address, _)| fits(address) && near(address))
            })
            .or_else(|| self.datagrams.iter().find(|(address, _)| fits(address)));
        let sent = match socket {
            Some((_, socket)) => udp::send(socket, bytes, remote),
            None => Err(ErrorKind::AddrNotAvailable.into()),
        };
        if let Err(error) = sent {
            tracing::debug!(%remote, %error, "SIP datagram cannot be sent");
            self.told
                .push_back(Told::Unreachable(Transport::Udp, remote));
        }
    }

    fn listen(&mut self, listen: Listen) -> io::Result<()> {
        let up = self.up.clone();
        if listen.transport == Transport::Udp {
            let socket = Arc::new(udp::bind(listen.address)?);
            let address = socket.local_addr()?;
            self.listening.push(Listen { address, ..listen });
            self.datagrams.push((address, Arc::clone(&socket)));
            self.tasks.spawn(udp::receive(socket, address, up));
            return Ok(());
        }
        let socket = Socket::new(
            Domain::for_address(listen.address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        if listen.address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&listen.address.into())?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from_std(socket.into())?;
        self.listening.push(Listen {
            address: listener.local_addr()?,
            ..listen
        });
        self.tasks.spawn(accept(listener, listen.transport, up));
        Ok(())
    }

    fn accept(&mut self, transport: Transport, stream: TcpStream, remote: SocketAddr) {
        let of_address = self.accepted.get(&remote.ip()).copied().unwrap_or_default();
        // Peers that connect take no room from connections to our registrars.
        let most = self.limits.connections;
        if self.entries.len() >= most
            || self.accepted_in_all >= most.saturating_sub(most / 4)
            || of_address >= self.limits.connections_per_address
        {
            self.refused = self.refused.saturating_add(1);
            return;
        }
        let tls = self.tls.acceptor().filter(|_| transport.is_secure());
        // An accepted secure connection does not identify its peer, so our requests do not use it.
        let key = (!transport.is_secure()).then_some((transport, remote, None));
        self.start(transport, remote, key, true, Origin::In { stream, tls });
        self.accepted
            .insert(remote.ip(), of_address.saturating_add(1));
        self.accepted_in_all = self.accepted_in_all.saturating_add(1);
    }

    fn connect(&mut self, key: Key, host: Host) -> ConnectionId {
        if self.entries.len() >= self.limits.connections {
            self.refused = self.refused.saturating_add(1);
            let ours = self.entries.iter().filter(|(_, entry)| !entry.is_accepted);
            let oldest = ours
                .min_by_key(|(_, entry)| entry.used)
                .or(self.entries.iter().min_by_key(|(_, entry)| entry.used));
            if let Some((id, _)) = oldest.map(|(id, entry)| (*id, entry.task.abort())) {
                self.remove(id);
            }
        }
        let (transport, remote, _) = key;
        let origin = Origin::Out {
            host,
            tls: self.tls.connector(),
            path: self.path.clone(),
        };
        self.start(transport, remote, Some(key), false, origin)
    }

    fn start(
        &mut self,
        transport: Transport,
        remote: SocketAddr,
        key: Option<Key>,
        is_accepted: bool,
        origin: Origin,
    ) -> ConnectionId {
        let id = ConnectionId(self.next);
        self.next = self.next.saturating_add(1);
        let (sender, queue) = mpsc::channel(QUEUE);
        let connection = Connection {
            id,
            transport,
            remote,
            limits: self.limits,
            queue,
            up: self.up.clone(),
        };
        let task = self.tasks.spawn(connection.run(origin));
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), id);
        }
        let used = Instant::now();
        self.entries.insert(
            id,
            Entry {
                transport,
                remote,
                flow: None,
                key,
                is_accepted,
                used,
                queue: sender,
                task,
            },
        );
        id
    }

    /// Forgets a connection, and returns it.
    fn remove(&mut self, id: ConnectionId) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        if let Some(key) = &entry.key
            && self.by_key.get(key) == Some(&id)
        {
            self.by_key.remove(key);
        }
        if entry.is_accepted
            && let Some(count) = self.accepted.get_mut(&entry.remote.ip())
        {
            self.accepted_in_all = self.accepted_in_all.saturating_sub(1);
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.accepted.remove(&entry.remote.ip());
            }
        }
        match entry.flow {
            Some(flow) => self.told.push_back(Told::Closed(flow)),
            None if entry.is_accepted => {}
            None => self
                .told
                .push_back(Told::Unreachable(entry.transport, entry.remote)),
        }
    }
}

fn key(transport: Transport, remote: SocketAddr, host: &Host) -> Key {
    (
        transport,
        remote,
        transport.is_secure().then(|| host.clone()),
    )
}

async fn accept(listener: TcpListener, transport: Transport, up: mpsc::Sender<Arrival>) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                if up
                    .send(Arrival::Connecting(transport, stream, remote))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            Err(error) => {
                // Mostly out of descriptors: others may be closed meanwhile.
                tracing::debug!(%error, "SIP connection cannot be accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
